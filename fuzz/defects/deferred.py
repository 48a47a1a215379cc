"""Mutants of a broker's transactions, timers and delayed messages.

They are the mutants of conformance, and defects that only faults or late deliveries reveal.
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.mutants import timers, transactions
from mqproof.conformance.mutants.mutant import Mutant as ImplMutant
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.broker.requests.checks import scheduled_or_refused
from mqproof.impl.remoting.message import DELAY, Message

_TARGET: Final = "deferred-messages"

_ELSEWHERE: Final = frozenset(
    {
        "final-of-copy-lost",  # SPEC-1: no named invariant
        "timer-recall-refused",  # SPEC-1: no named invariant
    }
)
"""Mutants of conformance that break no invariant that a simulation judges."""

_NOTICED_BY: Final = {
    "final-no-evidence": "EndsOnce",
    "timer-copy-not-read": "TimerKept",
    "timer-overdue-skipped": "TimerKept",
}
"""Mutants for which an invariant other than conformance's is violated first."""


def _late(due_ms: int, now_ms: int) -> bool:
    return due_ms + 5000 <= now_ms


def _at_once(services: Any, message: Message) -> Message:
    scheduled_or_refused(services, message)
    return message


def _nothing_needed(_: object) -> None:
    """Need no record of the log."""


async def _never(*_: object) -> None:
    await asyncio.Event().wait()


def _nothing_settled(*_: object) -> None:
    """Call nobody."""


def _as_here(theirs: ImplMutant) -> Mutant:
    return as_of_target(theirs, _TARGET, _NOTICED_BY)


MUTANTS: Final = (
    *(
        _as_here(each)
        for each in (*transactions.MUTANTS.values(), *timers.MUTANTS.values())
        if each.name not in _ELSEWHERE
    ),
    Mutant(
        "TimerLate",
        "a message is delivered five seconds after its time",
        _TARGET,
        "TimerDelivered",
        "mqproof.impl.broker.state.waiting_timers:is_due",
        _late,
    ),
    Mutant(
        "LevelIgnored",
        f"a message with the property {DELAY} is stored where it is readable at once",
        _TARGET,
        "NotEarly",
        "mqproof.impl.broker.processors.send:scheduled_or_refused",
        _at_once,
    ),
    Mutant(
        "LevelNeverDelivered",
        "the messages of the delay levels are never delivered",
        _TARGET,
        "AckedDelivered",
        "mqproof.impl.broker.delayed:DelayedDelivery._deliver",
        _never,
    ),
    Mutant(
        "LevelDeleted",
        "the log segment of a message of a delay level is deleted while it waits",
        _TARGET,
        "AckedDelivered",
        "mqproof.impl.broker.delayed:DelayedDelivery._needed_from",
        _nothing_needed,
    ),
    Mutant(
        "SendsNeverSettled",
        "a send that waits for the disk is never answered",
        _TARGET,
        "SendAnswered",
        "mqproof.impl.store.message_store:MessageStore.when_settled",
        _nothing_settled,
    ),
)
