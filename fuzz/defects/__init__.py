"""Planted defects that the fuzz targets must find, a module for each target; `fuzz.mutants` judges them.

Begin at `defect.py`, which says what a mutant is.
"""
