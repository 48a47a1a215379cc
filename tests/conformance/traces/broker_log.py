"""Writes the event log of a simulated broker, for tests of programs that read such logs."""

from dataclasses import dataclass, field

from mqproof.spec.events import Event, Kind

RECORD_BYTES = 100


@dataclass(slots=True)
class BrokerLog:
    """Each method is one action of the broker, and logs the events of a real one."""

    mode: str = "SYNC_FLUSH"
    events: list[Event] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    end: int = 0

    def log(self, kind: Kind, **fields: object) -> None:
        seq = len(self.events)
        self.events.append(Event(ts=seq, seq=seq, node="b0", kind=kind, **fields))  # type: ignore[arg-type]

    def recovered(self, *, end: int | None = None, crashed: bool = False) -> "BrokerLog":
        if crashed:
            self.log(Kind.CRASH, attrs={"kind": "unknown"})
        self.end = self.end if end is None else end
        self.log(Kind.RECOVER, commit_offset=self.end, attrs={"flush_disk_type": self.mode})
        return self

    def append(self, queue_id: int = 0) -> int:
        offset = self.offsets.get(queue_id, 0)
        self.offsets[queue_id] = offset + 1
        self._about(Kind.APPEND, queue_id, offset, commit_offset=self.end, attrs={"size": str(RECORD_BYTES)})
        self.end += RECORD_BYTES
        return offset

    def flush(self, end: int | None = None, file: str = "log") -> None:
        self.log(Kind.FLUSH, commit_offset=self.end if end is None else end, attrs={"file": file})

    def dispatch(self, queue_id: int, offset: int, commit_offset: int) -> None:
        self._about(Kind.DISPATCH, queue_id, offset, commit_offset=commit_offset)

    def ack(self, queue_id: int, offset: int, status: str = "SEND_OK") -> None:
        self._about(Kind.SEND_ACK, queue_id, offset, status=status)

    def message(self, queue_id: int = 0) -> None:
        """Log one message from append to answer."""
        start = self.end
        offset = self.append(queue_id)
        self.flush()
        self.dispatch(queue_id, offset, start)
        self.ack(queue_id, offset)

    def _about(self, kind: Kind, queue_id: int, offset: int, **fields: object) -> None:
        self.log(kind, topic="T", queue_id=queue_id, queue_offset=offset, **fields)
