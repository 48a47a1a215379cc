"""Verifies the certificates of A12, C04.2 and C07: torn batches, and ranges of polls.

python -m mqproof.conformance.history.range_verifier HISTORY CERTIFICATES
"""

import sys
from typing import Any

from mqproof.conformance.history.verification import CRASHES, LOSSES, Facts, History, main


def torn_batch(history: History) -> Facts:
    """A12: messages of a batch that are not where their send was answered, or not next to each other."""
    members, there = dict[str, Any](), dict[tuple[str, int], Any]()
    for op in (each for each in history.ops if len(each.sent) > 1 and each.outcome != "fail"):
        members.update((message["id"], (op, number)) for number, message in enumerate(op.sent))
    for op in history.reads:
        for message in op.read:
            there.setdefault((op.queue, message["offset"]), (message["id"], op.at))
    for op in history.reads if members else ():
        for message in op.read if op.queue[0] != "%" else ():
            sent, number = members.get(message["id"], (None, 0))
            offset, since = message["offset"], list[int]()
            if sent and sent.offset >= 0 and sent.tries == 1:
                since += [-1] * ((op.queue, offset) != (sent.queue, sent.offset + number))
            for place in (number - 1, number + 1) if sent and not since else ():
                id_, at = there.get((op.queue, offset + place - number), ("", -1))
                if 0 <= place < len(sent.sent) and id_ and id_ != sent.sent[place]["id"] and not since:
                    since.append(at)
            if since:
                until = max(op.at, *since)
                reasons = history.between(CRASHES | LOSSES, sent.start, until)
                if sent.outcome == "ok":
                    reasons = history.losses(sent.answered["status"], sent.end, until)
                yield (message["id"], op.queue, str(offset)), reasons


def misplaced(history: History) -> Facts:
    """C04.2: messages outside the range of their poll, or of another queue."""
    for op in history.reads:
        low, high = op.asked.get("offset", -1), op.answered.get("next", -1)
        for message in op.read if op.f == "poll" and low >= 0 and high >= 0 else ():
            if message.get("queue") or not low <= message["offset"] < high:
                yield (op.queue, str(message["offset"])), []


def to_minimum(history: History) -> Facts:
    """C07: polls moved back, and commits of no offset."""
    for op in history.ops:
        then, end = op.answered.get("next", -1), op.answered.get("max", -1)
        if op.f == "poll" and 0 <= then < min(op.asked.get("offset", -1), end):
            yield (op.queue, str(then)), []
        if op.f == "commit" and op.asked["offset"] < 0:
            yield (op.queue, str(op.asked["offset"])), []


RULES = {"A12": torn_batch, "C04.2": misplaced, "C07": to_minimum}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
