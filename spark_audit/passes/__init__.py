"""Passes over an event log, on Spark's tasks: profile, sequences, buckets and messages.

`run_over_log.py` runs a pass; `partition.py` and `sql.py` are the two ways in which a task reads its split.
The compiled loops (`loops.py`, `traffic.py`, `bucket_sums.py`, `message_sums.py`, `append_outcomes.py`,
`row_selection.py`) are loaded in tasks only.
"""
