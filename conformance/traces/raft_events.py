"""Returns fields of events of DLedger members, or raises an error that names the event."""

from collections.abc import Iterable
from typing import Final

from mqproof.spec.events import Event, EventError, Kind

OPTIONAL: Final = frozenset(
    {Kind.VOTE, Kind.STEP_DOWN, Kind.HEARTBEAT, Kind.FLUSH, Kind.HA_ACK, Kind.RAFT_COMMIT, Kind.SEND_ACK}
)
"""Kinds that a log may omit if it says so; the other kinds are enough to show what has to be explained."""


def unrecorded(events: Iterable[Event], where: str) -> frozenset[str]:
    """Return the kinds of events that members do not record, as they report at a start.

    Raises:
        EventError: a log without these kinds is not sufficient.
    """
    starts = [event for event in events if event.kind is Kind.RECOVER]
    named = {kind for event in starts for kind in event.attrs.get("unrecorded", "").split(",") if kind}
    if unknown := sorted(named - OPTIONAL):
        raise EventError(
            f"{where}: {unknown[0][:40]!r} is omitted, but only {_listed(OPTIONAL)} may be omitted"
        )
    if {Kind.VOTE, Kind.STEP_DOWN} <= named:
        raise EventError(f"{where}: neither vote nor step_down is recorded: the terms are unknown")
    return frozenset(named)


def _listed(kinds: Iterable[str]) -> str:
    return ", ".join(sorted(kinds))


def index_of(event: Event, where: str) -> int:
    """Return the index of the event's entry, counted from 1 as in TLA+; the log counts from 0."""
    return number_of(event, "index", where) + 1


def term_of(event: Event, where: str) -> int:
    if event.term is None:
        raise EventError(f"{_place(event, where)} has no term")
    return event.term


def number_of(event: Event, name: str, where: str) -> int:
    text = text_of(event, name, where)
    try:
        return int(text)
    except ValueError:
        raise EventError(
            f"{_place(event, where)}: attrs.{name} is {text[:20]!r}, a number expected"
        ) from None


def text_of(event: Event, name: str, where: str) -> str:
    if name not in event.attrs:
        raise EventError(f"{_place(event, where)} has no attrs.{name}")
    return event.attrs[name]


def _place(event: Event, where: str) -> str:
    return f"{where}: {event.node}: {event.kind} at seq {event.seq}"
