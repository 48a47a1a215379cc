"""The list of all suites and of all mutants, each with the targets on which it runs.

`suite_registry.py` is what `mqproof conform` runs; `mutant_judge.py` is what `mqproof mutants` runs. They are
above the suites and the adapters because they join them.
"""
