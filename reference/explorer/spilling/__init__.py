"""The explorer with a bounded memory, which spills to the disk. Start with `explorer.py`."""
