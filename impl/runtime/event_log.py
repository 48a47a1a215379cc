"""Writes the event log of one node: what the node did, in order.

See docs/reference/protocol/event-log.md, "Event writers and audit inputs". An event is emitted right after
the step that it records, and before any step that depends on it. Each event is one unbuffered write, so that
the log of a killed process is a true prefix.
"""

from collections.abc import Callable, Mapping
from typing import Self

from mqproof.impl.runtime.append_file import AppendFile
from mqproof.impl.runtime.clock import Clock
from mqproof.spec.events import SCHEMA_VERSION, Event, Kind, decode, encode


class EventLog:
    """The events of one node, with consecutive sequence numbers.

    `sink` receives each event; `seq_next` is the next sequence number. `last_append` is the commit offset of
    the last append event of an earlier process, or None if there was none.
    """

    def __init__(
        self,
        sink: Callable[[Event], None],
        node: str,
        clock: Clock,
        seq_next: int = 0,
        last_append: int | None = None,
    ) -> None:
        self.node = node
        self.seq_next = seq_next
        self.last_append = last_append
        self.records_properties = False
        """Whether `append` events have the properties of messages, by which the audit evaluates SQL92."""
        self._sink = sink
        self._clock = clock

    @classmethod
    def to_file(cls, path: str, node: str, clock: Clock) -> Self:
        """Return an event log that appends to an NDJSON file; an incomplete last line is cut off.

        Several nodes of one process may share a file: numbering continues from the node's own last event.

        Raises:
            OSError: the file cannot be opened. spec.events.EventError: a line of it is not an event.
        """
        file = AppendFile(path)
        seq_next, last_append = 0, None
        for line in file.lines_backwards():
            event = decode(line, path)
            if event.node == node:
                seq_next = max(seq_next, event.seq + 1)
                if event.kind is Kind.APPEND:
                    last_append = event.commit_offset
                    break
        return cls(lambda event: file.append(encode(event)), node, clock, seq_next, last_append)

    def emit(
        self,
        kind: Kind,
        *,
        msg_id: str | None = None,
        topic: str | None = None,
        queue_id: int | None = None,
        queue_offset: int | None = None,
        commit_offset: int | None = None,
        group: str | None = None,
        client: str | None = None,
        term: int | None = None,
        status: str | None = None,
        attempt: int | None = None,
        keys: str | None = None,
        tags: str | None = None,
        born_ts: int | None = None,
        attrs: Mapping[str, str] | None = None,
    ) -> None:
        """Record one event; the arguments are the columns of `mqproof.spec.events.Event`."""
        seq = self.seq_next
        self.seq_next = seq + 1
        attributes = dict(attrs) if attrs else {}
        if seq == 0:
            attributes["schema"] = str(SCHEMA_VERSION)
        self._sink(
            Event(  # by position, in the order of the columns: names take twice as long
                self._clock.now_us(),
                seq,
                self.node,
                kind,
                msg_id,
                topic,
                queue_id,
                queue_offset,
                commit_offset,
                group,
                client,
                term,
                status,
                attempt,
                keys,
                tags,
                born_ts,
                attributes,
            )
        )
