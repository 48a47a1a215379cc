"""The executable model: one pure state machine per TLA+ module, same names, and an explorer over them.

Begin at `flush.py`; `explorer.py` walks its states, `equiv.py` compares them with TLC's graph. README.md
tells how the explorer works and scales.
"""
