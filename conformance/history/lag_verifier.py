"""Verifies the certificates of A15 and C10.2: messages that readers reach too late.

python -m mqproof.conformance.history.lag_verifier HISTORY CERTIFICATES
"""

import sys
from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import Any

from mqproof.conformance.history.fates import Fates
from mqproof.conformance.history.undisturbed import MS
from mqproof.conformance.history.verification import NEVER, Facts, History, Op, main


def realtime_lag(history: History) -> Facts:
    """A15: the messages that a poll has not reached although they were acknowledged long before it."""
    bound, fates = history.setup.get("lag_max_ms"), Fates(history)
    draining = {op.group for op in history.ops if op.f == "drain"}
    newest, polls = dict[Any, int](), defaultdict[str, list[tuple[int, int]]](list)
    if bound is None:
        return
    for op in history.ops:
        if op.f == "poll" and op.outcome == "ok" and op.group not in draining:
            reached = max(op.asked.get("offset", -1), op.answered.get("next", -1)) - 1
            at = op.group, op.client, op.queue
            newest[at] = max(newest.get(at, -2), reached, *(message["offset"] for message in op.read))
            polls[op.queue].append((newest[at], op.began))
    for queue, each in polls.items():
        polls[queue] = sorted(each)
    latest = {queue: list(accumulate((began for _, began in each), max)) for queue, each in polls.items()}
    for sent, number, _ in history.placed:
        offset = sent.offset + number
        before = bisect_left(polls[sent.queue], (offset,))
        is_late = before and latest[sent.queue][before - 1] - sent.ended > bound * MS
        if is_late and fates.sent[sent.queue, offset] is sent:
            yield (sent.start, number), fates.lost(sent, number)


def head_block(history: History) -> Facts:
    """C10.2: the messages for which an orderly queue with an owner waits too long."""
    bound, fates, live = history.setup.get("stall_within_ms"), Fates(history), dict[tuple[str, str], bool]()
    last, furthest = dict[tuple[str, str], Op](), defaultdict[Any, int](lambda: -1)
    if bound is None:
        return
    for op in sorted(history.ops, key=lambda op: op.at):
        if op.f == "consume" and history.groups[op.group].get("orderly"):
            at = op.group, op.queue
            last[at], furthest[at] = op, max([furthest[at], *(each["offset"] for each in op.read[-1:])])
    for op in (each for each in history.ops if each.f == "assign"):
        live[op.group, op.client] = not op.asked.get("left")
    waiting = defaultdict[str, list[Any]](list)
    for sent, number, _ in history.placed:
        waiting[sent.queue].append((sent, number))
    for (group, queue), op in last.items():
        since = op.began if op.end == NEVER else op.ended
        for sent, number in waiting[queue] if live.get((group, op.client)) else ():
            offset, late = sent.offset + number, history.last_time - max(since, sent.ended) > bound * MS
            if late and offset > furthest[group, queue] and fates.sent[queue, offset] is sent:
                yield (group, sent.start, number), fates.lost(sent, number)


RULES = {"A15": realtime_lag, "C10.2": head_block}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
