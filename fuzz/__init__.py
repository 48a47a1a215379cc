"""Fuzzing: targets that state an invariant, engines that search for an input that breaks it.

A campaign runs an engine (our own coverage-guided one, or atheris) on a target in worker processes, and keeps
each finding as a small file that `mqproof fuzz replay` reproduces. Begin at `target.py`, then `engine.py`.
"""
