"""What tests of traces do to event logs: write them, find an event, change one."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from mqproof.spec.events import Event, Kind, encode


def write(path: Path, events: Sequence[Event]) -> Path:
    path.write_bytes(b"".join(map(encode, events)))
    return path


def renumbered(events: Sequence[Event]) -> list[Event]:
    """With dense numbers again: the corruption is in what is said, not in how it is counted."""
    numbers: dict[str, int] = {}
    out = []
    for event in events:
        numbers[event.node] = numbers.get(event.node, -1) + 1
        out.append(msgspec.structs.replace(event, seq=numbers[event.node]))
    return out


def first(events: Sequence[Event], kind: Kind, node: str = "", **attrs: str) -> int:
    """Where the first event is of a kind, of a node if one is named, and with these attributes."""
    return next(
        n
        for n, e in enumerate(events)
        if e.kind is kind and node in ("", e.node) and attrs.items() <= e.attrs.items()
    )


def changed(events: Sequence[Event], at: int, **fields: object) -> list[Event]:
    return [*events[:at], msgspec.structs.replace(events[at], **fields), *events[at + 1 :]]


def without(events: Sequence[Event], at: int) -> list[Event]:
    return [*events[:at], *events[at + 1 :]]


def moved(events: Sequence[Event], at: int, to: int) -> list[Event]:
    """The event at one place stands behind the one at an earlier place."""
    return [*events[: to + 1], events[at], *events[to + 1 : at], *events[at + 1 :]]


def leaving_out(events: Sequence[Event], *kinds: Kind) -> list[Event]:
    """As of members who do not record these kinds, and say so."""
    omitted = ",".join(sorted(kinds))
    kept = [event for event in events if event.kind not in kinds]
    return renumbered(
        [
            msgspec.structs.replace(event, attrs={**event.attrs, "unrecorded": omitted})
            if event.kind is Kind.RECOVER
            else event
            for event in kept
        ]
    )
