"""Looking at a store directory, ours, a member's or a released broker's, without changing anything in it.

Begin with `directory.py` (opening it), then `contents.py` (what is in it) and `verify.py` (whether it is
whole). `cli.py` has `mqproof store inspect` and `mqproof store verify`.
"""
