"""Inductive proofs of the protocols with Z3, and contracts of the pure functions with CrossHair.

Begin at `proof.py`: what an inductive proof is. `flush.py`, `replication.py` and `election.py` are three;
`state_correspondence.py` and `step_correspondence.py` show that they are about the reference. `contracts.py`
has the contracts; `mutants/` has broken proofs and injected bugs.
"""
