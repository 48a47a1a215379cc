"""Simulated filter servers: consumers with functions, faults, and uploads of damaged modules.

Start with `program.py`. `functions.py` has the functions, and `judge.py` the checks.
"""
