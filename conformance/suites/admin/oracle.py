"""The settings, messages and offsets that explain the answers of a broker.

See reference/rules/administration.py.

Releases differ in whether offsets outlive their topic, and in whether the messages of a deleted topic are
found. The oracle keeps both possibilities until an answer decides, or the suite does not query them. After a
crash the offsets are those that were written last, which may be any earlier offsets.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault, InjectFault, found_after
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.admin.steps import (
    ById,
    ByKey,
    Clone,
    Commit,
    DeleteGroup,
    DeleteTopic,
    MakeGroup,
    MakeTopic,
    Operation,
    Pull,
    Query,
    Send,
    ShowGroup,
    ShowTopic,
)
from mqproof.reference.rules import administration
from mqproof.reference.rules.administration import Group, Topic
from mqproof.reference.rules.pulling import Queue, begins, tag_hash

T = TypeVar("T")

Offsets = frozenset[tuple[str, str, int, int]]
"""Group, topic, queue and offset."""


class Stored(NamedTuple):
    """A message of a topic that has not been deleted since."""

    msg_id: str
    topic: str
    queue_id: int
    keys: tuple[str, ...]


class State(NamedTuple):
    topics: frozenset[tuple[str, Topic]] = frozenset()
    groups: frozenset[tuple[str, Group]] = frozenset()
    stored: tuple[Stored, ...] = ()
    """The messages in the order in which they were stored."""
    gone: frozenset[Stored] = frozenset()
    """The messages of deleted topics."""
    offsets: Offsets = frozenset()
    written: frozenset[Offsets] = frozenset({Offsets()})
    """The offset tables that may have been written last."""

    def topic(self, name: str) -> Topic | None:
        return dict(self.topics).get(name)

    def group(self, name: str) -> Group | None:
        return dict(self.groups).get(name)

    def queue(self, topic: str, queue_id: int) -> tuple[str, ...]:
        return tuple(m.msg_id for m in self.stored if (m.topic, m.queue_id) == (topic, queue_id))

    def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        return {key[:3]: key[3] for key in self.offsets}.get((group, topic, queue_id))


def after(state: State, operation: Operation) -> Iterable[State]:
    if isinstance(operation, InjectFault):
        yield from _after_fault(state, operation.fault)
        return
    for each in _after(state, operation):
        yield each._replace(written=each.written | {each.offsets})


def _after_fault(state: State, fault: BrokerFault) -> Iterable[State]:
    """Return the states after the fault: settings and messages are unchanged, offsets may be older."""
    if fault not in ENDS:
        return (state,)
    found = found_after(fault, state.offsets, state.written)
    return (state._replace(offsets=offsets, written=frozenset({offsets})) for offsets in found)


def _after(state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case MakeTopic(topic, settings):
            return (state._replace(topics=_put(state.topics, topic, settings)),)
        case DeleteTopic(topic):
            return _without(state, topic)
        case MakeGroup(group, settings):
            return (state._replace(groups=_put(state.groups, group, settings)),)
        case DeleteGroup(group):
            kept = frozenset(each for each in state.offsets if each[0] != group)
            return (state._replace(groups=_put(state.groups, group, None), offsets=kept),)
        case Send():
            return _sent(state, operation)
        case Commit(group, topic, queue_id, offset, taken):
            return (_committed(state, group, topic, queue_id, offset),) if taken else (state,)
        case Clone():
            return _cloned(state, operation)
    return (state,) if _is_observable(state, operation) else ()


def _is_observable(state: State, operation: Operation) -> bool:
    """Return whether the answer of the operation is one that the broker may give in the state."""
    match operation:
        case ShowTopic(topic, settings):
            return state.topic(topic) == settings
        case ShowGroup(group, settings):
            return state.group(group) == settings
        case Pull(group, topic, queue_id, found):
            may = administration.may_pull(state.topic(topic), state.group(group), queue_id)
            return found == (state.queue(topic, queue_id) if may else None)
        case ByKey(topic, key, found):
            now = tuple(m.msg_id for m in state.stored if m.topic == topic and key in m.keys)
            others = {
                m.msg_id
                for m in (*state.stored, *state.gone)
                if m.topic == topic and m.msg_id not in now and may_be_found(key, m.keys)
            }
            return tuple(each for each in found if each not in others) == now
        case ById(msg_id, found):
            return found == msg_id or (found is None and msg_id in {m.msg_id for m in state.gone})
        case Query(group, topic, queue_id, offset):
            queue = Queue(0, ("",) * len(state.queue(topic, queue_id)))
            return offset in begins(queue, state.committed(group, topic, queue_id))
    return True


def may_be_found(key: str, keys: Iterable[str]) -> bool:
    """Return whether a message with these keys may be in the answer.

    A broker may compare only the hashes and leave the comparison of the keys to the client.
    """
    return tag_hash(key) in {tag_hash(each) for each in keys}


def _put(known: frozenset[tuple[str, T]], name: str, settings: T | None) -> frozenset[tuple[str, T]]:
    others = {key: value for key, value in known if key != name}
    return frozenset(others.items() if settings is None else {**others, name: settings}.items())


def _without(state: State, topic: str) -> Iterable[State]:
    """Return the states after the topic is deleted: its offsets may be deleted or kept."""
    deleted = state._replace(
        topics=frozenset(each for each in state.topics if each[0] != topic),
        stored=tuple(m for m in state.stored if m.topic != topic),
        gone=state.gone | {m for m in state.stored if m.topic == topic},
    )
    forgotten = frozenset(each for each in state.offsets if each[1] != topic)
    return {deleted, deleted._replace(offsets=forgotten)}


def _sent(state: State, send: Send) -> tuple[State, ...]:
    may = administration.may_send(state.topic(send.topic), send.queue_id)
    if may != (send.offset_id is not None):
        return ()
    message = Stored(send.msg_id, send.topic, send.queue_id, (send.msg_id, *send.keys.split()))
    return (state._replace(stored=(*state.stored, message)) if may else state,)


def _committed(state: State, group: str, topic: str, queue_id: int, offset: int) -> State:
    others = (each for each in state.offsets if each[:3] != (group, topic, queue_id))
    return state._replace(offsets=frozenset((*others, (group, topic, queue_id, offset))))


def _cloned(state: State, clone: Clone) -> Iterable[State]:
    """Return the states after the offsets of the source are cloned to the destination.

    The destination gets the offsets of the source and loses those that the source does not have. Nothing
    changes if the source has no offsets. If the topic does not exist, the request may have no effect even
    though offsets are committed there (4.9.5).
    """
    its = {each[2:] for each in state.offsets if each[:2] == (clone.source, clone.topic)}
    if not its:
        return (state,)
    others = {each for each in state.offsets if each[:2] != (clone.destination, clone.topic)}
    cloned = state._replace(offsets=frozenset(others | {(clone.destination, clone.topic, *at) for at in its}))
    return (cloned,) if state.topic(clone.topic) else {cloned, state}


def _describe(state: State) -> str:
    topics = ", ".join(f"{name} {tuple(settings)}" for name, settings in sorted(state.topics))
    groups = ", ".join(f"{name} {tuple(settings)}" for name, settings in sorted(state.groups))
    stored = " ".join(f"{m.msg_id}@{m.topic}:{m.queue_id}" for m in state.stored)
    return f"topics {topics or 'none'}; groups {groups or 'none'}; {stored}; offsets {sorted(state.offsets)}"


def _action(operation: Operation) -> str:
    """Return the action of Delivery.tla for the operation, if there is one."""
    match operation:
        case Send():
            return "Store"
        case Pull():
            return "Deliver"
        case Commit():
            return "CommitOffset"
        case Clone():
            return "Reset"
    return "(administration)"


EXPLANATION: Final[Explanation[State, Operation]] = Explanation((State(),), after, _describe, _action)
