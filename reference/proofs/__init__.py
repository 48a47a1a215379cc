"""Inductive proofs of the protocols with Z3, and contracts of the pure functions with CrossHair.

Begin at `proof.py`, which defines an inductive proof. `flush.py`, `replication.py` and `election.py` are
three of them. `state_correspondence.py` and `step_correspondence.py` show that they correspond to the
reference. `contracts.py` has the contracts; `mutants/` has broken proofs and injected bugs.
"""
