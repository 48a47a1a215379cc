"""The invariants of a damaged store, judged by what clients saw. Each returns one line per violation."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.damage.observation import Record, Seen, parse


def never_silently_wrong(seen: Seen) -> tuple[str, ...]:
    """ROT-1: check that no record is delivered that differs from the stored one in what a rule covers."""
    wrong = []
    for stored, data in seen.got:
        if stored is None:
            wrong.append(f"{len(data)} bytes are delivered that were never stored there")
        elif data != stored.record.data:
            found = parse(data)
            if not isinstance(found, Record):
                wrong.append(f"no record is delivered for {stored.topic} {stored.offset}")
            elif found.covered != stored.record.covered:
                wrong.append(f"an altered record is delivered for {stored.topic} {stored.offset}")
    return tuple(dict.fromkeys(wrong))


def never_silently_lost(seen: Seen) -> tuple[str, ...]:
    """ROT-2: check that the loss of a message is reported by its place.

    Without the broker's log, a loss cannot be judged: `is_unknown` says so.
    """
    if seen.refusal is not None or seen.report is None:
        return ()
    lost = [each for each in seen.truth if (each.topic, each.offset) in seen.passed]
    return tuple(
        f"{each.topic} {each.offset} is lost without a report"
        for each in lost
        if not is_named(seen.report, each.topic, each.offset, each.record.commit_offset)
    )


def offsets_not_reused(seen: Seen) -> tuple[str, ...]:
    """ROT-3: check that new messages follow all earlier ones, and are delivered at their offsets."""
    wrong = []
    for new in seen.sent:
        count = sum(each.topic == new.topic for each in seen.truth)
        if new.offset < count:
            wrong.append(f"{new.topic} had {count} messages, and a new one gets offset {new.offset}")
        elif seen.received.get((new.topic, new.offset)) != new.body:
            wrong.append(f"{new.topic} does not deliver the new message at offset {new.offset}")
    return tuple(dict.fromkeys(wrong))


def refused_by_name(seen: Seen) -> tuple[str, ...]:
    """ROT-4: check that a refused start names a file of the store."""
    if seen.refusal is None or any(name in seen.refusal for name in seen.files):
        return ()
    return (f"the start is refused, and the error names no file: {seen.refusal[:200]!r}",)


@dataclass(frozen=True, slots=True)
class PeersSeen:
    """What became of a damaged record in a broker that has peers."""

    node: str
    peer_had: bool
    """Whether a peer had the record before the damage."""
    is_wrong: bool
    """Whether other bytes were delivered as that record."""
    is_repaired: bool
    """Whether the record is delivered as it was, in the end."""
    is_reported: bool
    is_logged: bool
    """Whether the repair was logged and counted."""
    follows: bool = True
    """Whether the slave follows its master in the end; always true in a group."""


def damage_settled(seen: PeersSeen) -> tuple[str, ...]:
    """ROT-5: check that a damaged record is repaired if a peer has it, and reported otherwise."""
    if seen.is_wrong:
        return (f"{seen.node} delivers other bytes in place of a damaged record",)
    if seen.peer_had and not seen.is_repaired:
        return (f"{seen.node} does not repair a damaged record that a peer has",)
    if seen.is_repaired and seen.peer_had and not seen.is_logged:
        return (f"{seen.node} repairs a damaged record without a report",)
    if seen.peer_had and not seen.follows:
        return (f"the slave does not follow its master after damage of a record of {seen.node}",)
    if not seen.is_repaired and not seen.is_reported:
        return (f"{seen.node} does not report a damaged record",)
    return ()


def is_unknown(seen: Seen) -> bool:
    """Return whether messages were lost, and no log can show whether that was reported."""
    return seen.refusal is None and seen.report is None and bool(seen.passed)


def is_named(report: str, topic: str, offset: int, commit_offset: int) -> bool:
    """Return whether a line of the log names the message by its commit offset, or its topic and offset."""
    here = re.compile(rf"(?<!\d){commit_offset}(?!\d)" if commit_offset else r"commit offset 0(?!\d)")
    in_queue = re.compile(rf"(?<!\d){offset}(?!\d)")
    return any(
        here.search(line) or (topic in line and in_queue.search(line.partition(topic)[2]))
        for line in report.splitlines()
    )


CHECKERS: Final[Mapping[str, Callable[[Seen], tuple[str, ...]]]] = {
    "ROT-1": never_silently_wrong,
    "ROT-2": never_silently_lost,
    "ROT-3": offsets_not_reused,
    "ROT-4": refused_by_name,
}
