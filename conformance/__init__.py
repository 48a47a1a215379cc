"""Holds a running implementation to the specification, through one small protocol that anyone can implement.

Begin at `target.py` (what is asked of an implementation), then `oracle.py` (what the model allows) and
`history/alone.py` (the named invariants over what a client saw). `suite.py` puts them together. `history/`
judges what many clients saw at once, too.
"""
