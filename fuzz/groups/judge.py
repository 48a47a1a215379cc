"""Applies the rules of histories to what the clients of a run observed; each function raises Finding."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mqproof.conformance.engine.finding import Finding as Found
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import groups, loss, offsets, order, places, redelivery
from mqproof.fuzz.target import Finding
from mqproof.report.model import Verdict
from mqproof.spec import catalogue

Checked = Counter[str]


def one_owner(history: Record, checked: Checked) -> None:
    """Check DELIV-6: outside a rebalance, a queue has one owner in a group."""
    _take("DELIV-6", (groups.double_owned(history),), checked)


def never_overlaps(history: Record, checked: Checked) -> None:
    """Check DELIV-13: one listener call at a time for a queue of an orderly group."""
    _take("DELIV-13", (groups.overlapping(history),), checked)


def filter_sound(history: Record, checked: Checked) -> None:
    """Check DELIV-10: a group receives only messages that its subscription selects, and skips no other."""
    _take("DELIV-10", (order.filtered(history),), checked)


def broadcast_to_all(history: Record, checked: Checked) -> None:
    """Check DELIV-11: each member of a broadcast group receives all messages."""
    _take("DELIV-11", (order.broadcast_gap(history),), checked)


def duplicates_explained(history: Record, checked: Checked) -> None:
    """Check DELIV-3: a repeated delivery has a cause."""
    _take("DELIV-3", (order.duplicate_delivery(history), places.duplicate_offset(history)), checked)


def retry_then_dead_letter(history: Record, checked: Checked) -> None:
    """Check DELIV-7: a message that fails is delivered again, later each time, and then a dead letter."""
    _take("DELIV-7", (redelivery.retry_and_dead_letter(history),), checked)


def not_early(history: Record, checked: Checked) -> None:
    """Check DELIV-8: a delayed message is not delivered before its time."""
    _take("DELIV-8", (redelivery.timer(history),), checked)


def nothing_lost(history: Record, checked: Checked) -> None:
    """Check DELIV-1: every acknowledged message is read in the end, and no group passes one."""
    rules = (loss.lost_write, loss.unseen, loss.lost_after_drain, offsets.offset_ahead)
    _take("DELIV-1", (rule(history) for rule in rules), checked)


def nothing_invented(history: Record, checked: Checked) -> None:
    """Check DELIV-2: only messages that were sent are delivered."""
    _take("DELIV-2", (places.phantom(history), places.message_ids(history)), checked)


CHECKS: Final = (
    nothing_invented,
    one_owner,
    never_overlaps,
    filter_sound,
    broadcast_to_all,
    duplicates_explained,
    retry_then_dead_letter,
    not_early,
    nothing_lost,
)
"""The checks, in the order in which they are applied: the first violation is the finding."""


def judge(history: Record, checked: Checked) -> None:
    """Apply all checks."""
    for check in CHECKS:
        check(history, checked)


def _take(invariant: str, found: Iterable[Found], checked: Checked) -> None:
    name = catalogue.catalogue()[invariant].name
    for each in found:
        if each.verdict is Verdict.VIOLATED:
            raise Finding(name, each.witnesses[0].text)
        checked[name] += each.verdict is Verdict.HELD
