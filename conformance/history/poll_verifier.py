"""Verifies the certificates of A09, A10, C04.1 and C14: the steps of polls.

python -m mqproof.conformance.history.poll_verifier HISTORY CERTIFICATES
"""

import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from mqproof.conformance.history.verification import Facts, History, Op, main


class Queues:
    """The messages of all queues."""

    def __init__(self, history: History) -> None:
        self.history, self.first = history, defaultdict[str, int](int)
        self.read, self.sent = defaultdict[str, set[int]](set), defaultdict[str, dict[int, Any]](dict)
        for sent, number, message in history.placed:
            self.sent[sent.queue].setdefault(sent.offset + number, (sent, message.get("tag", "")))
        for op in history.reads:
            self.read[op.queue].update(message["offset"] for message in op.read)
        for op in history.ops:
            self.first[op.queue] = max(self.first[op.queue], op.answered.get("min", 0) * (op.f == "bounds"))
        self.known = {q: sorted(self.read[q] | self.sent[q].keys()) for q in {*self.read, *self.sent}}

    def passed(self, op: Op, low: int, high: int) -> Iterator[Any]:
        """Yield the messages that a poll passed from one offset to another."""
        known, first = self.known.get(op.queue, []), self.first[op.queue]
        tags = self.history.groups[op.group].get("tags", ())
        between = known[bisect_left(known, low) : bisect_left(known, high)]
        here, read = {message["offset"] for message in op.read}, self.read[op.queue]
        skipped = [offset for offset in between if offset in read and offset not in here and offset >= first]
        for offset in skipped if tags else ():
            sent, tag = self.sent[op.queue].get(offset, (None, ""))
            if tag in tags and not self.history.losses(sent.answered["status"], sent.end, op.at):
                yield "C14", (op.queue, offset)
        if skipped and not tags:
            yield "A09", (op.queue, skipped[0], op.at)
        if not tags and len(between) < high - low and op.queue[0] != "%":
            hole = next((at for at, offset in enumerate(between, low) if at != offset), low + len(between))
            if hole >= first:
                yield "C04.1", (op.queue, hole, op.at)


def steps(history: History) -> Iterator[Any]:
    """Yield the polls that go back or ahead without a cause, or ignore their tags."""
    queues, last = Queues(history), dict[Any, tuple[int, int]]()
    for op in history.reads:
        tags = history.groups[op.group].get("tags", ())
        yield from (("C14", (m["id"], op.queue)) for m in op.read if tags and m.get("tag", "") not in tags)
    for op in (each for each in history.ops if each.f == "poll" and each.outcome == "ok"):
        asked, then = op.asked.get("offset", -1), op.answered.get("next", -1)
        before, at, known = *last.get((op.group, op.client, op.queue), (-1, -1)), True
        if not (at >= 0 and before == asked - 1 >= 0) and (
            at < 0 or op.asked.get("seek") or history.causes(op.group, at, op.start)
        ):
            before, known = max(asked - 1, -1), asked >= 0
        for message in op.read:
            offset = message["offset"]
            if known and offset <= before:
                yield "A10", (op.queue, offset, op.at)
            elif known and offset > before + 1:
                yield from queues.passed(op, before + 1, offset)
            before, known = max(before, offset), True
        if known and then - 1 > before:
            yield from queues.passed(op, before + 1, then)
        end = then - 1 if then < asked and not op.read else max(before, then - 1)
        last[op.group, op.client, op.queue] = end, op.at


def of(rule: str) -> Callable[[History], Facts]:
    """Return the subjects of one rule. None has a reason."""
    return lambda history: ((tuple(map(str, found)), []) for each, found in steps(history) if each == rule)


RULES = {rule: of(rule) for rule in ("A09", "A10", "C04.1", "C14")}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
