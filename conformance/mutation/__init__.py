"""Systematic mutation of `impl/`: small changes of its code, each judged by the suites.

Begin at `operators.py`, which makes the mutants of a module; `patches.py` reads changes written by hand.
`loading.py` puts the changed code in the place of the original. `reach.py` records which lines each suite
executes. `examiner.py` judges one mutant, `fork_server.py` does so in a process of its own, and `campaign.py`
judges a sample. `unit_tests.py` judges what no suite detects. `survivors.py` reads who can notice each of
these, and `score.py` counts.

The defects in `conformance/mutants` are written by hand, each for one invariant. These are not: they measure
what the suites detect without being prepared for it.
"""
