"""Converts the event log of a master and its slave into traces of spec/tla/Replication.tla, for TLC.

Both write into one log, in the order of events. A master's log without the slave's is sufficient; the slave's
steps are then hidden. Byte offsets become positions, and messages are named m1, m2, ... in the order of the
master's appends. A crash event contains the state that the next recovery found. An append contains what its
answer shows about the slave.

A long log is split where the slave has everything and no send waits. The next trace begins with the last
record, because a slave compares it when it reconnects.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mqproof.conformance.traces.event_sequence import check_dense
from mqproof.conformance.traces.store import RECORDS_MAX, TraceEvent, Window
from mqproof.spec.events import Event, EventError, Kind

MASTER: Final = "master"
SLAVE: Final = "slave"
_STATUSES: Final = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
UNKNOWN: Final = "unknown"
"""Stands for unrecorded values; the model never sends a message of that name."""


@dataclass(frozen=True, slots=True)
class _Record:
    name: str
    start: int
    end: int
    what: tuple[object, ...]
    """Message, queue and queue offset, by which records of two brokers are compared."""


@dataclass(slots=True)
class _Node:
    """The state of one broker, according to its events."""

    name: str
    records: list[_Record] = field(default_factory=list)
    flushed: int = 0
    crashed: bool = False
    begun: bool = False

    def length(self, commit_offset: int) -> int:
        """Return how many of the records end at or before a byte offset."""
        return sum(record.end <= commit_offset for record in self.records)


@dataclass(slots=True)
class _Pair:
    where: str
    opening: TraceEvent
    nodes: dict[str, _Node]
    """The state of each broker, by the broker's name in the log."""
    fates: dict[int, str]
    """Maps the position of a master's append in the log to the status sent to its producer."""
    acked: int = 0
    waiting: set[str] = field(default_factory=set)
    named: int = 0
    out: list[TraceEvent] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)

    @property
    def master(self) -> _Node:
        return next(node for node in self.nodes.values() if node.name == MASTER)

    @property
    def slave(self) -> _Node | None:
        return next((node for node in self.nodes.values() if node.name == SLAVE), None)

    def emit(self, seq: int, event: str, **fields: object) -> None:
        self.out.append({"event": event, **fields})
        self.seqs.append(seq)

    def is_calm(self) -> bool:
        """Return whether the slave has everything, all of it is durable, and no send waits."""
        length = len(self.master.records)
        settled = all(len(n.records) == n.flushed == length for n in self.nodes.values())
        return settled and self.acked == length and not self.waiting

    def window(self) -> Window:
        return Window(tuple(self.out), tuple(self.seqs), 0, self.named)


def is_pair(events: Iterable[Event]) -> bool:
    """Return whether a master recorded a transfer of its log to a slave."""
    return any(event.kind is Kind.HA_TRANSFER for event in events)


def traces(events: Iterable[Event], where: str, records_max: int = RECORDS_MAX) -> Iterator[Window]:
    """Yield the traces of a pair's log; none if it starts after the pair, or has more than two brokers.

    Raises:
        EventError: events are missing (a broker's `seq` is not dense), or an event lacks a field that the
            trace needs.
    """
    log = list(events)
    names = _names(log)
    if names is None:
        return
    log = [event for event in log if event.node in names]
    check_dense(log, where)
    opening = _opening(log, names)
    pair = _Pair(where, opening, {node: _Node(name) for node, name in names.items()}, _fates(log, names))
    pair.emit(0, "open", **opening)
    for position, event in enumerate(log):
        yield from _take(pair, event, position, records_max)
    if len(pair.out) > 1:
        yield pair.window()


def _names(log: Sequence[Event]) -> dict[str, str] | None:
    """Return the brokers' names in a trace; None if the log begins after the pair's start."""
    masters = {event.node for event in log if event.kind is Kind.HA_TRANSFER}
    first: dict[str, Event] = {}
    for event in log:
        if event.kind is Kind.RECOVER and event.commit_offset is not None:  # None: a name server's
            first.setdefault(event.node, event)
    slaves = first.keys() - masters
    if len(masters) != 1 or len(slaves) > 1 or any(event.commit_offset for event in first.values()):
        return None
    return dict.fromkeys(masters, MASTER) | dict.fromkeys(slaves, SLAVE)


def _opening(log: Sequence[Event], names: dict[str, str]) -> TraceEvent:
    role = next((e.attrs["role"] for e in log if e.kind is Kind.HA_TRANSFER and "role" in e.attrs), UNKNOWN)
    mode = next(
        e.attrs.get("flush_disk_type", "")
        for e in log
        if e.kind is Kind.RECOVER and names.get(e.node) == MASTER
    )
    return {"mode": mode, "role": role, "slave": SLAVE in names.values()}


def _fates(log: Sequence[Event], names: dict[str, str]) -> dict[int, str]:
    appended: dict[int | None, int] = {}
    fates: dict[int, str] = {}
    for position, event in enumerate(log):
        if names.get(event.node) != MASTER:
            continue
        match event.kind:
            case Kind.APPEND:
                appended[event.commit_offset] = position
            case Kind.SEND_ACK if event.commit_offset in appended and event.attrs.get("wait") != "false":
                fates.setdefault(appended[event.commit_offset], event.status or "")
            case Kind.RECOVER:
                appended.clear()
    return fates


