"""Verifies the certificates of C11 and C15: pops and broadcasts.

python -m mqproof.conformance.history.pop_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.verification import NEVER, Facts, History, Op, main

MS = 1_000_000


def invisibility(history: History) -> Facts:
    """C11: messages popped while they are invisible, or after their acknowledgement, or never again."""
    skew, within = history.setup.get("skew_ms", 0) * MS, history.setup.get("deliver_within_ms")
    asked, acked = set[Any](), dict[Any, int]()
    hidden, last, again = dict[Any, Op](), dict[Any, int](), list[Any]()
    for op in history.ops:
        if op.f == "ack":
            place = op.group, op.queue, op.asked["offset"]
            asked.add(place)
            if op.outcome == "ok":
                acked.setdefault(place, op.end)
        elif op.f == "pop" and op.outcome == "ok":
            last[op.group, op.queue] = op.began
            for message in op.read:
                place = op.group, op.queue, message["offset"]
                before, hidden[place] = hidden.get(place), op
                if before and op.ended < before.began + before.asked.get("invisible_ms", 0) * MS - skew:
                    yield (message["id"],), []
                again += [(message["id"], place, op.start)] if before else []
    yield from (((id_,), []) for id_, place, start in again if acked.get(place, NEVER) < start)
    for place, op in hidden.items() if within is not None else ():
        due = op.ended + (op.asked.get("invisible_ms", 0) + within) * MS + skew
        if place not in asked and last[place[:2]] > due:
            yield (place[1], str(place[2])), []


def broadcast_gap(history: History) -> Facts:
    """C15: places between the first and the last that a member received, which others received only."""
    everything, received = defaultdict[str, set[int]](set), defaultdict[Any, set[int]](set)
    for op in history.reads:
        found = {message["offset"] for message in op.read}
        everything[op.queue] |= found
        if history.groups[op.group].get("broadcast"):
            received[op.client, op.queue] |= found
    for (_, queue), mine in received.items():
        for offset in everything[queue] - mine:
            if min(mine) < offset < max(mine):
                yield (queue, str(offset)), []


RULES = {"C11": invisibility, "C15": broadcast_gap}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
