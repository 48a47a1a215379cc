"""The queues and offsets of the reference that explain the observations (reference/rules/pulling.py).

An unacknowledged commit may be stored at any later time while the broker runs, or never. The messages that an
expiry deleted are unknown until the queue is read. After a crash the offsets are those that were written
last, which may be any since the last certain write. Each of these leads to several states until an
observation decides.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault, InjectFault, found_after
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Explanation
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
from mqproof.conformance.suites.offsets.target import QUEUES, Message, Pulled
from mqproof.reference.rules import pulling
from mqproof.reference.rules.pulling import Answer, Queue, Status
from mqproof.reference.updates import with_item

Committed = tuple[int | None, ...]
_NOTHING: Final[Committed] = (None,) * QUEUES


class State(NamedTuple):
    """One possible state of the broker. Tuples are indexed by queue."""

    queues: tuple[Queue, ...] = (Queue(),) * QUEUES
    committed: Committed = _NOTHING
    written: frozenset[Committed] = frozenset({_NOTHING})
    """The offset tables that may have been written last."""
    open_commits: frozenset[tuple[int, int]] = frozenset()
    """(queue, offset) of the commits that the broker may still store."""


def after(state: State, operation: Operation) -> Iterable[State]:
    for noted in _noted(state):
        yield from _after(noted, operation)


def _noted(state: State) -> Iterator[State]:
    """Yield the states in which any of the open commits have been stored, in any order."""
    yield state
    for commit in state.open_commits:
        yield from _noted(_committed(state, *commit)._replace(open_commits=state.open_commits - {commit}))


def _after(state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case Send(queue_id, message):
            return _stored(state, queue_id, (message,))
        case Pull(queue_id, offset, count, expression, commit, answer):
            queue = state.queues[queue_id]
            if not _is(answer, queue, pulling.pulled(queue, offset, count, expression)):
                return ()
            return (state if commit is None else _committed(state, queue_id, commit),)
        case Hold():
            return _held(state, operation)
        case Commit(queue_id, offset, oneway):
            if oneway:
                return (state._replace(open_commits=state.open_commits | {(queue_id, offset)}),)
            return (_committed(state, queue_id, offset),)
        case Query(queue_id, offset):
            known = pulling.begins(state.queues[queue_id], state.committed[queue_id])
            return (state,) if offset in known else ()
        case Bounds(queue_id, low, high):
            queue = state.queues[queue_id]
            return (state,) if (queue.first, queue.end) == (low, high) else ()
        case Search(queue_id, found):
            queue = state.queues[queue_id]
            there = tuple(offset for offset, _ in found.times) == tuple(range(queue.first, queue.end))
            # If all messages have expired, releases return one end or the other.
            is_found = found.offset in pulling.found_by_time(found.times, found.requested_ms)
            return (state,) if there and (is_found or queue.first == queue.end) else ()
        case Expire():
            return _expired(state)
        case Write():
            return (state._replace(written=frozenset({state.committed})),)
        case InjectFault(fault):
            return _after_fault(state, fault)


def _committed(state: State, queue_id: int, offset: int) -> State:
    committed = with_item(state.committed, queue_id, offset)
    return state._replace(committed=committed, written=state.written | {committed})


def _after_fault(state: State, fault: BrokerFault) -> Iterator[State]:
    """Yield the states after the fault.

    Acknowledged messages stay. Open commits end with the broker process.
    """
    if fault not in ENDS:
        yield state
        return
    for found in found_after(fault, state.committed, state.written):
        yield State(state.queues, found, frozenset({found}))


def _stored(state: State, queue_id: int, messages: Iterable[Message]) -> tuple[State, ...]:
    queue = state.queues[queue_id]
    for message in messages:
        if message.offset != queue.end:
            return ()
        queue = queue._replace(tags=(*queue.tags, message.tag))
    return (state._replace(queues=with_item(state.queues, queue_id, queue)),)


def _held(state: State, operation: Hold) -> tuple[State, ...]:
    """Return the state after a pull that waited at the end of a queue; none if its answer is wrong.

    It waits for a message that the expression selects, and is answered soon after one arrives.
    """
    queue, sent = state.queues[operation.queue_id], operation.held.sent
    request = (operation.offset, operation.count, operation.expression)
    wanted = any(pulling.selects(operation.expression, message.tag) for message in sent)
    in_vain = not pulling.held(queue, operation.offset) or not wanted
    looks = [each for each in _growing(queue, sent) if each != queue or in_vain]
    explained = any(_is(operation.held.answer, each, pulling.pulled(each, *request)) for each in looks)
    return _stored(state, operation.queue_id, sent) if explained and not operation.late else ()


def _growing(queue: Queue, sent: Iterable[Message]) -> Iterator[Queue]:
    """Yield the queue before, between and after these messages: the broker may look at it at any such time.

    The broker looks at a waiting pull when a selected message arrives, and in a scan of all waiting pulls,
    which ignores tags.
    """
    yield queue
    for message in sent:
        queue = queue._replace(tags=(*queue.tags, message.tag))
        yield queue


def _is(pulled: Pulled, queue: Queue, answer: Answer) -> bool:
    """Return whether the target's answer agrees with the model.

    The checkers judge the identity of the messages.
    """
    offsets = tuple(message.offset for message in pulled.messages)
    return (
        (pulled.status, offsets) == (answer.status, answer.offsets)
        and answer.goes_on_at(pulled.next_offset)
        and (pulled.min_offset, pulled.max_offset) == (queue.first, queue.end)
    )


def _expired(state: State) -> Iterator[State]:
    """Yield the states after the oldest messages of all queues expired; their number is unknown."""
    firsts = (range(queue.first, queue.end + 1) for queue in state.queues)
    for chosen in product(*firsts):
        queues = (queue._replace(first=first) for queue, first in zip(state.queues, chosen, strict=True))
        yield state._replace(queues=tuple(queues))


def _describe(state: State) -> str:
    queues = [
        f"queue {number} has {queue.first}..{queue.end}, committed {committed}"
        for number, (queue, committed) in enumerate(zip(state.queues, state.committed, strict=True))
    ]
    return ", ".join(queues)


def _action(operation: Operation) -> str:
    """Return the action of Delivery.tla for the operation; a mere observation has none."""
    match operation:
        case Send():
            return "Store"
        case Pull(answer=answer) | Hold(held=answer):
            status = answer.status if isinstance(answer, Pulled) else answer.answer.status
            return {Status.FOUND: "Deliver", Status.MOVED: "CorrectOffset"}.get(status, "(observation)")
        case Commit():
            return "CommitOffset"
        case Expire():
            return "(expiry)"
        case InjectFault(fault) if fault in ENDS:
            return "(stop)"
    return "(observation)"


EXPLANATION: Final[Explanation[State, Operation]] = Explanation((State(),), after, _describe, _action)
