"""Functions with which trace tests change event logs: write them, find an event, replace one."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from mqproof.spec.events import Event, Kind, encode


def write(path: Path, events: Sequence[Event]) -> Path:
    path.write_bytes(b"".join(map(encode, events)))
    return path


def renumbered(events: Sequence[Event]) -> list[Event]:
    """Return the log with dense numbers again, so that only the content is wrong."""
    numbers: dict[str, int] = {}
    out = []
    for event in events:
        numbers[event.node] = numbers.get(event.node, -1) + 1
        out.append(msgspec.structs.replace(event, seq=numbers[event.node]))
    return out


def first(events: Sequence[Event], kind: Kind, node: str = "", **attrs: str) -> int:
    """Return the index of the first event of this kind, node (if given) and attributes."""
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
    """Move the event at the first index behind the event at the second, earlier index."""
    return [*events[: to + 1], events[at], *events[to + 1 : at], *events[at + 1 :]]


def leaving_out(events: Sequence[Event], *kinds: Kind) -> list[Event]:
    """Return the log of members that omit these kinds and declare that they do."""
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
