"""The named invariants of pulls and offsets; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from mqproof.conformance.engine.broker_faults import CRASHES, BrokerFault, InjectFault
from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.offsets.steps import (
    Bounds,
    Commit,
    Expire,
    Hold,
    Operation,
    Pull,
    Search,
    Send,
    Write,
)
from mqproof.conformance.suites.offsets.target import Message, Pulled
from mqproof.reference.rules.pulling import Status, selects


def no_acked_lost(run: Run[Operation]) -> Finding:
    """DELIV-1 NoAckedLost: an answer that moves the consumer does not move it past an existing message."""
    tally = Tally()
    for step, pull, answer, _ in _reads(run):
        if answer.status is Status.MOVED:
            tally.looked += 1
            low = min(max(pull.offset, answer.min_offset), answer.max_offset)
            if answer.next_offset > low:
                tally.found(
                    f"step {step}: from {pull.offset} to {answer.next_offset}, past messages from {low} on"
                )
    return tally.finding("moves")


def no_phantom(run: Run[Operation]) -> Finding:
    """DELIV-2 NoPhantom: every pulled message was sent to that queue and has the offset its send returned."""
    tally = Tally()
    for step, pull, answer, sent in _reads(run):
        for message in answer.messages:
            tally.looked += 1
            if message not in sent.get(pull.queue_id, ()):
                tally.found(f"step {step}: {message} was not sent to queue {pull.queue_id}")
    return tally.finding("messages")


def queue_order(run: Run[Operation]) -> Finding:
    """DELIV-4 QueueOrder: the offsets in an answer rise, from the requested offset to the next one."""
    tally = Tally()
    for step, pull, answer, _ in _reads(run):
        if answer.messages:
            tally.looked += 1
            offsets = [pull.offset - 1, *(message.offset for message in answer.messages), answer.next_offset]
            if any(before >= then for before, then in pairwise(offsets)):
                tally.found(f"step {step}: offsets {offsets[1:-1]}, next {answer.next_offset}")
    return tally.finding("answers")


def offset_monotone(run: Run[Operation]) -> Finding:
    """DELIV-5 OffsetMonotone: a query returns no less than the last commit that was acknowledged.

    An ambiguous commit may explain a lower offset. After a crash, the limit is the offset that was written.
    """
    tally = Tally()
    last: dict[int, int] = {}
    unknown: dict[int, set[int]] = {}
    written: dict[int, set[int]] = {}
    """Queue to the offsets that may have been written last, for queues with any."""
    for step, operation in run.numbered():
        match operation:
            case Commit(queue_id, offset, oneway):
                written.setdefault(queue_id, {0}).add(offset)
                if oneway:
                    unknown.setdefault(queue_id, set()).add(offset)
                else:
                    last[queue_id] = offset
            case Pull(queue_id=queue_id, commit=int(offset)):
                written.setdefault(queue_id, {0}).add(offset)
                last[queue_id] = offset
            case Write() | InjectFault(BrokerFault.RESTART):
                written = {
                    queue_id: {offset, *unknown.get(queue_id, ())} for queue_id, offset in last.items()
                }
            case InjectFault(fault) if fault in CRASHES:
                last = {queue_id: min(offsets) for queue_id, offsets in written.items()}
            case Query(queue_id, offset) if queue_id in last:
                tally.looked += 1
                allowed = {last[queue_id], *unknown.get(queue_id, ())}
                if (offset or 0) < min(allowed):
                    tally.found(f"step {step}: {offset} of queue {queue_id}, {last[queue_id]} was committed")
    return tally.finding("queries")


def filter_sound(run: Run[Operation]) -> Finding:
    """DELIV-10 FilterSound: a pull returns all messages that the expression selects, and no others.

    This applies to the offsets between the requested and the next one. The broker compares hashes only.
    """
    tally = Tally()
    for step, pull, answer, sent in _reads(run):
        if answer.status not in (Status.FOUND, Status.NO_MATCHED):
            continue
        passed = [m for m in sent.get(pull.queue_id, ()) if pull.offset <= m.offset < answer.next_offset]
        for message in passed:
            tally.looked += 1
            selected = selects(pull.expression, message.tag)
            if selected and message not in answer.messages and message.offset >= answer.min_offset:
                tally.found(f"step {step}: {message} was skipped, but {pull.expression} selects it")
            if not selected and message in answer.messages:
                tally.found(f"step {step}: {message} was returned, but {pull.expression} does not select it")
    return tally.finding("messages")


def _reads(run: Run[Operation]) -> Iterator[tuple[int, Pull | Hold, Pulled, dict[int, list[Message]]]]:
    """Yield (step, pull, its answer, messages sent before it by queue)."""
    sent: dict[int, list[Message]] = {}
    for step, operation in run.numbered():
        match operation:
            case Send(queue_id, message):
                sent.setdefault(queue_id, []).append(message)
            case Pull():
                yield step, operation, operation.answer, sent
            case Hold(queue_id=queue_id, held=held):
                sent.setdefault(queue_id, []).extend(held.sent)
                yield step, operation, held.answer, sent
            case Bounds() | Commit() | Query() | Search() | Expire() | Write() | InjectFault():
                pass


CHECKERS: Final[Checkers[Operation]] = {
    "DELIV-1": no_acked_lost,
    "DELIV-2": no_phantom,
    "DELIV-4": queue_order,
    "DELIV-5": offset_monotone,
    "DELIV-10": filter_sound,
}
