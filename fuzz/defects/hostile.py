"""Mutants of the limits against strangers and faulty members: those of conformance, and three more."""

import asyncio
from typing import Any, Final
from weakref import WeakSet

from msgspec.structs import replace

from mqproof.conformance.mutants.hostile import MUTANTS as OF_ATTACKS
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.broker.processors import send
from mqproof.impl.dledger.rpc_bodies import NO_INDEX
from mqproof.impl.remoting.command import Command, decode
from mqproof.impl.remoting.frame import FrameError

_TARGET: Final = "hostile-peers"
_LONG_BYTES: Final = 50
_NOT_SIMULATED: Final = frozenset({"unread-without-shares"})
"""Peers of a simulated network take all that is sent to them."""

_messages = send._messages


def _cut_long_ones(*arguments: Any) -> Any:
    messages, wait = _messages(*arguments)
    cut = [replace(one, body=one.body[:-1]) if len(one.body) > _LONG_BYTES else one for one in messages]
    return cut, wait


_spoiled: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def _decode_until_bad_frame(data: bytes) -> Command:
    """Decode no frame of any connection after the first bad one."""
    loop = asyncio.get_running_loop()
    if loop in _spoiled:
        raise FrameError("an earlier frame was bad")
    try:
        return decode(data)
    except FrameError:
        _spoiled.add(loop)
        raise


def _nothing_guarded(_: object) -> int:
    return NO_INDEX


MUTANTS: Final = (
    *(as_of_target(each, _TARGET, {}) for name, each in OF_ATTACKS.items() if name not in _NOT_SIMULATED),
    Mutant(
        "CommittedEntryReplaced",
        "a member replaces committed entries if a leader says so",
        _TARGET,
        "FieldsWithinLimits",
        "mqproof.impl.dledger.state:State.guarded",
        property(_nothing_guarded),  # type: ignore[arg-type]
    ),
    Mutant(
        "BadFrameBlocksAll",
        "a server decodes no frame after a bad one, of any connection",
        _TARGET,
        "SharesKept",
        "mqproof.impl.remoting.channel:decode",
        _decode_until_bad_frame,
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
