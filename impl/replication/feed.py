"""The master's end of a replication connection: processes a slave's reports and produces the bytes to send.

It takes bytes and returns bytes; the owner of the connection transfers them
(docs/reference/protocol/replication.md, "Replication stream").
"""

from typing import Protocol

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.stream import (
    BODY_BYTES_MAX,
    StreamError,
    Transfer,
    read_position,
    write_transfer,
)


class MastersLog(Protocol):
    """The part of the log that the master's end of a connection uses."""

    @property
    def log_begin(self) -> int: ...
    @property
    def log_end(self) -> int: ...
    @property
    def log_segment_bytes(self) -> int: ...
    def log_read(self, position: int, size: int) -> bytes: ...


class Feed:
    """The feed of one slave.

    `sent` is the position up to which the log was sent to the slave; None before its first request.
    """

    def __init__(self, log: MastersLog, acks: Acks, check: LogCheck) -> None:
        self.sent: int | None = None
        self._log = log
        self._acks = acks
        self._check = check
        self._buffer = bytearray()

    def received(self, data: bytes) -> int | None:
        """Process bytes from the slave; return the position that it acknowledged last in them, or None.

        Raises:
            StreamError: the slave asks for a position that this log does not have, or acknowledges one beyond
                its end.
        """
        self._buffer += data
        acknowledged = None
        while (position := read_position(self._buffer)) is not None:
            if self.sent is None:
                self._asked(position)
            else:
                self._acknowledged(position)
                acknowledged = position
        return acknowledged

    def next_frame(self) -> bytes:
        """Return the next frame to send; empty if the slave has received everything or has not asked yet.

        Raises:
            StreamError: the log no longer has the bytes to send next.
        """
        if self.sent is None or self.sent >= self._log.log_end:
            return b""
        body = self._log.log_read(self.sent, BODY_BYTES_MAX)
        if not body:
            raise StreamError(f"the log no longer has {self.sent}, it begins at {self._log.log_begin}")
        frame = write_transfer(Transfer(self.sent, body))
        self.sent += len(body)
        return frame

    def heartbeat(self) -> bytes:
        """Return a heartbeat frame; empty before the slave's first request."""
        return b"" if self.sent is None else write_transfer(Transfer(self.sent, b""))

    def left(self) -> None:
        """Remove the slave, because its connection has ended."""
        self._acks.left(self)

    def _asked(self, position: int) -> None:
        log = self._log
        if self._check is LogCheck.AS_SHIPPED:
            self.sent = position or log.log_end - log.log_end % log.log_segment_bytes
            self._acks.joined(self)
            self._acks.reported_as_shipped(self, position)
            return
        if position > log.log_end:
            raise StreamError(
                f"the slave's log goes beyond {position}, this master's ends at {log.log_end}:"
                f" the master lost its last records, or the slave belongs to another master"
            )
        if 0 < position < log.log_begin:
            raise StreamError(f"the slave asks for {position}, this master's log begins at {log.log_begin}")
        # A slave with an empty log receives the whole log. Released masters begin at their last segment.
        self.sent = position or log.log_begin
        self._acks.joined(self)

    def _acknowledged(self, position: int) -> None:
        if self._check is LogCheck.AS_SHIPPED:
            self._acks.reported_as_shipped(self, position)
            return
        if position > self._log.log_end:
            raise StreamError(f"the slave acknowledges {position}, the log ends at {self._log.log_end}")
        self._acks.reported(self, position, self._log.log_end)
