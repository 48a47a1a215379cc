"""Verifies the certificates of C13: returned messages and dead letters.

python -m mqproof.conformance.history.return_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.undisturbed import MS, interval, intervals
from mqproof.conformance.history.verification import NEVER, Facts, History, Op, main

DEAD = "%DLQ%"
DEFAULTS: dict[str, Any] = {"reconsume_max": 16, "retry_delays_ms": ()}
Place = tuple[str, int]


class Returns:
    """What happened to one message in one group."""

    def __init__(self) -> None:
        self.failed: Op | None = None
        self.most, self.dead, self.done = -1, NEVER, set[Place]()
        self.kept = dict[Place, tuple[Op, int, int]]()
        """For each place, the last call that failed, its number of returns, and the number that is stored."""

    def call(self, op: Op, place: Place, times: int) -> None:
        if op.outcome == "ok":
            self.kept.pop(place, None)
            self.done.add(place)
            return
        self.kept[place] = op, times, self.kept[place][2] if place in self.kept else times
        is_sooner = self.failed is not None and op.ended < self.failed.ended
        if times > self.most or (times == self.most and is_sooner):
            self.failed, self.most = op, times

    def refuses(self, op: Op, place: Place, times: int, group: dict[str, Any], skew: int) -> bool:
        """Return whether a call is too early or one too many."""
        most, delays = (group.get(name, other) for name, other in DEFAULTS.items())
        if self.dead < op.start or times > self.most + 1:
            return True
        if times > most:  # its consumer may still have it, and retries
            return place not in self.kept or self.kept[place][1] != times - 1
        if self.failed is None or times != self.most + 1 or self.most >= len(delays):
            return False
        since = self.failed.ended if self.failed.ended < NEVER else self.failed.began
        return bool(op.began < since + delays[self.most] * MS - skew)


def returns(history: History) -> Facts:
    """C13: messages that return too early or too often, or do not become dead letters when they must."""
    found, skew = defaultdict[tuple[str, str], Returns](Returns), history.setup.get("skew_ms", 0) * MS
    for op in history.reads:
        group = op.queue.split("/")[0].removeprefix(DEAD)
        for message in op.read if op.queue.startswith(DEAD) else ():
            was = found[group, message["id"]]
            if was.dead == NEVER and was.most < history.groups[group].get("reconsume_max", 16):
                yield (message["id"],), []
            was.dead = min(was.dead, op.at)
        is_call = op.f == "consume" and not history.groups[op.group].get("broadcast")
        for message in op.read if is_call and not op.queue.startswith(DEAD) else ():
            was, place = found[op.group, message["id"]], (op.queue, message["offset"])
            if was.refuses(op, place, message.get("times", 0), history.groups[op.group], skew):
                yield (message["id"],), []
            was.call(op, place, message.get("times", 0))
    yield from missing(history, found, skew)


def missing(history: History, found: dict[tuple[str, str], Returns], skew: int) -> Facts:
    """Yield the messages that are not among the dead letters although they must, or did not return."""
    drained, moves = dict[str, int](), defaultdict[Any, list[Op]](list)
    sends = {message["id"]: op for op in history.ops for message in op.sent}
    for op in history.ops:
        if op.f == "drain" and op.end < NEVER:
            topics = (each for each in op.asked.get("topics", ()) if each.startswith(DEAD))
            drained.update((each.removeprefix(DEAD), op.start) for each in topics)
        elif op.f == "assign":
            moves[op.group, op.client].append(op)

    def is_taken(op: Op) -> bool:
        """Return whether an assignment of the member during its call, or the next one, lacks the queue."""
        steps = [each for each in moves[op.group, op.client] if each.start > op.start]
        later = [each for n, each in enumerate(steps) if n == 0 or each.start < op.end]
        return any(step.asked.get("left") or op.queue not in step.asked.get("queues", ()) for step in later)

    calm, within = interval(intervals(history), NEVER - 1), history.setup.get("deliver_within_ms")
    for (group, id_), was in found.items():
        if was.dead < NEVER or group not in drained:
            continue
        most, delays = (history.groups[group].get(name, other) for name, other in DEFAULTS.items())
        last = [op for place, (op, _, stored) in was.kept.items()
                if stored >= most and not (place in was.done and is_taken(op))]  # fmt: skip
        sent, failed = sends.get(id_), was.failed if was.most < len(delays) else None
        is_late = False
        if calm and within is not None and failed and failed.outcome == "fail" and not was.done:
            wait = (delays[was.most] + within) * MS + skew
            is_late = history.last_time - max(failed.ended, calm[2]) > wait
        is_late &= sent is not None and not history.losses(status_of(sent), sent.end)
        if is_late or any(op.outcome == "fail" and op.end < drained[group] for op in last):
            yield (id_, group), []


def status_of(sent: Op) -> str:
    return str(sent.answered.get("status", ""))


RULES = {"C13": returns}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
