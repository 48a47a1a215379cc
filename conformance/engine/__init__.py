"""Runs suites: examples, sessions, the scoreboard, the comparison of two runs, the round trip to TLC.

Start with `suite_run.py`: a suite as a function of a target.
"""
