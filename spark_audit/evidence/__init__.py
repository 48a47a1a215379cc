"""The tables that the checks read, computed once from what the passes found. Start with `gather.py`."""
