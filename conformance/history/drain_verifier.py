"""Verifies the certificates of A02 and A03: messages that were not read by the end.

    python -m mqproof.conformance.history.drain_verifier HISTORY CERTIFICATES

A message that was not read is `open`: it may be lost or late. If another rule judges it, its reason is the
line by which that rule knows it.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mqproof.conformance.history.fates import Fates
from mqproof.conformance.history.undisturbed import MS
from mqproof.conformance.history.verification import NEVER, Facts, History, Op, Reasons, main


def drained(history: History, fates: Fates) -> Iterator[tuple[str, Op, Op, int, Reasons]]:
    """Yield the messages sent before a group drained their topic, and why it has or lacks each."""
    drains, read = dict[Any, Op](), defaultdict[str, dict[str, int]](dict)
    for op in (each for each in history.ops if each.f == "drain" and each.end < NEVER):
        drains.update(((op.group, topic), op) for topic in op.asked.get("topics", ()))
    for op in history.reads if drains else ():
        for message in op.read:
            read[op.group].setdefault(message["id"], op.at)
    for (group, topic), drain in drains.items():
        tags, within = history.groups[group].get("tags", ()), history.setup.get("deliver_within_ms")
        due = -1 if within is None else drain.began - within * MS
        for sent, number, message in stored(history):
            is_chosen = sent.asked["topic"] == topic and (not tags or message.get("tag", "") in tags)
            if is_chosen and sent.end < drain.start and message.get("deliver_at", 0) <= max(due, 0):
                shown = [("read", read[group][message["id"]])] if message["id"] in read[group] else []
                shown += fates.expired(sent.queue, sent.offset + number) if sent.offset >= 0 else []
                yield group, drain, sent, number, shown or fates.lost(sent, number)


def stored(history: History) -> Iterator[tuple[Op, int, Any]]:
    """Yield the messages whose send was answered."""
    for op in (each for each in history.ops if each.f == "send" and each.outcome == "ok"):
        yield from ((op, number, message) for number, message in enumerate(op.sent))


def lost_after_drain(history: History) -> Facts:
    """A03: the messages that a draining group must have read."""
    for group, _, sent, number, shown in drained(history, Fates(history)):
        yield (group, sent.start, number), shown + history.losses(sent.answered["status"], sent.end)


def unseen(history: History) -> Facts:
    """A02: the messages answered SEND_OK."""
    fates = Fates(history)
    left = {(sent.start, n): drain.start for _, drain, sent, n, shown in drained(history, fates) if not shown}
    for sent, number, message in stored(history):
        if sent.answered["status"] == "SEND_OK" and sent.asked["topic"][0] != "%":
            at, line = (sent.start, number), fates.read.get(message["id"])
            shown = [("read", line)] if line is not None else fates.lost(sent, number)
            shown += [("drained", left[at])] if at in left else []
            yield at, shown or [("open", sent.start)]


RULES = {"A02": unseen, "A03": lost_after_drain}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
