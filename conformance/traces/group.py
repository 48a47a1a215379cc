"""Converts the event log of a whole DLedger group into a trace that TLC checks against spec/tla/Election.tla.

All members write into one log, in the order of events, from the start of the group. In a trace, indexes count
from 1, and messages are named m1, m2, ... in the order in which leaders appended them. A crash event contains
the state that the next recovery found, which is what survived.

The first event of a trace lists the kinds of events that the log omits (docs/reference/protocol/event-log.md,
"Events of a DLedger member").
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.traces.event_sequence import check_dense
from mqproof.conformance.traces.raft_events import (
    index_of,
    number_of,
    term_of,
    text_of,
    unrecorded,
)
from mqproof.conformance.traces.store import TraceEvent, Window
from mqproof.spec.events import Event, EventError, Kind

RAFT_KINDS: Final = frozenset({Kind.BECOME_LEADER, Kind.RAFT_APPEND, Kind.RAFT_COMMIT})
"""An event log with one of these kinds is a group's."""
_NONE: Final = "none"
_NO_OP: Final = "2"


@dataclass(slots=True)
class _Group:
    """The state of the conversion of one group's event log, event by event."""

    where: str
    next_recoveries: dict[int, Event]
    """Maps the position of a crash in the log to that member's next recovery."""
    out: list[TraceEvent] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    began: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    """Members that truncated their log and have not written since."""
    leading: dict[str, Event] = field(default_factory=dict)
    """Members that won an election and have not written their first entry yet."""
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    """Names of client messages, by index and term."""

    def emit(self, event: Event, name: str, **fields: object) -> None:
        self.out.append({"event": name, "node": event.node, **fields})
        self.seqs.append(event.seq)


def trace(events: Iterable[Event], where: str) -> Window:
    """Return the trace of one group's log; `where` names it in errors.

    Raises:
        EventError: events are missing (a member's `seq` is not dense), the log does not begin with the group,
            or an event lacks a field that the trace needs.
    """
    log = list(events)
    check_dense(log, where)
    group = _Group(where, _recoveries(log))
    group.out.append({"event": "open", "unrecorded": unrecorded(log, where)})
    group.seqs.append(0)
    for position, event in enumerate(log):
        _take(group, event, position)
    return Window(tuple(group.out), tuple(group.seqs), 0, len(group.names))


def members(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the group's members, as reported at a start."""
    named = next((e.attrs["members"] for e in events if e.kind is Kind.RECOVER and "members" in e.attrs), "")
    return tuple(named.split(",")) if named else ()


def _recoveries(log: list[Event]) -> dict[int, Event]:
    crashed: dict[str, int] = {}
    found: dict[int, Event] = {}
    for position, event in enumerate(log):
        if event.kind is Kind.CRASH:
            crashed[event.node] = position
        elif event.kind is Kind.RECOVER and event.node in crashed:
            found[crashed.pop(event.node)] = event
    return found


def _take(group: _Group, event: Event, position: int) -> None:
    match event.kind:
        case Kind.VOTE:
            _vote(group, event)
        case Kind.STEP_DOWN:
            reason, peer = text_of(event, "reason", group.where), event.attrs.get("peer", "")
            group.emit(event, "step_down", term=term_of(event, group.where), reason=reason, peer=peer)
        case Kind.BECOME_LEADER:
            group.leading[event.node] = event
        case Kind.HEARTBEAT:
            group.emit(
                event,
                "follow",
                term=term_of(event, group.where),
                leader=text_of(event, "leader", group.where),
            )
        case Kind.TRUNCATE:
            group.cut.add(event.node)
        case Kind.RAFT_APPEND:
            _append(group, event)
        case Kind.FLUSH:
            group.emit(event, "flush", index=index_of(event, group.where))
        case Kind.HA_ACK:
            group.emit(
                event,
                "keep",
                index=index_of(event, group.where),
                leader=text_of(event, "leader", group.where),
            )
        case Kind.RAFT_COMMIT:
            group.emit(event, "commit", index=index_of(event, group.where))
        case Kind.SEND_ACK:
            index, term = index_of(event, group.where), term_of(event, group.where)
            name = group.names.get((index, term), "unknown")
            group.emit(event, "ack", term=term, index=index, message=name)
        case Kind.CRASH:
            _crash(group, event, position)
        case Kind.RECOVER:
            _recover(group, event)
        case _:
            pass  # not a ledger event


def _vote(group: _Group, event: Event) -> None:
    term = term_of(event, group.where)
    if event.status == "DURABLE":
        if not event.attrs.get("voted_for"):
            group.emit(event, "new_term", term=term)
        return  # the answer to the vote request records the vote
    candidate = text_of(event, "candidate", group.where)
    if candidate == event.node:
        group.emit(event, "stand", term=term)
    else:
        group.emit(event, "vote", term=term, candidate=candidate, result=event.status or "")


def _append(group: _Group, event: Event) -> None:
    index, term, node = index_of(event, group.where), term_of(event, group.where), event.node
    group.lengths[node] = index
    if text_of(event, "role", group.where) == "follower":
        group.emit(event, "write", index=index, term=term, cuts=node in group.cut)
        group.cut.discard(node)
    elif (began := group.leading.pop(node, None)) is not None and event.attrs.get("magic") == _NO_OP:
        group.emit(began, "become_leader", term=term, index=index)
    else:
        name = group.names.setdefault((index, term), f"m{len(group.names) + 1}")
        group.emit(event, "append", index=index, term=term, message=name)


def _crash(group: _Group, event: Event, position: int) -> None:
    recovery = group.next_recoveries.get(position)
    kept = index_of(recovery, group.where) if recovery else group.lengths.get(event.node, 0)
    group.lengths[event.node] = kept
    group.down.add(event.node)
    group.leading.pop(event.node, None)
    group.cut.discard(event.node)
    group.emit(event, "crash", kept=kept, **_ballot(group, recovery))


def _ballot(group: _Group, recovery: Event | None) -> TraceEvent:
    """Return the term and vote that the next recovery found."""
    if recovery is None:
        return {"term": 0, "votedFor": _NONE}
    return {
        "term": term_of(recovery, group.where),
        "votedFor": recovery.attrs.get("voted_for") or _NONE,
    }


def _recover(group: _Group, event: Event) -> None:
    index, end_term = index_of(event, group.where), number_of(event, "end_term", group.where)
    node = event.node
    if node not in group.began:
        group.began.add(node)
        if index or term_of(event, group.where) != 1:
            raise EventError(
                f"{group.where}: {node} begins with {index} entries: the events of its start are missing"
            )
        return
    if node not in group.down:  # killed without a crash event
        group.emit(event, "crash", kept=index, **_ballot(group, event))
    group.down.discard(node)
    group.emit(event, "recover", index=index, endTerm=end_term, **_ballot(group, event))
