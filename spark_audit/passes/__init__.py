"""Passes over an event log, on Spark's tasks: profile, sequences, buckets and messages.

The compiled loops (`bucket_sums.py`, `message_sums.py`, `append_outcomes.py`, `row_selection.py`) are loaded
in tasks only.
"""
