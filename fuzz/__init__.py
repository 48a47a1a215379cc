"""Fuzzing: targets that state invariants, and engines that search for an input that violates one.

A campaign runs an engine (our own coverage-guided one, or atheris) on a target in worker processes. It saves
each finding as a small file that `mqproof fuzz replay` reproduces. Begin at `target.py`, then `engine.py`.
"""
