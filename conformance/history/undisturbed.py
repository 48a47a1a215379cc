"""What verifiers share about faults: the intervals without any, and what they delay."""

from bisect import bisect_right
from collections.abc import Iterator

from mqproof.conformance.history.verification import NEVER, History, Op

MS = 1_000_000
CLOSERS = {
    "start": {"kill", "crash_os", "lose_power", "lose_disk", "shutdown"},
    "resume": {"pause"},
    "heal": {"cut", "isolate", "lose_requests", "lose_answers", "delay", "slow_disk", "full_disk"},
}
Interval = tuple[int, int, int, int]
"""The lines at which it begins and ends, and the times."""


def intervals(history: History) -> list[Interval]:
    """Return the intervals without a fault, in order."""
    found, begin, since, active = list[Interval](), 0, 0, set[tuple[str, str]]()
    for fault in history.faults:
        kind, node, was_active = fault["kind"], fault.get("node", ""), bool(active)
        active -= {(each, node) for each in CLOSERS.get(kind, ())}
        active |= {(kind, node)} if kind not in CLOSERS and kind != "promote" else set()
        if active and not was_active:
            found.append((begin, fault["index"], since, fault["time"]))
        elif was_active and not active:
            begin, since = fault["index"], fault["time"]
    return found if active else [*found, (begin, NEVER, since, NEVER)]


def interval(found: list[Interval], index: int) -> Interval | None:
    """Return the interval without a fault that contains the line; None if a fault was active."""
    place = bisect_right(found, index, key=lambda each: each[0]) - 1
    return found[place] if place >= 0 and index < found[place][1] else None


def ends(history: History) -> Iterator[tuple[Op, int]]:
    """Yield the answers that state where a queue ended, with the offset."""
    for op in history.ops:
        if op.f in ("bounds", "poll") and op.outcome == "ok":
            empty = op.asked.get("offset", -1) if op.f == "poll" and not op.read else -1
            end = op.answered.get("max", -1)
            if end >= 0 or empty >= 0:
                yield op, end if end >= 0 else empty


def readable_at(history: History, found: list[Interval], sent: Op) -> int:
    """Return the time until which a stored message may be unreadable: longer, if a fault was active."""
    within = history.setup.get("visible_within_ms")
    if within is None or sent.answered["status"] != "SEND_OK":
        return NEVER
    time: int = sent.ended + within * MS
    for before, after in zip(found, [*found[1:], (NEVER,) * 4], strict=True):
        if before[3] <= time and after[2] > sent.ended:
            time = max(time, after[2] + within * MS)
    return time
