"""Looking at a store directory, ours or a released broker's, a group's member's too, without changing anything.

Begin with `directory.py` (opening it), then `contents.py` (what is in it) and `verify.py` (whether it is
whole). `cli.py` has `mqproof store inspect` and `mqproof store verify`.
"""
