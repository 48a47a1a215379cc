"""Verifies the certificates of A14 and C03: messages that disappear and return.

python -m mqproof.conformance.history.flicker_verifier HISTORY CERTIFICATES
"""

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from mqproof.conformance.history.undisturbed import ends, intervals, readable_at
from mqproof.conformance.history.verification import NEVER, Facts, History, Op, first, main

View = tuple[str, str | None]
"""A queue, and a node that answered; None for the answers of sends."""


def view(op: Op) -> View:
    return op.queue, op.answered.get("node", "")


class Ends:
    """The answers of a node that a queue ended at or before a known message, in the order of their begins."""

    def __init__(self, found: list[tuple[int, Op]]) -> None:
        self.ops, self.rows = [op for _, op in found], [[end for end, _ in found]]
        self.starts, self.began = [op.start for op in self.ops], [op.began for op in self.ops]
        while len(row := self.rows[-1]) > (step := 1 << (len(self.rows) - 1)):
            self.rows.append(list(map(min, row, row[step:])))

    def deny(self, offset: int, low: int, high: int) -> bool:
        """Return whether one of the answers from `low` to before `high` ends the queue before the message."""
        level = (high - low).bit_length() - 1
        return low < high and min(self.rows[level][low], self.rows[level][high - (1 << level)]) <= offset


def denials(history: History) -> dict[View, Ends]:
    """Return the answers that contradict a message that was known when they were requested."""
    events: list[Any] = [(op.end, (op.queue, None), op.offset + n, None) for op, n, _ in history.placed]
    events += [(op.at, view(op), op.read[-1]["offset"], None) for op in history.reads]
    events += [(op.start, view(op), end, op) for op, end in ends(history)]
    known, found = defaultdict[View, int](lambda: -1), defaultdict[View, list[tuple[int, Op]]](list)
    for _, at, offset, op in sorted(events, key=lambda event: event[0]):
        if op is None:
            known[at] = max(known[at], offset)
        elif offset <= max(known[at], known[at[0], None]):
            found[at].append((offset, op))
    return {at: Ends(each) for at, each in found.items()}


def returned(history: History) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the places of messages that were known, then not readable, then read."""
    found, calm, acked = denials(history), intervals(history), dict[Any, Any]()
    seen = defaultdict[View, dict[Any, list[Op]]](dict)
    for sent, number, message in history.placed:
        acked.setdefault((sent.queue, sent.offset + number), (sent, message["id"]))
    for op in history.reads if found else ():
        for message in op.read if view(op) in found else ():
            place = message["offset"], message["id"]
            seen[view(op)][place] = [seen[view(op)].get(place, [op])[0], op]
    for at, each in found.items():
        for (offset, id_), (early, late) in seen[at].items():
            low, high = bisect_right(each.starts, early.at), bisect_left(each.starts, late.start)
            while high > low and each.ops[high - 1].end > late.start:
                high -= 1
            if each.deny(offset, low, high):
                is_restarted = first("", history.at["start"], each.starts[low], late.at)
                yield ("C03" if is_restarted else "A14"), (at[0], str(offset))
            sent, acked_id = acked.get((at[0], offset), (None, ""))
            is_cut = each.deny(offset, bisect_right(each.starts, late.at), len(each.starts))
            until = bisect_left(each.starts, early.start)
            if acked_id != id_ or is_cut or not each.deny(offset, bisect_right(each.starts, sent.end), until):
                continue
            due = bisect_right(each.began, readable_at(history, calm, sent))
            restart = [*first("", history.at["start"], sent.end, NEVER), ("", NEVER)][0][1]
            if each.deny(offset, due, until):
                yield "A14", (at[0], str(offset))
            elif each.deny(offset, bisect_right(each.starts, restart), until):
                yield "C03", (at[0], str(offset))


def of(rule: str) -> Callable[[History], Facts]:
    """Return the subjects of one rule. None has a reason."""
    return lambda history: ((place, []) for each, place in returned(history) if each == rule)


RULES = {rule: of(rule) for rule in ("A14", "C03")}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
