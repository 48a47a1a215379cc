"""Systematic mutation of the models: every action's guards, comparisons and updates broken one at a time.

Begin at `operators.py`, which makes the mutants of a module; `judge.py` asks TLC what notices each, and
`score.py` counts. A mutant that nothing notices shows a hole in the invariants, or what is not needed.
"""
