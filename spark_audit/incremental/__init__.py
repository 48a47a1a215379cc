"""Incremental runs: each begins with the state that the previous one left. Start with checkpoint.py."""