def _take(pair: _Pair, event: Event, position: int, records_max: int) -> Iterator[Window]:
    node = pair.nodes[event.node]
    match event.kind:
        case Kind.APPEND if node.name == MASTER:
            if len(node.records) >= records_max and pair.is_calm():
                yield pair.window()
                _begin_again(pair, event.seq)
            _append(pair, node, event, pair.fates.get(position))
        case Kind.APPEND:
            _receive(pair, node, event)
        case Kind.HA_TRANSFER:
            pair.emit(event.seq, "transfer", index=node.length(_need(pair, event)))
        case Kind.HA_ACK:
            index = node.length(_need(pair, event))
            pair.acked = max(pair.acked, index)
            pair.emit(event.seq, "ack", index=index)
        case Kind.FLUSH if event.attrs.get("file") == "log":
            node.flushed = node.length(_need(pair, event))
            pair.emit(event.seq, "flush", node=node.name, index=node.flushed)
        case Kind.SEND_ACK if node.name == MASTER:
            _answer(pair, node, event)
        case Kind.CRASH | Kind.TRUNCATE:
            node.crashed = node.crashed or event.kind is Kind.CRASH
        case Kind.RECOVER:
            _recover(pair, node, event)
        case _:
            pass  # queues, checkpoints, consumers


def _append(pair: _Pair, node: _Node, event: Event, fate: str | None) -> None:
    pair.named += 1
    record = _record(pair, event, f"m{pair.named}")
    node.records.append(record)
    if fate in _STATUSES:
        pair.waiting.add(record.name)
    pair.emit(event.seq, "append", node=MASTER, message=record.name, usable=_usable(pair, fate))


def _usable(pair: _Pair, fate: str | None) -> str:
    """Return whether a slave was available according to the answer's status: yes, no or unknown."""
    if pair.opening["role"] != "SYNC_MASTER" or fate not in _STATUSES:
        return UNKNOWN
    return "no" if fate == "SLAVE_NOT_AVAILABLE" else "yes"


def _receive(pair: _Pair, node: _Node, event: Event) -> None:
    """Add a slave's record. It is the master's record at the same place, if the message is the same."""
    record = _record(pair, event, UNKNOWN)
    same = (other.name for other in pair.master.records if replace(other, name=UNKNOWN) == record)
    theirs = next(same, UNKNOWN)
    node.records.append(replace(record, name=theirs))
    pair.emit(event.seq, "append", node=SLAVE, message=theirs, index=len(node.records), usable=UNKNOWN)


def _record(pair: _Pair, event: Event, name: str) -> _Record:
    start = _need(pair, event)
    size = event.attrs.get("size", "")
    if not size.isdecimal():
        raise EventError(
            f"{pair.where}: {event.node}: append at seq {event.seq}: attrs.size is {size!r}, bytes expected"
        )
    what = (event.msg_id, event.topic, event.queue_id, event.queue_offset)
    return _Record(name, start, start + int(size), what)


def _answer(pair: _Pair, node: _Node, event: Event) -> None:
    if event.status not in _STATUSES or event.attrs.get("wait") == "false":
        return  # the model's messages wait
    names = [record.name for record in node.records if record.start == event.commit_offset]
    name = names[0] if names else UNKNOWN
    pair.waiting.discard(name)
    pair.emit(event.seq, "answer", message=name, status=event.status)


def _recover(pair: _Pair, node: _Node, event: Event) -> None:
    length = node.length(_need(pair, event))
    if node.begun:
        if node.crashed:
            pair.emit(event.seq, "crash", node=node.name, length=length)
        else:
            pair.emit(event.seq, "stop", node=node.name)
        pair.emit(event.seq, "recover", node=node.name, length=length)
        if node.name == MASTER:
            pair.acked = 0
            pair.waiting.clear()
    del node.records[length:]
    node.begun, node.crashed, node.flushed = True, False, length


def _begin_again(pair: _Pair, seq: int) -> None:
    """Begin a new window with only the last record, which both nodes have."""
    pair.out, pair.seqs, pair.named = [], [], 1
    pair.emit(seq, "open", **pair.opening)
    last = replace(pair.master.records[-1], name="m1")
    pair.emit(seq, "append", node=MASTER, message="m1", usable="yes")
    pair.emit(seq, "transfer", index=1)
    for node in pair.nodes.values():
        node.records, node.flushed = [last], 1
    if pair.slave is not None:
        pair.emit(seq, "append", node=SLAVE, message="m1", index=1, usable=UNKNOWN)
        pair.emit(seq, "flush", node=SLAVE, index=1)
    pair.emit(seq, "flush", node=MASTER, index=1)
    pair.emit(seq, "ack", index=1)
    pair.acked = 1


def _need(pair: _Pair, event: Event) -> int:
    if event.commit_offset is None:
        raise EventError(f"{pair.where}: {event.node}: {event.kind} at seq {event.seq} has no commit_offset")
    return event.commit_offset
