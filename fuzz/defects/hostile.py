"""Mutants of the limits against strangers and faulty members: those of conformance, and one more."""

from typing import Final

from mqproof.conformance.mutants.hostile import MUTANTS as OF_ATTACKS
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.dledger.rpc_bodies import NO_INDEX

_TARGET: Final = "hostile-peers"


def _nothing_guarded(_: object) -> int:
    return NO_INDEX


MUTANTS: Final = (
    *(as_of_target(each, _TARGET, {}) for each in OF_ATTACKS.values()),
    Mutant(
        "CommittedEntryReplaced",
        "a member replaces committed entries if a leader says so",
        _TARGET,
        "FieldsWithinLimits",
        "mqproof.impl.dledger.state:State.guarded",
        property(_nothing_guarded),  # type: ignore[arg-type]
    ),
)
