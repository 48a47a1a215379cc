"""Converts a broker's event log into traces that TLC checks against spec/tla/Flush.tla.

A log of ten thousand messages is too long for one trace, so it is split into windows of about the requested
number of records (more if few of them are settled). The model does not depend on records before the window,
so a window may omit every settled (durable and dispatched) record. Records that are still open are appended
again at the beginning of the next window, with their known state. A recovery ends a window, since everything
is settled afterwards.

The split loses one check: a system crash late in a life cannot be related to a queue flush of an earlier
window. Byte offsets become positions, and messages are named m1, m2, ... in the order of their appends.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mqproof.spec.events import Event, EventError, Kind

SETTLED: Final = "settled"
"""Stands for every omitted message; the model never sends it, so no event about it is explained."""
RECORDS_MAX: Final = 100

Queue = tuple[str, int]
TraceEvent = dict[str, object]


@dataclass(frozen=True, slots=True)
class Window:
    """A trace: the events for TLC, and for each the `seq` of the logged event that it represents."""

    events: tuple[TraceEvent, ...]
    seqs: tuple[int, ...]
    queues: int
    messages: int


@dataclass(slots=True)
class _Record:
    queue: Queue
    queue_offset: int
    start: int
    end: int
    answer: str | None = None


@dataclass(slots=True)
class _Life:
    """The records that are not settled yet, and their state according to the log."""

    mode: str
    begin: int
    """The commit offset before which every record is settled: durable and dispatched."""
    records: list[_Record] = field(default_factory=list)
    flushed: int = 0
    dispatched: int = 0
    offset_base: dict[Queue, int] = field(default_factory=dict)
    """By queue, the queue offset of the first record that is not settled."""
    out: list[TraceEvent] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    names: dict[Queue, str] = field(default_factory=dict)
    began_at: int = 0
    """Commit offset at which the event log began."""
    crashed: bool = False
    recovering: bool = False

    def emit(self, seq: int, event: str, **fields: object) -> None:
        self.out.append({"event": event, **fields})
        self.seqs.append(seq)

    def open(self, seq: int) -> None:
        self.out, self.seqs, self.names = [], [], {}
        self.emit(seq, "open", mode=self.mode)

    def queue_name(self, queue: Queue) -> str:
        return self.names.setdefault(queue, f"q{len(self.names)}")

    def length(self, commit_offset: int) -> int:
        """Return how many of the records end at or before a byte offset."""
        return sum(record.end <= commit_offset for record in self.records)

    @property
    def settled(self) -> int:
        """The number of leading records that are durable and dispatched."""
        return min(self.flushed, self.dispatched)

    def window(self) -> Window:
        return Window(tuple(self.out), tuple(self.seqs), len(self.names), len(self.records))


def windows(events: Iterable[Event], where: str, records_max: int = RECORDS_MAX) -> Iterator[Window]:
    """Yield the windows of one broker's log; `where` names it in errors.

    Raises:
        EventError: events are missing (`seq` is not dense), the log does not begin with a recovery, or an
            event lacks a field that the trace needs.
    """
    life: _Life | None = None
    seq_next: int | None = None
    for event in events:
        if seq_next is not None and event.seq != seq_next:
            raise EventError(f"{where}: seq {event.seq} follows {seq_next - 1}: events are missing")
        seq_next = event.seq + 1
        if life is None:
            life = _first_life(event, where)
            continue
        yield from _take(life, event, where, records_max)
    if life is not None and len(life.out) > 1:
        yield life.window()


def _first_life(event: Event, where: str) -> _Life | None:
    """Return the life begun by a recovery.

    Before it, a broker logs no store events except a detected crash.
    """
    if event.kind in (Kind.APPEND, Kind.FLUSH, Kind.DISPATCH):
        raise EventError(f"{where}: {event.kind} at seq {event.seq} before the first recover")
    if event.kind is not Kind.RECOVER:
        return None
    end = _need(event, "commit_offset", where)
    life = _Life(_mode(event, where), begin=end, began_at=end)
    life.open(event.seq)
    return life


def _take(life: _Life, event: Event, where: str, records_max: int) -> Iterator[Window]:
    match event.kind:
        case Kind.APPEND:
            # Split only if few records are open, because these are repeated at the beginning of the next
            # window.
            if len(life.records) >= records_max and life.settled >= records_max // 2:
                yield life.window()
                _settle(life, event.seq)
            _append(life, event, where)
        case Kind.FLUSH if event.attrs.get("file") == "log":
            life.flushed = life.length(_need(event, "commit_offset", where))
            life.emit(event.seq, "flush", length=life.flushed)
        case Kind.FLUSH if event.attrs.get("file") == "queues":
            length = life.length(_need(event, "commit_offset", where))
            if length:
                life.emit(event.seq, "flush_queues", length=length)
        case Kind.DISPATCH if not life.recovering:
            _dispatch(life, event, where)
        case Kind.SEND_ACK:
            _answer(life, event, where)
        case Kind.CRASH:
            life.crashed = life.recovering = True
        case Kind.TRUNCATE:
            life.recovering = True
        case Kind.RECOVER:
            yield _recover(life, event, where)
        case _:
            pass  # the consumer, the name server and the checkpoint are not part of these traces


def _append(life: _Life, event: Event, where: str) -> None:
    queue = (_text(event, "topic", where), _need(event, "queue_id", where))
    queue_offset = _need(event, "queue_offset", where)
    start = _need(event, "commit_offset", where)
    size = event.attrs.get("size", "")
    if not size.isdecimal():
        raise EventError(f"{where}: append at seq {event.seq}: attrs.size is {size!r}, expected bytes")
    # The first record of a queue shows the queue's offset when this event log began.
    life.offset_base.setdefault(queue, queue_offset if life.began_at else 0)
    record = _Record(queue, queue_offset, start, start + int(size))
    life.records.append(record)
    _emit_append(life, event.seq, len(life.records), record)


def _emit_append(life: _Life, seq: int, position: int, record: _Record) -> None:
    offset = record.queue_offset - life.offset_base[record.queue]
    life.emit(seq, "append", message=f"m{position}", queue=life.queue_name(record.queue), offset=offset)


def _dispatch(life: _Life, event: Event, where: str) -> None:
    start = _need(event, "commit_offset", where)
    position = next((p for p, r in enumerate(life.records, start=1) if r.start == start), 0)
    queue = (_text(event, "topic", where), _need(event, "queue_id", where))
    offset = _need(event, "queue_offset", where) - life.offset_base.get(queue, 0)
    life.emit(event.seq, "dispatch", position=position, queue=life.queue_name(queue), offset=offset)
    life.dispatched = max(life.dispatched, position)


def _answer(life: _Life, event: Event, where: str) -> None:
    if event.status not in ("SEND_OK", "FLUSH_DISK_TIMEOUT") or event.attrs.get("wait") == "false":
        return  # the model's disk does not fail, and its messages wait for their flush
    key = ((_text(event, "topic", where), _need(event, "queue_id", where)), event.queue_offset)
    for position, record in enumerate(life.records, start=1):
        if (record.queue, record.queue_offset) == key:
            record.answer = event.status
            life.emit(event.seq, "answer", message=f"m{position}", status=event.status)
            return
    settled = key[0] in life.offset_base and (event.queue_offset or 0) < life.offset_base[key[0]]
    if not (settled and event.status == "SEND_OK"):  # settled records are durable, so SEND_OK is correct
        life.emit(event.seq, "answer", message=SETTLED, status=event.status)


def _recover(life: _Life, event: Event, where: str) -> Window:
    """End a life: emit the crash, the recovery, and the beginning of the next life."""
    end = _need(event, "commit_offset", where)
    length = life.length(end)
    # Recovery found less than the settled records: no crash in the model does that.
    lost_settled = end < life.begin
    if not life.crashed:
        _answer_oneway(life, event.seq)
    life.emit(event.seq, "crash" if life.crashed else "shutdown", length=-1 if lost_settled else length)
    life.emit(event.seq, "recover", length=length)
    window = life.window()
    life.mode = _mode(event, where)
    life.begin = min(life.begin, end)
    life.flushed = life.dispatched = length
    del life.records[length:]
    life.crashed = life.recovering = False
    _settle(life, event.seq)
    return window


def _answer_oneway(life: _Life, seq: int) -> None:
    """Emit answers to one-way sends. The broker sends none, but the model needs them before a clean exit."""
    for position, record in enumerate(life.records, start=1):
        if record.answer is None:
            life.emit(seq, "answer", message=f"m{position}", status="SEND_OK")


def _settle(life: _Life, seq: int) -> None:
    """Omit durable and dispatched records; the others begin the next window."""
    settled = life.settled
    for record in life.records[:settled]:
        life.offset_base[record.queue] += 1
        life.begin = record.end
    del life.records[:settled]
    life.flushed -= settled
    life.dispatched -= settled
    life.open(seq)
    for position, record in enumerate(life.records, start=1):
        _emit_append(life, seq, position, record)
    if life.flushed:
        life.emit(seq, "flush", length=life.flushed)
    for position, record in enumerate(life.records[: life.dispatched], start=1):
        offset = record.queue_offset - life.offset_base[record.queue]
        life.emit(seq, "dispatch", position=position, queue=life.queue_name(record.queue), offset=offset)
    for position, record in enumerate(life.records, start=1):
        if record.answer:
            life.emit(seq, "answer", message=f"m{position}", status=record.answer)


def _mode(event: Event, where: str) -> str:
    mode = event.attrs.get("flush_disk_type", "")
    if mode not in ("SYNC_FLUSH", "ASYNC_FLUSH"):
        raise EventError(
            f"{where}: recover at seq {event.seq}: attrs.flush_disk_type is {mode!r}, "
            "expected SYNC_FLUSH or ASYNC_FLUSH"
        )
    return mode


def _need(event: Event, name: str, where: str) -> int:
    value = getattr(event, name)
    if value is None:
        raise EventError(f"{where}: {event.kind} at seq {event.seq} has no {name}")
    assert isinstance(value, int)
    return value


def _text(event: Event, name: str, where: str) -> str:
    value = getattr(event, name)
    if value is None:
        raise EventError(f"{where}: {event.kind} at seq {event.seq} has no {name}")
    return str(value)
