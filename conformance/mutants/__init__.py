"""All injected defects of `impl`, one module per suite.

Start with `judge.py`, which runs the suites against them.
"""
