"""The named invariants of redelivered messages; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from operator import le

from mqproof.conformance.engine.broker_faults import CRASHES, InjectFault
from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.retry.oracle import bound_for, wait_s
from mqproof.conformance.suites.retry.steps import LoseMessages, Operation, Read, Send, SendBack
from mqproof.conformance.suites.retry.target import Answer, Place, Setup

Key = tuple[str, int]
"""Message id, and how often the message was sent back."""


def no_phantom(setup: Setup, run: Run[Operation]) -> Finding:
    """DELIV-2 NoPhantom: every copy read was sent, and names the right original topic and message."""
    tally = Tally()
    origins: dict[str, str] = {}
    for step, operation in run.numbered():
        match operation:
            case Send():
                origins[operation.msg_id] = operation.origin
            case Read(copies=copies):
                for copy in copies:
                    tally.looked += 1
                    origin = origins.get(copy.msg_id)
                    if origin is None:
                        tally.found(f"step {step}: {copy} was never sent")
                    elif copy.topic != setup.topic:
                        tally.found(f"step {step}: {copy} says that it was sent to {copy.topic}")
                    elif copy.times and origin and copy.origin != origin:
                        tally.found(f"step {step}: {copy} says that it is a copy of {copy.origin}")
    return tally.finding("copies")


def duplicates_explained(setup: Setup, run: Run[Operation]) -> Finding:
    """DELIV-3 DuplicatesExplained: a message arrives no more often than it was sent and sent back.

    After a crash, delayed messages may arrive once more.
    """
    tally = Tally()
    causes: Counter[Key] = Counter()
    delayed: set[Key] = set()
    again: set[Key] = set()
    for step, operation in run.numbered():
        match operation:
            case Send(msg_id, level):
                causes[msg_id, 0] += 1
                delayed |= {(msg_id, 0)} if level else set()
            case SendBack(copy=copy) if copy is not None:
                causes[copy.msg_id, copy.times + 1] += 1
                delayed |= {(copy.msg_id, copy.times + 1)} if bound_for(setup, operation)[1] else set()
            case InjectFault(fault) if fault in CRASHES:
                again |= delayed
            case LoseMessages():
                causes = Counter(dict.fromkeys(causes, 0))
            case Read(copies=copies):
                for copy in copies:
                    tally.looked += 1
                    causes[copy[:2]] -= 1
                    if copy[:2] in again:
                        continue
                    if causes[copy[:2]] < 0 and any(key[0] == copy.msg_id for key in causes):
                        tally.found(f"step {step}: {copy} arrived more often than it was sent")
    return tally.finding("copies")


def retry_then_dead_letter(setup: Setup, retry_queues: int, run: Run[Operation]) -> Finding:
    """DELIV-7 RetryThenDeadLetter: a message sent back successfully arrives again, or becomes a dead letter.

    It becomes a dead letter after the maximum number of retries, not before and not later. Copies of one
    message look alike, and after a crash one may arrive twice. Therefore each message sent back needs a copy
    of its own that arrived when it was due, or later. The time of arrival is the time when its broker stored
    it, if that is known, however late it was read.
    """
    tally = Tally()
    ahead_s = _ahead_s(run)
    due_s: defaultdict[tuple[Key, Place], list[float]] = defaultdict(list)
    came_s: defaultdict[tuple[Key, Place], list[float]] = defaultdict(list)
    possible: Counter[tuple[Key, Place]] = Counter()
    for step, operation in run.numbered():
        match operation:
            case SendBack(copy=copy, answer=answer, span=span) if copy is not None and retry_queues:
                bound, waits_s = bound_for(setup, operation)
                to = (copy.msg_id, copy.times + 1), bound
                possible[to] += 1
                if answer is Answer.OK:
                    due_s[to].append(span.begin_s + waits_s - setup.clock_s)
            case LoseMessages():
                due_s.clear()
                came_s.clear()
            case Read(place, copies, span, settled) if place is not Place.TOPIC:
                for copy in copies:
                    key = copy[:2]
                    tally.looked += 1
                    other = Place.DEAD if place is Place.RETRY else Place.RETRY
                    if not possible[key, place] and possible[key, other]:
                        tally.found(f"step {step}: {copy} is in the {place}, but belongs in the {other}")
                    stored_s = span.end_s if copy.stored_s is None else copy.stored_s + ahead_s
                    came_s[key, place].append(min(span.end_s, stored_s))
                for (key, bound), due in due_s.items():
                    if settled and bound is place and not _all_came(due, came_s[key, place]):
                        tally.found(f"step {step}: {key[0]} (retry {key[1]}) never arrived in the {place}")
    return tally.finding("copies")


def _ahead_s(run: Run[Operation]) -> float:
    """Return the maximum by which the reader's clock is ahead of the broker's.

    It follows from the fact that a message is never read before it is stored.
    """
    reads = (operation for _, operation in run.numbered() if isinstance(operation, Read))
    between = (r.span.end_s - copy.stored_s for r in reads for copy in r.copies if copy.stored_s is not None)
    return min(between, default=0.0)


def _all_came(due_s: Sequence[float], came_s: Sequence[float]) -> bool:
    """Return whether each due time can be matched to its own arrival at that time or later.

    The latest times are paired first.
    """
    latest = sorted(came_s, reverse=True)
    return len(due_s) <= len(latest) and all(map(le, sorted(due_s, reverse=True), latest))


def not_early(setup: Setup, run: Run[Operation]) -> Finding:
    """DELIV-8 NotEarly: no copy is read before it can be due.

    After a crash a repeated copy looks the same as one that is still expected, so such copies are not judged.
    """
    tally = Tally()
    due_s: defaultdict[tuple[Key, Place], list[float]] = defaultdict(list)
    again: set[tuple[Key, Place]] = set()
    for step, operation in run.numbered():
        match operation:
            case Send(msg_id, level, _, span):
                due_s[(msg_id, 0), Place.TOPIC].append(span.begin_s + wait_s(setup, level))
            case SendBack(copy=copy, span=span) if copy is not None:
                place, waits_s = bound_for(setup, operation)
                due_s[(copy.msg_id, copy.times + 1), place].append(span.begin_s + waits_s)
            case Read(place=place, copies=copies, span=span):
                for copy in copies:
                    if (copy[:2], place) in again:
                        continue
                    times = due_s[copy[:2], place]
                    tally.looked += 1
                    if times and min(times) - setup.clock_s > span.end_s:
                        early_s = min(times) - span.end_s
                        tally.found(f"step {step}: {copy} arrived {early_s:.3f} s early")
                    elif times:
                        times.remove(min(times))
            case InjectFault(fault) if fault in CRASHES:
                again |= due_s.keys()
            case LoseMessages():
                due_s.clear()
    return tally.finding("copies")


def checkers(setup: Setup, retry_queues: int) -> Checkers[Operation]:
    return {
        "DELIV-2": partial(no_phantom, setup),
        "DELIV-3": partial(duplicates_explained, setup),
        "DELIV-7": partial(retry_then_dead_letter, setup, retry_queues),
        "DELIV-8": partial(not_early, setup),
    }
