"""Systematic mutation of the models: every action's guards, comparisons and updates are broken one at a time.

Begin at `operators.py`, which makes the mutants of a module. `judge.py` has TLC check which tests detect
each, and `score.py` counts. An undetected mutant shows a hole in the invariants, or a part that is not
needed.
"""
