"""Converts the event log of a whole DLedger group into traces of spec/tla/Replication.tla, for TLC.

There is one trace per leadership: TraceLeadership.tla maps a leader and a follower to a master and its slave.
Records are named m1, m2, ... in each trace, by index and term. Positions count from the last record that all
members had durably when the leadership began, because Replication does not depend on earlier ones.

A trace begins with the records that leaders of earlier terms committed at any time: a majority stored them
before it voted for this leader.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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

Record = tuple[int, int]
"""Index (from 1) and term, which identify a record."""


@dataclass(slots=True)
class _Member:
    records: list[Record] = field(default_factory=list)
    durable: int = 0
    leadership: "_Leadership | None" = None
    """The leadership in which it leads or follows."""


@dataclass(slots=True)
class _Leadership:
    leader: str
    term: int
    front: int
    """Number of records at the beginning of the log that the trace leaves out."""
    out: list[TraceEvent] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    names: dict[Record, str] = field(default_factory=dict)
    committed: tuple[Record, ...] = ()

    def emit(self, event: Event, name: str, **fields: object) -> None:
        self.out.append({"event": name, "node": event.node, **fields})
        self.seqs.append(event.seq)

    def name(self, record: Record) -> str:
        return self.names.setdefault(record, f"m{len(self.names) + 1}")

    def shown(self, records: Sequence[Record]) -> tuple[str, ...]:
        return tuple(map(self.name, records[self.front :]))


@dataclass(slots=True)
class _Log:
    where: str
    members: dict[str, _Member]
    unrecorded: frozenset[str]
    leaderships: list[_Leadership] = field(default_factory=list)


def traces(events: Iterable[Event], where: str) -> Iterator[Window]:
    """Yield one trace per leadership; `where` names the log in errors.

    Raises:
        EventError: events are missing (a member's `seq` is not dense), an event names a leader without a
            leadership in the log, or lacks a field that the trace needs.
    """
    log_events = list(events)
    check_dense(log_events, where)
    log = _Log(where, {event.node: _Member() for event in log_events}, unrecorded(log_events, where))
    for event in log_events:
        _infer(log, event)
        _take(log, event)
    for leadership in log.leaderships:
        before = max((r.committed for r in log.leaderships if r.term < leadership.term), key=len, default=())
        leadership.out[0]["committed"] = leadership.shown(before)
        yield Window(tuple(leadership.out), tuple(leadership.seqs), 0, len(leadership.names))


def _take(log: _Log, event: Event) -> None:
    member, where = log.members[event.node], log.where
    match event.kind:
        case Kind.BECOME_LEADER:
            member.leadership = _begin(log, event)
            log.leaderships.append(member.leadership)
        case Kind.HEARTBEAT:
            leader = text_of(event, "leader", where)
            _follow(member, _led(log, leader, term_of(event, where), event), event)
        case Kind.STEP_DOWN | Kind.CRASH:
            _leave(member, event)
        case Kind.RAFT_APPEND:
            _append(member, event, where)
        case Kind.FLUSH:
            member.durable = index_of(event, where)
            _emit_index(member, event, "flush", member.durable)
        case Kind.HA_ACK:
            _emit_index(member, event, "keep", index_of(event, where))
        case Kind.RAFT_COMMIT:
            index = index_of(event, where)
            _emit_index(member, event, "commit", index)
            if member.leadership is not None and member.leadership.leader == event.node:
                member.leadership.committed = tuple(member.records[:index])
        case Kind.SEND_ACK:
            leadership = _led(log, event.node, term_of(event, where), event)
            leadership.emit(event, "answer", message=leadership.name(_record(event, where)))
        case Kind.RECOVER:
            _leave(member, event)
            _recover(member, event, where)
        case _:
            pass  # votes belong to Election; a truncation shows in the next entry that is written


def _infer(log: _Log, event: Event) -> None:
    """Add the steps that must have happened before an event, of kinds that the log omits."""
    member, where = log.members[event.node], log.where
    match event.kind:
        case Kind.VOTE if Kind.STEP_DOWN in log.unrecorded and member.leadership is not None:
            if event.status == "DURABLE" and term_of(event, where) > member.leadership.term:
                _leave(member, event)
        case Kind.RAFT_APPEND | Kind.HA_ACK | Kind.RAFT_COMMIT if Kind.HEARTBEAT in log.unrecorded:
            leadership = _followed(log, event)
            if leadership is not None and leadership is not member.leadership:
                _follow(member, leadership, event)
        case Kind.SEND_ACK if Kind.RAFT_COMMIT in log.unrecorded:
            leadership = _led(log, event.node, term_of(event, where), event)
            committed = tuple(member.records[: index_of(event, where)])
            leadership.committed = max(leadership.committed, committed, key=len)
        case _:
            pass
    if event.kind is Kind.HA_ACK and Kind.FLUSH in log.unrecorded:
        member.durable = max(member.durable, index_of(event, where))


def _followed(log: _Log, event: Event) -> _Leadership | None:
    """Return the leadership that a member follows, or None.

    It is the newest one whose leader the member answers, or whose leader has the record that the member
    writes.
    """
    member = log.members[event.node]
    known = [] if member.leadership is None else [member.leadership]
    if known and known[0].leader == event.node:
        return known[0]
    for leadership in (*known, *reversed(log.leaderships)):
        if event.kind is Kind.HA_ACK:
            fits = leadership.leader == text_of(event, "leader", log.where)
        elif event.kind is Kind.RAFT_APPEND:
            record = _record(event, log.where)
            fits = record in log.members[leadership.leader].records[record[0] - 1 : record[0]]
        else:
            fits = True
        if fits:
            return leadership
    return None


def _follow(member: _Member, leadership: _Leadership, event: Event) -> None:
    member.leadership = leadership
    leadership.emit(
        event, "follow", log=leadership.shown(member.records), durable=member.durable - leadership.front
    )


def _begin(log: _Log, event: Event) -> _Leadership:
    member = log.members[event.node]
    alike = min(_alike(member.records, other) for other in log.members.values())
    leadership = _Leadership(event.node, term_of(event, log.where), max(0, alike - 1))
    shown = leadership.shown(member.records)
    durable = min(member.durable, len(member.records)) - leadership.front
    leadership.emit(event, "lead", log=shown, durable=durable, committed=(), unrecorded=log.unrecorded)
    return leadership


def _alike(records: Sequence[Record], other: _Member) -> int:
    """Return how many leading records are equal to durable records of the other member."""
    kept = zip(records, other.records[: other.durable], strict=False)
    return next((n for n, (one, two) in enumerate(kept) if one != two), min(len(records), other.durable))


def _led(log: _Log, leader: str, term: int, event: Event) -> _Leadership:
    for leadership in reversed(log.leaderships):
        if (leadership.leader, leadership.term) == (leader, term):
            return leadership
    raise EventError(
        f"{log.where}: {event.node}: {event.kind} at seq {event.seq}: {leader} did not lead term {term}"
    )


def _leave(member: _Member, event: Event) -> None:
    if member.leadership is not None and member.leadership.leader == event.node:
        member.leadership.emit(event, "end")
    member.leadership = None


def _append(member: _Member, event: Event, where: str) -> None:
    record = _record(event, where)
    index = record[0]
    if index <= len(member.records):
        del member.records[index - 1 :]
        member.durable = min(member.durable, index - 1)
    member.records.append(record)
    if (leadership := member.leadership) is not None:
        name = "append" if leadership.leader == event.node else "write"
        leadership.emit(event, name, index=index - leadership.front, message=leadership.name(record))


def _emit_index(member: _Member, event: Event, name: str, index: int) -> None:
    if (leadership := member.leadership) is not None:
        leadership.emit(event, name, index=index - leadership.front)


def _recover(member: _Member, event: Event, where: str) -> None:
    """Remove lost records, and add those that were durable before their append event was written."""
    index = index_of(event, where)
    del member.records[index:]
    missing = range(len(member.records) + 1, index + 1)
    member.records += [(each, number_of(event, "end_term", where)) for each in missing]
    member.durable = index


def _record(event: Event, where: str) -> Record:
    return index_of(event, where), term_of(event, where)
