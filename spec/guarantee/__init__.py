"""The guarantee matrix: what happens to a message under each configuration and fault.

Begin at `matrix.py`, which has TLC decide every cell. `claims.py` compares the verdicts with the book's
claims, `recorded.py` with those recorded in `matrix.toml`. The other modules display the matrix.
"""
