"""Scans of an event log: its splits as Arrow columns, and loops and queries that run over them in tasks."""
