"""Numbered wire cases for any broker and name server: what to write, what must come back, and by what rule.

Begin at `model.py` (what a case is), then `systematic.py` (the cases that follow from an operation's fields)
and the tables they follow from, `operations/`. `catalogue.py` has all cases, `runner.py` runs one.
Nothing here knows our own broker: frames are built and read by `frames.py`.
"""
