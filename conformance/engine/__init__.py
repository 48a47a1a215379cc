"""Runs suites: examples, sessions, the scoreboard, and the comparison of two runs.

Start with `suite_run.py`, which runs one suite against one target.
"""
