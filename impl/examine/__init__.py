"""Reads a store directory (ours, a DLedger member's or a released broker's) without changing it.

Read `directory.py` first (it opens the directory), then `contents.py` (its contents) and `verify.py` (whether
it is intact). `cli.py` has `mqproof store inspect` and `mqproof store verify`.
"""
