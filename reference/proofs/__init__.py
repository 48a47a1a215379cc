"""Inductive proofs of the protocols with Z3, and contracts of the pure functions with CrossHair.

Begin at `proof.py`: what an inductive proof is. `flush.py` is one; `mutants/` has broken ones, whose proofs
must fail.
"""
