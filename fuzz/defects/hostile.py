"""Mutants of the limits against strangers and faulty members: those of conformance, and two more."""

from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.mutants.hostile import MUTANTS as OF_ATTACKS
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.broker.processors import send
from mqproof.impl.dledger.rpc_bodies import NO_INDEX

_TARGET: Final = "hostile-peers"
_LONG_BYTES: Final = 50

_messages = send._messages


def _cut_long_ones(*arguments: Any) -> Any:
    messages, wait = _messages(*arguments)
    cut = [replace(one, body=one.body[:-1]) if len(one.body) > _LONG_BYTES else one for one in messages]
    return cut, wait


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
    Mutant(
        "LongBodyCut",
        "a broker stores a long body without its last byte",
        _TARGET,
        "NoAckedLost",
        "mqproof.impl.broker.processors.send:_messages",
        _cut_long_ones,
    ),
)
