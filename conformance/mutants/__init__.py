"""All injected defects of `impl`, one module per suite.

Start with `mutant.py`, which says what a mutant is. `conformance/registry/mutant_judge.py` runs the suites
against them.
"""
