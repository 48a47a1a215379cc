"""The guarantee matrix: what becomes of a message under each configuration and fault, and what the book says.

Begin at `matrix.py`, which has TLC decide every cell; `claims.py` holds the verdicts against the book's
claims, `recorded.py` against those recorded in `matrix.toml`; the other modules show it.
"""
