"""Deliberately broken variants of the proofs: each must fail, with a counterexample to induction.

There is one module per proof; `MUTANTS` here contains all of them. If reference/mutants breaks the same
thing, the name is the same.
"""

from typing import Final

from mqproof.reference.proofs.mutants import election, flush, replication
from mqproof.reference.proofs.mutants.mutant import Mutant

MUTANTS: Final[tuple[Mutant, ...]] = (
    *flush.MUTANTS,
    *replication.MUTANTS,
    *election.MUTANTS,
)
