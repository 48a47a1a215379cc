"""The slave's end of a replication connection: requests, compares, stores and acknowledges the master's log.

It takes bytes and returns bytes; the owner of the connection transfers them. It stores only whole records. A
record that is damaged, or that the master's log cannot have at that position, ends the connection before
anything of it is written (docs/reference/protocol/replication.md, "Replication stream").
"""

from collections.abc import Sequence
from typing import Protocol

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.replication import rules
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.stream import (
    TAIL_BYTES,
    TAIL_RECORDS,
    StreamError,
    Transfer,
    read_transfer,
    tail_checksum,
    write_position,
    write_proved_position,
)
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError


class DivergedError(Exception):
    """The slave's log differs from its master's.

    The slave must not follow until an operator decides which log is right.
    """


class SlavesLog(Protocol):
    """The part of the log that the slave's end of a connection uses."""

    @property
    def log_end(self) -> int: ...
    @property
    def log_last_record(self) -> int | None: ...
    @property
    def log_segment_bytes(self) -> int: ...
    def log_read(self, position: int, size: int) -> bytes: ...
    def damaged_record(self, commit_offset: int, count: int) -> int | None: ...
    def append_replicated(self, records: Sequence[tuple[bytes, StoredMessage]]) -> None: ...


class Follow:
    """The state of one connection. `verified`: the slave's log was found to agree with the master's."""

    def __init__(
        self, log: SlavesLog, record_bytes_max: int, check: LogCheck, *, proves: bool = False
    ) -> None:
        """With `proves`, each report has the checksum of the end of this log."""
        self._log = log
        self._proves = proves
        self._record_bytes_max = record_bytes_max
        self._buffer = bytearray()
        compares = check is LogCheck.COMPARED and log.log_last_record is not None
        self.verified = not compares
        self.first_position = (
            rules.first_report(log.log_last_record, log.log_end) if compares else log.log_end
        )
        self._position = self.first_position  # commit offset of the next byte to receive
        self._pending = bytearray()  # the record or filler that is not complete yet
        self._filler_left = 0

    def require_sound(self) -> None:
        """Require that the end of this log, which is compared or proved, is not damaged.

        Raises:
            StreamError: it is damaged. The logs can be compared when a peer has repaired it.
        """
        begin = min(self.first_position, max(self._log.log_end - TAIL_BYTES, 0))
        if (damaged := self._log.damaged_record(begin, TAIL_RECORDS)) is not None:
            raise StreamError(
                f"this slave's record at {damaged} is damaged: it can follow when it is repaired"
            )

    def report(self) -> bytes:
        """Return the slave's position report: sent first, periodically, and whenever its log has grown."""
        position = self._log.log_end if self.verified else self.first_position
        if not self._proves:
            return write_position(position)
        return write_proved_position(position, tail_checksum(self._log, position))

    def received(self, data: bytes) -> bytes:
        """Process bytes from the master up to a transfer by which the log grows; return the bytes to answer.

        After an answer, call it again without bytes, because more transfers may have been received. The
        master processes the answer while the slave stores the next transfer.

        Raises:
            StreamError: the bytes are damaged or out of place. DivergedError: the logs differ.
            OSError: the disk failed.
        """
        self._buffer += data
        end, verified = self._log.log_end, self.verified
        while (transfer := read_transfer(self._buffer)) is not None:
            self._take(transfer)
            if self._log.log_end != end or self.verified != verified:
                return self.report()
        return b""

    def _take(self, transfer: Transfer) -> None:
        if self._log.log_end == 0 and self._position == 0:
            self._begin(transfer.position)
        if not rules.continues(transfer.position, self._position):
            raise StreamError(f"the master sends from {transfer.position}, {self._position} expected")
        body = transfer.body
        if not self.verified:
            body = self._compare(body)
        if body:
            self._keep(body)

    def _begin(self, position: int) -> None:
        """Start an empty log at the position where the master's log begins."""
        if position % self._log.log_segment_bytes:
            raise StreamError(
                f"the master begins at {position}, a multiple of {self._log.log_segment_bytes} expected:"
                f" do both have the same mappedFileSizeCommitLog?"
            )
        self._position = position

    def _compare(self, body: bytes) -> bytes:
        """Compare the first bytes received with the log's last record; return the bytes after that record."""
        end = self._log.log_end
        if not body:
            raise DivergedError(
                f"this slave's log ends at {end}, its master's at or before {self._position}:"
                f" the master lost its last records, or the slave belongs to another master"
            )
        compared = min(len(body), end - self._position)
        own = self._log.log_read(self._position, compared)
        if not rules.agrees(own, body[:compared]):
            raise DivergedError(
                f"the last record of this slave's log, at {self._log.log_last_record}, is not its master's:"
                f" the master lost its last records, or the slave belongs to another master"
            )
        self._position += compared
        self.verified = self._position == end
        return body[compared:]

    # Splitting into whole records.

    def _keep(self, body: bytes) -> None:
        self._pending += body
        self._position += len(body)
        records: list[tuple[bytes, StoredMessage]] = []
        at = 0
        while (size := self._next(at)) is not None:
            if self._filler_left:
                self._filler_left -= size
            else:
                records.append(self._record(at, size))
            at += size
        del self._pending[:at]
        if records:
            self._log.append_replicated(records)

    def _next(self, at: int) -> int | None:
        """Return the size of the whole record, or part of a filler, at offset `at` of the pending bytes.

        None means that more bytes are needed.
        """
        left = len(self._pending) - at
        if self._filler_left:
            return min(left, self._filler_left) or None
        if left < record.FILLER_BYTES:
            return None
        size, magic = record.peek(bytes(self._pending[at : at + record.FILLER_BYTES]))
        place = self._place(at)
        room = self._log.log_segment_bytes - place % self._log.log_segment_bytes
        if magic == record.MAGIC_FILLER and size == room:
            self._filler_left = size
            return min(left, size)
        # Checked before the rest arrives, so that a master cannot make us buffer a size that it only
        # announces.
        # After a record, a segment must have room for a filler: nothing else can end the segment.
        most = min(room - record.FILLER_BYTES, self._record_bytes_max)
        if magic not in record.MAGICS or not record.SIZE_MIN <= size <= most:
            raise StreamError(f"no record at {place}: size {size}, at most {most} expected, magic {magic:#x}")
        return size if size <= left else None

    def _record(self, at: int, size: int) -> tuple[bytes, StoredMessage]:
        data = bytes(self._pending[at : at + size])
        try:
            return data, record.decode(data, self._place(at))
        except RecordError as error:
            raise StreamError(f"no record at {self._place(at)}: {error}") from None

    def _place(self, at: int) -> int:
        """Return the commit offset of byte `at` of the pending bytes."""
        return self._position - len(self._pending) + at
