"""The TLA+ tools runner: finds Java and the jar, runs TLC, and turns what it prints into values.

Begin at `run.py` (one question to TLC, one `Outcome`); `graph.py` dumps state graphs with ground actions,
`trace_check.py` checks recorded traces, `values.py` says how TLA+ values look in Python.
"""
