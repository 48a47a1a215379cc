"""All injected defects of `impl`, one module per suite.

Start with `mutant.py`, which defines a mutant. `conformance/registry/mutant_judge.py` runs the suites against
them.
"""
