"""A history sorted for the checkers: who was answered what, and what was later read, each with its moment."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from conformance.history.steps import (
    CRASHES,
    SYSTEM_CRASHES,
    Bounds,
    Down,
    History,
    Operation,
    Pull,
    Restart,
    Send,
)
from conformance.target import Outcome

SYNC_FLUSH: Final = "SYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class Moment:
    """When something happened: the step, and what the broker had been through by then."""

    step: int = 1
    """As `history.numbered` counts; opening the broker is step 1."""
    life: int = 0
    crashes: int = 0
    system_crashes: int = 0


Within = Callable[[Moment, Moment], bool]
"""Whether what is seen at the second moment counts for a message answered at the first."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one message; `lost` says why it is, and is empty if nothing shows that it is."""

    seen: bool
    lost: str = ""


def timeline(history: History) -> Iterator[tuple[Moment, Operation]]:
    """The operations, each with its moment."""
    now = Moment()
    for operation in history.operations:
        now = replace(now, step=now.step + 1)
        match operation:
            case Down(how):
                crashed, system = how in CRASHES, how in SYSTEM_CRASHES
                now = replace(now, crashes=now.crashes + crashed, system_crashes=now.system_crashes + system)
            case Restart():
                now = replace(now, life=now.life + 1)
        yield now, operation


@dataclass(frozen=True, slots=True)
class Chronicle:
    history: History
    sends: tuple[tuple[Moment, Send], ...]
    pulls: tuple[tuple[Moment, Pull], ...]
    ends: tuple[tuple[Moment, int, int], ...]
    """(moment, queue, end): the queue was readable up to `end`, exclusive, and no further."""

    def stored(self, *statuses: str) -> list[tuple[Moment, Send]]:
        """The sends that were answered with one of the statuses; with any stored status if none is given."""
        return [
            (moment, send)
            for moment, send in self.sends
            if send.answer.outcome is Outcome.OK and (not statuses or send.answer.status in statuses)
        ]

    def fate(self, answered: Moment, msg_id: str, queue_id: int, place: int, within: Within) -> Fate:
        """What the observations within the scope show of a message known to be at that offset.

        It is lost if a read passed by its offset without it, or if its queue ends before its offset in a
        later life: a broker that serves again has dispatched all that it recovered. In the life of its
        answer a queue that ends early only lags behind.
        """
        seen = False
        for moment, pull in self.pulls:
            if pull.queue_id != queue_id or moment.step < answered.step or not within(answered, moment):
                continue
            if any(message.msg_id == msg_id for message in pull.answer.messages):
                seen = True
            elif pull.offset <= place < pull.answer.next_offset:
                return Fate(seen, f"step {moment.step} read past offset {place} of its queue without it")
        for moment, ended, end in self.ends:
            later = moment.life > answered.life and within(answered, moment)
            if later and ended == queue_id and end <= place:
                return Fate(
                    seen, f"step {moment.step} shows that its queue ends at {end}, before its {place}"
                )
        return Fate(seen)


def chronicle(history: History) -> Chronicle:
    sends, pulls, ends = [], [], []
    for moment, operation in timeline(history):
        match operation:
            case Send():
                sends.append((moment, operation))
            case Pull():
                pulls.append((moment, operation))
                ends.append((moment, operation.queue_id, operation.answer.max_offset))
            case Bounds(queue_id, _, end):
                ends.append((moment, queue_id, end))
    return Chronicle(history, tuple(sends), tuple(pulls), tuple(ends))


def promised(history: History) -> Within:
    """What the flush mode covers: under ASYNC_FLUSH nothing once the system has gone down."""
    if history.setup.flush_mode == SYNC_FLUSH:
        return lambda _answered, _seen: True
    return lambda answered, seen: seen.system_crashes == answered.system_crashes
