"""One pass over the rows of an event log: profile, sequences, fingerprints, sums per bucket and per message.

Loops over rows are compiled by numba (`loops.py`).
"""
