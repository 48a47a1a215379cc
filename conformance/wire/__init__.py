"""Numbered wire cases for any broker and name server: requests, required responses, and their rules.

Start with `model.py` (the structure of a case), then `systematic.py` (the cases derived from an operation's
fields) and the tables of operations, `operations/`. `catalogue.py` has all cases, `runner.py` runs one.

Nothing here depends on our own broker: `frames.py` builds and reads frames.
"""
