"""The durability suite: one broker and one client, with crashes (spec/tla/Flush.tla).

Start with `target.py` (the operations that an implementation must offer) and `session.py` (one run).
"""
