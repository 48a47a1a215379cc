"""The executable model: one pure state machine per TLA+ module, with the same names, and an explorer.

Begin at `flush.py`. `explorer/` explores its states, and `equiv.py` compares them with TLC's graph. The
page docs/explanation/reference-model.md describes how the explorer works and scales.
"""
