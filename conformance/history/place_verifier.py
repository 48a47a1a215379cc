"""Verifies the certificates of A04, A06 and A11: the places of messages.

python -m mqproof.conformance.history.place_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict

from mqproof.conformance.history.verification import ENDS, Facts, History, Op, main


def duplicate_offset(history: History) -> Facts:
    """A06: the messages at two places."""
    sends, delays = defaultdict[str, list[Op]](list), dict[str, bool]()
    for op in history.ops:
        for message in op.sent:
            sends[message["id"]].append(op)
            delays[message["id"]] = "deliver_at" in message
    seen = [
        (op.sent[0]["id"], (op.queue, op.offset), op.end) for op, number, _ in history.placed if not number
    ]
    own = [op for op in history.reads if op.queue[0] != "%"]
    seen += [(message["id"], (op.queue, message["offset"]), op.at) for op in own for message in op.read]
    places, again = dict[str, tuple[str, int]](), dict[str, int]()
    for id_, place, at in seen:
        if places.setdefault(id_, place) != place:
            again.setdefault(id_, at)
    for id_, at in again.items():
        mine = sends[id_]
        reasons = [("retry", op.start) for op in mine if op.tries > 1 or len(mine) > 1]
        yield (id_,), reasons + (history.between(ENDS, mine[-1].start, at) if delays.get(id_) else [])


def phantom(history: History) -> Facts:
    """A04: the delivered messages."""
    sends, reads = defaultdict[str, list[Op]](list), defaultdict[str, list[Op]](list)
    for op in history.ops:
        for message in op.sent:
            sends[message["id"]].append(op)
    for op in history.reads:
        for message in op.read:
            reads[message["id"]].append(op)
    for id_, mine in reads.items():
        topics = {op.queue.split("/")[0] for op in mine if op.queue[0] != "%"}
        sound = any(op.outcome != "fail" for op in sends[id_]) and topics <= {sends[id_][-1].asked["topic"]}
        yield (id_,), [("sent", op.start) for op in sends[id_] if sound and op.start < mine[0].at]


def nonmonotonic_send(history: History) -> Facts:
    """A11: the sends of a process that are in the queue before its last one."""
    last = dict[tuple[int | str, str], Op]()
    for op in (each for each, number, _ in history.placed if not number):
        before, last[op.process, op.queue] = last.get((op.process, op.queue)), op
        if before is not None and op.offset < before.offset:
            yield (op.start,), history.losses(before.answered["status"], before.end, op.end)


RULES = {"A04": phantom, "A06": duplicate_offset, "A11": nonmonotonic_send}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
