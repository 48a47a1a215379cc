"""Incremental runs: the checkpoint that one run leaves for the next, and streaming (`watch.py`)."""
