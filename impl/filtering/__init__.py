"""Filters by message properties: SQL92 expressions, compiled once and evaluated for each message.

Start with `sql.py`, which compiles a text. `tokens.py` splits it, and `predicates.py` has the functions that
it becomes. See docs/reference/protocol/filters.md.
"""
