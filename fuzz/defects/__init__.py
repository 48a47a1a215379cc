"""Injected defects that fuzz targets must find, one module per target; `mqproof.fuzz.mutants` judges them.

Begin at `defect.py`, which says what a mutant is.
"""
