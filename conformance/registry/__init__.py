"""The list of all suites and of all mutants, each with the targets on which it runs.

`suite_registry.py` has the suites of `mqproof conform`, and `mutant_judge.py` the searches of `mqproof
mutants`. They import both the suites and the adapters.
"""
