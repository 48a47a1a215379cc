"""The suite of durability: one broker and one client, with crashes (spec/tla/Flush.tla).

Start with `target.py` (what an implementation must offer) and `session.py` (one run).
"""
