"""Scans of an event log: its splits as Arrow columns, and loops and queries that run over them in tasks.

`run_over_log.py` runs a pass; `partition.py` and `sql.py` are the two ways in which a task reads its split.
The compiled loops (`loops.py`, `traffic.py`) are loaded in tasks only.
"""
