"""Verifies the certificates of C09: queues with two owners or none.

python -m mqproof.conformance.history.owner_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.verification import Facts, History, main


def double_owned(history: History) -> Facts:
    """C09: the queues that had two owners, or none, for too long."""
    if (bound := history.setup.get("rebalance_within_ms")) is None:
        return
    groups, known = defaultdict[str, dict[str, set[str]]](dict), defaultdict[str, set[str]](set)
    since = dict[tuple[str, str, int], int]()
    for op in history.ops:
        if op.f != "assign" or history.groups[op.group].get("broadcast"):
            continue
        members, queues = groups[op.group], set(op.asked.get("queues", ()))
        before, now = members.pop(op.client, set()), set() if op.asked.get("left") else queues
        members.update({} if op.asked.get("left") else {op.client: now})
        known[op.group] |= now
        for queue in before | now if members else known[op.group]:
            owners = sum(queue in each for each in members.values())
            for count, is_so in ((2, owners > 1), (0, owners == 0 and bool(members))):
                at = op.group, queue, count
                if not is_so and op.began - since.pop(at, op.began) > bound * 1_000_000:
                    yield (queue, op.group), []
                elif is_so:
                    since.setdefault(at, op.began)
    for (group, queue, _), time in since.items():
        if history.last_time - time > bound * 1_000_000:
            yield (queue, group), []


RULES: Any = {"C09": double_owned}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
