"""The lock tables that explain the grants of a broker (reference/order_lock.py).

Locks change owner only by the reference's own actions. The exact time of a grant is unknown; it lies within
its request. Near the end of its lease a lock may be refused to others, or not. A request with a lost answer
may take its locks at any later time while the broker runs, or never. Locks are in memory only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Final, NamedTuple

from mqproof.conformance.engine.broker_faults import ENDS, InjectFault
from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.ordering.steps import Lock, Operation, Unlock
from mqproof.conformance.suites.ordering.target import GROUPS, MEMBERS, QUEUES
from mqproof.reference import order_lock
from mqproof.reference.order_lock import NO_MEMBER
from mqproof.reference.updates import with_item

_CONFIG: Final = order_lock.Config(MEMBERS, lock_lease=1)
"""The configuration of the model, in which a lease is one tick."""
_BLANK: Final = order_lock.initial(_CONFIG)[0]
SLOTS: Final = tuple((group, queue_id) for group in GROUPS for queue_id in range(QUEUES))


class Held(NamedTuple):
    holder: str = NO_MEMBER
    granted: Span = Span(0.0, 0.0)
    """The time span of the last grant."""


class State(NamedTuple):
    table: tuple[Held, ...] = (Held(),) * len(SLOTS)
    unheard: frozenset[Lock] = frozenset()
    """Requests that may still take their locks."""


def explanation(lease_s: float) -> Explanation[State, Operation]:
    return Explanation((State(),), partial(_after, lease_s), _describe, _action)


def _after(lease_s: float, state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case Lock(granted=None):
            yield state._replace(unheard=state.unheard | {operation})
        case Lock() | Unlock():
            for taken in _taken(lease_s, state, operation.span):
                if isinstance(operation, Lock):
                    yield from _granted(lease_s, taken, operation)
                else:
                    yield _given_back(taken, operation)
        case InjectFault(fault) if fault in ENDS:
            yield State()
        case _:
            yield state


def _taken(lease_s: float, state: State, now: Span) -> set[State]:
    """Return the states in which any requests with lost answers have taken their locks, in any order."""
    found, unexamined = {state}, [state]
    while unexamined:
        each = unexamined.pop()
        for lock in each.unheard:
            left = each._replace(unheard=each.unheard - {lock})
            late = replace(lock, span=Span(lock.span.begin_s, now.end_s))
            new = set(_granted(lease_s, left, late)) - found
            found |= new
            unexamined += new
    return found


def _granted(lease_s: float, state: State, lock: Lock) -> list[State]:
    """Return the states after a request with that answer; with any answer, if it was lost."""
    tables = [state.table]
    for queue_id in lock.queues:
        slot = SLOTS.index((lock.group, queue_id))
        tables = [
            with_item(table, slot, held)
            for table in tables
            for granted, held in _requested(lease_s, table[slot], lock)
            if lock.granted is None or granted == (queue_id in lock.granted)
        ]
    return [State(table, state.unheard) for table in tables]


def _requested(lease_s: float, held: Held, lock: Lock) -> Iterator[tuple[bool, Held]]:
    """Yield (granted, the lock afterwards) of LockQueue, for each possible state of the lease."""
    for over in _over(lease_s, held, lock.span):
        holder = _holder_after(held.holder, lock.member, over=over)
        yield (False, held) if holder is None else (True, Held(holder, lock.span))


@cache
def _holder_after(holder: str, member: str, *, over: bool) -> str | None:
    """Return the holder after the model's LockQueue of a member; None if the lock is refused."""
    m = MEMBERS.index(member)
    request = _BLANK._replace(holder=holder, held=int(over), asking=with_item(_BLANK.asking, m, "asked"))
    after = order_lock.lock_queue(_CONFIG, request, member)
    assert after is not None
    return after.holder if after.asking[m] == "granted" else None


def _over(lease_s: float, held: Held, span: Span) -> Iterator[bool]:
    """Yield each value that "the lease is over" may have."""
    if span.begin_s - held.granted.end_s <= lease_s:
        yield False
    if span.end_s - held.granted.begin_s >= lease_s:
        yield True


def _given_back(state: State, unlock: Unlock) -> State:
    """Return the state after UnlockQueue; locks of other members stay unchanged."""
    table = state.table
    for queue_id in unlock.queues:
        slot = SLOTS.index((unlock.group, queue_id))
        leaving = _BLANK._replace(holder=table[slot].holder, leaving=frozenset({unlock.member}))
        after = order_lock.unlock_queue(_CONFIG, leaving, unlock.member)
        assert after is not None
        table = with_item(table, slot, table[slot]._replace(holder=after.holder))
    return state._replace(table=table)


def _describe(state: State) -> str:
    held = [
        f"queue {queue_id} of {group}: {held.holder} since {held.granted.begin_s:.3f} s"
        for (group, queue_id), held in zip(SLOTS, state.table, strict=True)
        if held.holder != NO_MEMBER
    ]
    return ", ".join(held) or "no lock is held"


def _action(operation: Operation) -> str:
    """Return the action of OrderLock.tla for the operation."""
    match operation:
        case Lock(granted=None):
            return "Lose"
        case Lock():
            return "LockQueue"
        case Unlock():
            return "UnlockQueue"
        case InjectFault(fault):
            return "(stop)" if fault in ENDS else "(fault)"
        case _:
            return {"Begin": "Begin", "End": "End"}.get(type(operation).__name__, "Tick")
