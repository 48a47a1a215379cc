"""Verifies the certificates of A07: repeated deliveries.

python -m mqproof.conformance.history.repetition_verifier HISTORY CERTIFICATES
"""

import sys
from bisect import bisect_left
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.verification import Facts, History, Op, main


def duplicate_delivery(history: History) -> Facts:
    """A07: the places that a group, or a member of a broadcast group, received again."""
    assigned = defaultdict[Any, list[Op]](list)
    for op in (each for each in history.ops if each.f == "assign"):
        assigned[op.group, op.client].append(op)
    last = dict[tuple[str, str, int], Op]()
    for op in (each for each in history.reads if each.f != "pop"):
        receiver = f"{op.group} {op.client}" if history.groups[op.group].get("broadcast") else op.group
        for message in op.read:
            place = receiver, op.queue, message["offset"]
            before, last[place] = last.get(place), op
            if before is None:
                continue
            reasons = history.causes(op.group, before.start, op.at)
            reasons += [("failed", before.start)] * (before.f == "consume" and before.outcome != "ok")
            reasons += [("seek", op.start)] * bool(op.asked.get("seek"))
            if op.client != before.client:
                steps = assigned[op.group, op.client]
                owned = steps[: bisect_left(steps, before.at, key=lambda each: each.start)][-1:]
                reasons += [("owner", e.start) for e in owned if op.queue in e.asked.get("queues", ())]
            yield (op.start, message["offset"]), reasons


RULES = {"A07": duplicate_delivery}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
