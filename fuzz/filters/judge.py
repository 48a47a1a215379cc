"""Compares what consumers receive with what their functions select. Each check raises Finding."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mqproof.fuzz.target import Finding
from mqproof.impl.client.model import MessageQueue

Checked = Counter[str]


@dataclass(frozen=True, slots=True)
class Stored:
    """Where an acknowledged message is."""

    queue: MessageQueue
    offset: int


def filter_sound(body: str, selected: str, checked: Checked) -> None:
    """Check DELIV-10: a consumer receives only messages that its function selects."""
    checked["FilterSound"] += 1
    if body[:1] not in selected:
        raise Finding("FilterSound", f"{body} is received; the function selects only {', '.join(selected)}")


def none_skipped(
    due: Mapping[str, Stored],
    received: Collection[str],
    progress: Mapping[MessageQueue, int],
    checked: Checked,
) -> None:
    """Check DELIV-10: the group does not pass a message that its function selects without receiving it."""
    checked["FilterSound"] += bool(due)
    for body, stored in due.items():
        if body not in received and progress.get(stored.queue, 0) > stored.offset:
            raise Finding("FilterSound", f"{body} is selected, and the group passed it at {stored.offset}")


def all_delivered(due: Collection[str], received: Collection[str], within_s: float, checked: Checked) -> None:
    """Check DELIV-12: each acknowledged message that is selected is received in time after the faults."""
    checked["AckedDelivered"] += bool(due)
    if missing := sorted(set(due).difference(received)):
        raise Finding(
            "AckedDelivered", f"{missing[0]} is not received within {within_s:g} s after the faults"
        )
