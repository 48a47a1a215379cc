"""The executable model: one pure state machine per TLA+ module, with the same names, and an explorer.

Begin at `flush.py`. `explorer/` explores its states, `explorer/spilling/` with files, and
`equivalence/equiv.py` compares them with TLC's graph. `rules/` holds the rules of the protocol that need no
state machine. The page docs/explanation/reference-model.md describes how the explorer works and scales.
"""
