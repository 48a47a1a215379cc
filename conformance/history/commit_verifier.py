"""Verifies the certificates of C06: committed offsets that go back.

python -m mqproof.conformance.history.commit_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.takeovers import takeovers, timeline
from mqproof.conformance.history.verification import ENDS, NEVER, Facts, History, Op, Reasons, main

Floor = tuple[int, int, str]
"""The least offset that is committed, the line since which it is, and the member that committed it."""
NOTHING: Floor = (-1, -1, "")


class Commits:
    """The commits of a group in a queue that may take effect, each with the least offset beside it."""

    def __init__(self) -> None:
        self.running = dict[int, list[Any]]()

    def begin(self, op: Op) -> None:
        for each in self.running.values():
            each[1] = min(each[1], op.asked["offset"])
        least = min([op.asked["offset"], *(each[0].asked["offset"] for each in self.running.values())])
        self.running[op.start] = [op, least]

    def end(self, op: Op) -> int:
        """Return the least offset beside an ended commit.

        Earlier commits of the member that were not answered have no effect from now on.
        """
        least = self.running.pop(op.start)[1]
        for start, (each, _) in list(self.running.items()):
            if op.outcome == "ok" and each.client == op.client and each.end == NEVER:
                del self.running[start]
        return int(least)


def offset_regression(history: History) -> Facts:
    """C06: offsets below what is committed, and listeners that begin below what their member received."""
    for op, offset in takeovers(history):
        if offset < op.answered["offset"]:
            yield (op.queue, str(offset)), []
    floors, commits = defaultdict[Any, Floor](lambda: NOTHING), defaultdict[Any, Commits](Commits)
    asked, moved, owned = dict[int, Floor](), dict[str, int](), dict[Any, Op]()
    for index, what, op in timeline(history):
        at, offset = (op.group, op.queue), op.asked.get("offset", -1)
        if what == "assign":
            moved[op.group], owned[op.group, op.client] = index, op
            continue
        floor = NOTHING if history.between(ENDS, floors[at][1], index) else floors[at]
        floors[at] = floor
        if what == "query":
            asked[op.start] = floor
        elif what == "query ended":
            offset, low = op.answered.get("offset", -1), min(asked[op.start][0], floor[0])
            if offset < low and not history.between(ENDS, op.start, index):
                yield (op.queue, str(offset)), []
            if not commits[at].running:
                floors[at] = offset, index, floor[2]
        elif what == "commit ended":
            if (least := commits[at].end(op)) > floor[0] and op.outcome == "ok":
                floors[at] = least, index, op.client
        else:
            commits[at].begin(op)
            if op.asked.get("reset"):
                floors[at] = min(offset, floor[0]), index, op.client
            elif offset < floor[0]:
                yield (op.queue, str(offset)), reassigned(op, floor, moved, owned)
                floors[at] = offset, index, op.client


def reassigned(op: Op, floor: Floor, moved: dict[str, int], owned: dict[Any, Op]) -> Reasons:
    """Return the assignments by which another member than that of the floor may commit."""
    own, last = owned.get((op.group, op.client)), moved.get(op.group, -1)
    if op.client == floor[2]:
        return []
    reasons = [("move", last)] if last > floor[1] else []
    return reasons + ([("owner", own.start)] if own and op.queue in own.asked.get("queues", ()) else [])


RULES = {"C06": offset_regression}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
