"""Verifies the certificates of C08: groups that commit or begin beyond what they received.

python -m mqproof.conformance.history.ahead_verifier HISTORY CERTIFICATES
"""

import sys
from bisect import bisect_left
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.takeovers import takeovers
from mqproof.conformance.history.verification import Facts, History, Op, main


def offset_ahead(history: History) -> Facts:
    """C08: offsets beyond what a group received, and those that a listener skipped after a takeover."""
    read, front = defaultdict[str, set[int]](set), defaultdict[str, int](int)
    for op in history.reads:
        read[op.queue].update(message["offset"] for message in op.read)
    for op in (each for each in history.ops if each.f == "bounds" and each.outcome == "ok"):
        front[op.queue] = max(front[op.queue], op.answered.get("min", -1))
    offsets = {queue: sorted(each) for queue, each in read.items()}
    for op, first in takeovers(history):
        known = offsets[op.queue]
        place = bisect_left(known, max(op.answered["offset"], front[op.queue]))
        if not history.groups[op.group].get("tags") and known[place : place + 1] < [first]:
            yield from (((op.queue, str(each)), []) for each in known[place : place + 1])
    yield from committed(history)


def committed(history: History) -> Facts:
    reach, tags = dict[tuple[str, str], int](), dict[tuple[str, int], str]()
    for sent, number, message in history.placed:
        tags.setdefault((sent.queue, sent.offset + number), message.get("tag", ""))
    for op in sorted(history.ops, key=lambda op: op.start if op.f == "commit" else op.at):
        at, last = (op.group, op.queue), reach.get((op.group, op.queue), -1)
        if op.f in ("poll", "pop", "consume"):
            then = op.answered.get("next", -1) if op.f == "poll" else -1
            if op.read or then >= 0:
                after = op.read[-1]["offset"] + 1 if op.read else -1
                reach[at] = max(last, then, after, op.asked.get("offset", -1))
        elif op.f == "commit":
            offset = op.asked["offset"]
            chosen = history.groups[op.group].get("tags", ())
            if op.asked.get("reset") or at not in reach:
                reach[at] = max(last, offset)
            elif offset > last and (not chosen or selects(tags, chosen, op, last)):
                yield (op.queue, str(offset)), []
                reach[at] = offset


def selects(tags: dict[tuple[str, int], Any], chosen: Any, op: Op, low: int) -> bool:
    """Return whether the group selects a message between the offset and that of its commit."""
    return any(tags.get((op.queue, offset)) in chosen for offset in range(low, op.asked["offset"]))


RULES = {"C08": offset_ahead}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
