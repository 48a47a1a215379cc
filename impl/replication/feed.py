"""The master's end of a replication connection: processes a slave's reports and produces the bytes to send.

It takes bytes and returns bytes; the owner of the connection transfers them
(docs/reference/protocol/replication.md, "Replication stream").
"""

from typing import Protocol

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.stream import (
    TAIL_BYTES,
    TAIL_RECORDS,
    StreamError,
    Transfer,
    read_position,
    read_proved_position,
    tail_checksum,
    write_transfer,
)
from mqproof.impl.store.group_commit import TRANSFER_BYTES


class MastersLog(Protocol):
    """The part of the log that the master's end of a connection uses."""

    @property
    def log_begin(self) -> int: ...
    @property
    def log_end(self) -> int: ...
    @property
    def log_segment_bytes(self) -> int: ...
    def log_read(self, position: int, size: int) -> bytes: ...
    def damaged_record(self, commit_offset: int, count: int) -> int | None: ...


class Feed:
    """The feed of one slave.

    `sent` is the position up to which the log was sent to the slave; None before its first request.
    """

    def __init__(self, log: MastersLog, acks: Acks, check: LogCheck, *, proved: bool = False) -> None:
        """With `proved`, each report of the slave proves the end of its log by a checksum."""
        self.sent: int | None = None
        self._proved = proved
        self._counts = False
        self._log = log
        self._acks = acks
        self._check = check
        self._buffer = bytearray()

    def received(self, data: bytes) -> int | None:
        """Process bytes from the slave; return the position that it acknowledged last in them, or None.

        Raises:
            StreamError: the slave asks for a position that this log does not have, acknowledges one that it
                was not sent, or proves another log.
        """
        self._buffer += data
        acknowledged = None
        while (position := self._next_report()) is not None:
            if self.sent is None:
                self._asked(position)
                if self._check is not LogCheck.AS_SHIPPED:
                    continue
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
        body = self._log.log_read(self.sent, TRANSFER_BYTES)
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

    def _next_report(self) -> int | None:
        """Return the position in the next report of the slave, after its proof was checked."""
        if not self._proved:
            return read_position(self._buffer)
        report = read_proved_position(self._buffer)
        if report is None:
            return None
        position, checksum = report
        # A position beyond the end of this log is refused by its own rule, whose message is clearer.
        if position <= self._log.log_end and checksum != tail_checksum(self._log, position):
            self._require_sound(max(position - TAIL_BYTES, 0), TAIL_RECORDS)
            raise StreamError(f"the slave's log differs from this master's before {position}")
        return position

    def _require_sound(self, begin: int, count: int) -> None:
        """Require that these records of this log are not damaged.

        A slave that compares its log with a damaged record would stop: it cannot see which log is right.
        """
        if (damaged := self._log.damaged_record(begin, count)) is not None:
            raise StreamError(
                f"this master's record at {damaged} is damaged: the slave can follow when it is repaired"
            )

    def _counts_from_now(self) -> None:
        """Count the slave as one that a send may wait for."""
        if not self._counts:
            self._counts = True
            self._acks.joined(self)

    def _asked(self, position: int) -> None:
        log = self._log
        if self._check is LogCheck.AS_SHIPPED:
            self.sent = position or log.log_end - log.log_end % log.log_segment_bytes
            self._acks.reported_as_shipped(self, position)
            return
        if position > log.log_end:
            raise StreamError(
                f"the slave's log goes beyond {position}, this master's ends at {log.log_end}:"
                f" the master lost its last records, or the slave belongs to another master"
            )
        if 0 < position < log.log_begin:
            raise StreamError(f"the slave asks for {position}, this master's log begins at {log.log_begin}")
        # Its last record, which is compared, and the next one. A record at 0 is compared from 1 on.
        self._require_sound(position, 2)
        # A slave with an empty log receives the whole log. Released masters begin at their last segment.
        self.sent = position or log.log_begin
        # The slave's last record is after the position. The first acknowledgement proves it.
        if not self._proved or position == 0:
            self._counts_from_now()

    def _acknowledged(self, position: int) -> None:
        if self._check is LogCheck.AS_SHIPPED:
            self._acks.reported_as_shipped(self, position)
            return
        if self.sent is None or position > min(self.sent, self._log.log_end):
            raise StreamError(
                f"the slave acknowledges {position}, it was sent the log up to {self.sent},"
                f" which ends at {self._log.log_end}"
            )
        self._counts_from_now()
        self._acks.reported(self, position, self._log.log_end)
