"""Verifies the certificates of A13 and C10.1: calls of orderly listeners.

python -m mqproof.conformance.history.call_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.verification import ENDS, NEVER, Facts, History, Op, main

MS = 1_000_000


def calls(history: History) -> list[Op]:
    """Return the calls of orderly listeners, in order."""
    found = [op for op in history.ops if op.f == "consume" and history.groups[op.group].get("orderly")]
    return sorted(found, key=lambda op: op.at)


def key_order(history: History) -> Facts:
    """A13: messages that begin after a later one of their key, or that a member passed after a failure."""
    last, failed = dict[Any, int](), dict[Any, Op]()
    begun = defaultdict[Any, set[int]](set)
    for op in calls(history):
        at = op.group, op.queue
        before = failed.pop(at, None)
        if before and op.read and op.client == before.client and before.end < op.start:
            there = before.read[0]
            is_dead = there.get("times", 0) >= history.groups[op.group].get("reconsume_max", 16)
            is_passed = op.read[0]["offset"] > there["offset"] and not is_dead
            if is_passed and not history.causes(op.group, before.start, op.start):
                yield (there["id"], op.queue), []
        if op.outcome == "fail" and op.read:
            failed[at] = op
        for message in [each for each in op.read if each["offset"] not in begun[at] and each.get("key")]:
            key = *at, message["key"]
            if message["offset"] < last.get(key, -1):
                yield (message["id"], op.queue), []
            last[key] = message["offset"]
        begun[at].update(message["offset"] for message in op.read)


def overlapping(history: History) -> Facts:
    """C10.1: calls that begin while another one has the lock of the queue."""
    working = dict[tuple[str, str], Op]()
    expires = history.setup.get("lock_expires_ms", 60_000) * MS
    trusted = history.setup.get("lock_trusted_ms", 30_000) * MS
    for op in calls(history):
        if history.groups[op.group].get("broadcast"):
            continue
        before = working.get((op.group, op.queue))
        if before and before.end >= op.start:
            ends = [
                line["time"] for line in history.faults if line["kind"] in ENDS and line["index"] < op.start
            ]
            forgotten = max(ends, default=-NEVER) >= before.began - trusted
            is_other = op.client != before.client
            expired = op.began - before.began > expires
            if not (expired or (is_other and (before.end == NEVER or forgotten))):
                yield (op.queue, op.group), []
        if not before or before.end < op.start or op.end > before.end or before.end == NEVER:
            working[op.group, op.queue] = op


RULES = {"A13": key_order, "C10.1": overlapping}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
