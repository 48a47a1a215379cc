"""The states of the group model that explain the observations of a group (reference/group.py).

The oracle takes only the reference's own actions, except for faults of the broker. After a crash the offsets
are those that were written last, which may be any earlier offsets. An unacknowledged commit may be stored at
any later time while the broker runs, or never; all possibilities are kept until an observed offset decides.
The owner of a queue follows from the allocation of reference/rules/allocation.py over the present members;
the model leaves it open.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final, NamedTuple

from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault, InjectFault, found_after
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.delivery.steps import (
    Change,
    Commit,
    Deliver,
    Membership,
    Operation,
    Rebalance,
    Reset,
    Send,
)
from mqproof.conformance.suites.delivery.target import MEMBERS, QUEUES
from mqproof.reference import delivery, group
from mqproof.reference.rules import allocation
from mqproof.reference.updates import replace

NAMES: Final = tuple(f"q{number}" for number in range(QUEUES))


class State(NamedTuple):
    messages: tuple[str, ...]
    """The model knows all messages in advance; a run adds them one by one."""
    inner: group.State
    live: frozenset[str] = frozenset()
    open_commits: frozenset[tuple[int, int]] = frozenset()
    """(queue, offset) of the commits that the broker may still store."""
    written: frozenset[tuple[int, ...]] = frozenset({(0,) * QUEUES})
    """The offset tables of the group that may have been written last."""


def assigned_queues(ids: Set[str], member: str) -> frozenset[int]:
    """Return the queues of a member, as clients allocate them."""
    return frozenset(allocation.averagely(range(QUEUES), sorted(ids), member))


def _config(messages: tuple[str, ...]) -> group.Config:
    return group.Config(delivery.Config(messages, NAMES), MEMBERS)


INITIAL: Final = State((), group.initial(_config(()))[0])


def after(state: State, operation: Operation) -> Iterable[State]:
    for noted in _noted(state):
        yield from _after(noted, operation)


def _noted(state: State) -> Iterator[State]:
    """Yield the states in which any of the open commits have been stored, in any order."""
    yield state
    for commit in state.open_commits:
        left = state._replace(open_commits=state.open_commits - {commit})
        yield from _noted(_committed(left, *commit))


def _after(state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case Send(queue_id, message):
            return _stored(state, queue_id, message.msg_id, message.offset)
        case Membership():
            return _changed(state, operation)
        case Rebalance():
            return _rebalanced(state, operation)
        case Deliver():
            return _delivered(state, operation)
        case Commit(_, queue_id, offset, oneway, only_forward):
            if oneway:
                return (state._replace(open_commits=state.open_commits | {(queue_id, offset)}),)
            if only_forward and offset <= state.inner.service.committed[queue_id]:
                return (state,)
            return (_committed(state, queue_id, offset),)
        case Query(queue_id, offset):
            return (state,) if _is_committed(state, queue_id, offset) else ()
        case Reset(offsets):
            return _reset(state, dict(offsets))
        case InjectFault(fault):
            return _after_fault(state, fault)
    return (state,)


def _reset(state: State, offsets: Mapping[int, int]) -> tuple[State, ...]:
    """Return the state after a reset: readers go back, and the broker has the offset once it is committed."""
    inner, committed = state.inner, state.inner.service.committed
    for q, offset in offsets.items():
        inner = group.go_back(inner, q, offset)
    return (state._replace(inner=replace(inner, service=replace(inner.service, committed=committed))),)


def _after_fault(state: State, fault: BrokerFault) -> Iterator[State]:
    """Yield the states after the fault.

    Except after a freeze, members must join again. After a crash the last written offsets apply.
    """
    if fault is BrokerFault.FREEZE:
        yield state
        return
    service, ends = state.inner.service, fault in ENDS
    for found in found_after(fault, service.committed, state.written):
        inner = replace(state.inner, service=replace(service, committed=found))
        no_members = state._replace(inner=inner, live=frozenset())
        yield (
            no_members._replace(open_commits=frozenset(), written=frozenset({found})) if ends else no_members
        )


def _stored(state: State, queue_id: int, msg_id: str, offset: int) -> tuple[State, ...]:
    service = state.inner.service
    if offset != len(service.queue[queue_id]):
        return ()
    admitted = replace(service, answer=(*service.answer, "unsent"), sends=(*service.sends, 0))
    grown = State((*state.messages, msg_id), replace(state.inner, service=admitted), *state[2:])
    return _take(grown, ("Send", msg_id), ("Store", NAMES[queue_id], msg_id), ("Acknowledge", msg_id))


def _changed(state: State, operation: Membership) -> tuple[State, ...]:
    """Return the states after a membership change.

    All present members are notified, and the queues are allocated again.
    """
    member = operation.member
    comes = operation.change in (Change.JOINS, Change.RETURNS)
    live = state.live | {member} if comes else state.live - {member}
    if not live - {member} <= operation.notified:
        return ()
    steps: list[tuple[str, ...]] = []
    if not comes and any(at != group.IDLE for at in _positions(state, member)):
        steps.append(("ConsumerCrash", member))
    for each in sorted(live):
        steps += [("Rebalance", NAMES[q], each) for q in assigned_queues(live, each)]
    return tuple(each._replace(live=live) for each in _take(state, *steps, skip=("Rebalance",)))


def _rebalanced(state: State, operation: Rebalance) -> tuple[State, ...]:
    if operation.ids != state.live:
        return ()
    member, positions = operation.member, _positions(state, operation.member)
    lost = [q for q in range(QUEUES) if positions[q] != group.IDLE and q not in operation.queues]
    begun = [("Start", member, NAMES[queue_id]) for queue_id, _ in operation.started]
    if not all(_is_committed(state, queue_id, offset) for queue_id, offset in operation.started):
        return ()
    return _take(state, *(("Release", member, NAMES[q]) for q in lost), *begun)


def _delivered(state: State, operation: Deliver) -> tuple[State, ...]:
    member, q = operation.member, operation.queue_id
    entries = state.inner.service.queue[q]
    ids = [message.msg_id for message in operation.messages]
    offsets = [message.offset for message in operation.messages]
    begin, end = operation.offset, operation.offset + len(ids)
    if _positions(state, member)[q] != begin or (not ids and begin < len(entries)):
        return ()
    if tuple(ids) != entries[begin:end] or offsets != list(range(begin, end)):
        return ()
    return _take(state, *(("Deliver", member, NAMES[q]) for _ in ids))


def _committed(state: State, queue_id: int, offset: int) -> State:
    """Return the state after a commit.

    The broker accepts any offset; members only commit offsets ahead of its own.
    """
    service = state.inner.service
    committed = delivery.changed(service.committed, queue_id, offset)
    inner = replace(state.inner, service=replace(service, committed=committed))
    return state._replace(inner=inner, written=state.written | {committed})


def _is_committed(state: State, queue_id: int, offset: int | None) -> bool:
    service = state.inner.service
    empty = not service.queue[queue_id] and offset is None
    return empty or service.committed[queue_id] == offset


def _positions(state: State, member: str) -> tuple[int, ...]:
    return state.inner.position[MEMBERS.index(member)]


def _take(state: State, *steps: tuple[str, ...], skip: tuple[str, ...] = ()) -> tuple[State, ...]:
    """Return the state after these actions.

    There is none if an action is disabled, unless the action is listed in `skip`.
    """
    config, inner = _config(state.messages), state.inner
    for action, *parameters in steps:
        taken = group.MODEL.actions[action].apply(config, inner, *parameters)
        if taken is None and action not in skip:
            return ()
        inner = inner if taken is None else taken
    return (state._replace(inner=inner),)


def _describe(state: State) -> str:
    service = state.inner.service
    queues = [
        f"queue {q} has {len(service.queue[q])}, committed {service.committed[q]}" for q in range(QUEUES)
    ]
    return f"members {sorted(state.live)}; {', '.join(queues)}"


def _action(operation: Operation) -> str:
    """Return the action of Group.tla for the operation; a mere observation has none."""
    match operation:
        case Send():
            return "Store"
        case Membership(change=change):
            return "Rebalance" if change in (Change.JOINS, Change.RETURNS) else "ConsumerCrash"
        case Rebalance():
            return "Start"
        case Deliver():
            return "Deliver"
        case Commit():
            return "CommitOffset"
        case Reset():
            return "Reset"
    return "(observation)"


EXPLANATION: Final[Explanation[State, Operation]] = Explanation((INITIAL,), after, _describe, _action)
