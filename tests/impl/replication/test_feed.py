"""Tests the master's end of a connection report by report, with a log of plain bytes.

Source: docs/reference/protocol/replication.md, "Replication stream".
"""

import pytest

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.stream import (
    StreamError,
    read_transfer,
    tail_checksum,
    write_position,
    write_proved_position,
)
from mqproof.impl.store.files import record

BEGIN, END = 1000, 1500


class _Log:
    """A log with the positions from 1000 to 1500, whose records have 100 bytes."""

    log_segment_bytes = 400
    log_begin, log_end = BEGIN, END

    def __init__(self) -> None:
        self.damaged: int | None = None
        self.examined: list[tuple[int, int]] = []

    def log_read(self, position: int, size: int) -> bytes:
        return b"x" * min(size, self.log_end - position) if position >= self.log_begin else b""

    def damaged_record(self, commit_offset: int, count: int) -> int | None:
        self.examined.append((commit_offset, count))
        return self.damaged


def _feed(check: LogCheck = LogCheck.COMPARED) -> tuple[Feed, _Log, Acks]:
    log, acks = _Log(), Acks()
    return Feed(log, acks, check), log, acks


def _frames(feed: Feed) -> list[tuple[int, int]]:
    """Return position and size of each transfer up to the end of the log."""
    found = []
    while frame := feed.next_frame():
        transfer = read_transfer(bytearray(frame))
        assert transfer is not None
        found.append((transfer.position, len(transfer.body)))
    return found


@pytest.mark.parametrize(
    ("check", "asked", "sent"),
    [
        (LogCheck.COMPARED, 0, [(BEGIN, 500)]),
        (LogCheck.COMPARED, BEGIN, [(BEGIN, 500)]),
        (LogCheck.COMPARED, END - 1, [(END - 1, 1)]),
        (LogCheck.COMPARED, END, []),
        (LogCheck.AS_SHIPPED, 0, [(1200, 300)]),
        (LogCheck.AS_SHIPPED, 1300, [(1300, 200)]),
    ],
)
def test_the_log_is_sent_from_the_position_that_a_slave_asks_for(
    check: LogCheck, asked: int, sent: list[tuple[int, int]]
) -> None:
    feed, _, _ = _feed(check)
    assert (feed.next_frame(), feed.heartbeat()) == (b"", b"")
    feed.received(write_position(asked))
    assert _frames(feed) == sent
    beat = read_transfer(bytearray(feed.heartbeat()))
    assert beat is not None
    assert (beat.position, beat.body) == (END, b"")


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (END + 1, "the slave's log goes beyond 1501, this master's ends at 1500"),
        (BEGIN - 1, "the slave asks for 999, this master's log begins at 1000"),
        (1, "the slave asks for 1, this master's log begins at 1000"),
    ],
)
def test_a_position_outside_the_log_is_refused(asked: int, complaint: str) -> None:
    feed, _, acks = _feed()
    with pytest.raises(StreamError, match=complaint):
        feed.received(write_position(asked))
    assert (feed.sent, acks.slaves) == (None, 0)


def test_a_log_longer_than_a_frame_is_sent_in_parts() -> None:
    feed, log, _ = _feed()
    log.log_end = BEGIN + (64 << 10) + 7
    feed.received(write_position(0))
    sizes = [32 << 10, 32 << 10, 7]
    assert _frames(feed) == [(BEGIN + sum(sizes[:number]), sizes[number]) for number in range(3)]


def test_a_slave_asks_where_a_record_is_damaged() -> None:
    feed, log, _ = _feed()
    log.damaged = 1100
    with pytest.raises(StreamError, match="this master's record at 1100 is damaged"):
        feed.received(write_position(1200))
    assert log.examined == [(1200, 2)]


def test_acknowledgements_count_up_to_what_was_sent() -> None:
    feed, log, acks = _feed()
    assert feed.received(write_position(1200)) is None
    assert (acks.slaves, acks.highest) == (1, 0), "it has not acknowledged anything"
    assert _frames(feed) == [(1200, 300)]
    assert feed.received(write_position(1300)) == 1300
    assert (acks.slaves, acks.highest) == (1, 1300)
    assert feed.received(write_position(1400) + write_position(END)) == END
    assert acks.highest == END
    log.log_end = END + 100
    with pytest.raises(StreamError, match="acknowledges 1501, it was sent the log up to 1500,"):
        feed.received(write_position(END + 1))


def test_a_request_and_an_acknowledgement_may_arrive_together() -> None:
    feed, _, acks = _feed()
    assert feed.received(write_position(1200) + write_position(1200)) == 1200
    assert acks.highest == 1200


def test_an_acknowledgement_beyond_the_end_of_the_log_is_refused() -> None:
    feed, log, _ = _feed()
    feed.received(write_position(0))
    _frames(feed)
    log.log_end = END - 100  # the log was cut
    assert feed.received(write_position(END - 100)) == END - 100
    with pytest.raises(StreamError, match="which ends at 1400"):
        feed.received(write_position(END - 99))


def test_a_slave_with_an_empty_log_counts_from_its_request_until_it_leaves() -> None:
    feed, _, acks = _feed()
    report = write_position(0)
    assert feed.received(report[:5]) is None
    assert acks.slaves == 0
    assert feed.received(report[5:]) is None
    assert acks.slaves == 1
    feed.left()
    assert acks.slaves == 0


def test_the_request_of_a_released_slave_is_its_first_acknowledgement() -> None:
    feed, _, acks = _feed(LogCheck.AS_SHIPPED)
    assert feed.received(write_position(1200)) == 1200
    assert acks.slaves == 1
    assert feed.received(write_position(1400)) == 1400


def test_a_log_that_no_longer_has_the_next_bytes_ends_the_feed() -> None:
    feed, log, _ = _feed()
    feed.received(write_position(1200))
    log.log_begin = 1300
    with pytest.raises(StreamError, match="the log no longer has 1200, it begins at 1300"):
        feed.next_frame()


@pytest.mark.parametrize(("position", "begin"), [(BEGIN + 300, 276), (1024, 0), (1025, 1)])
def test_a_wrong_proof_is_refused_after_the_own_log_was_examined(position: int, begin: int) -> None:
    log = _Log()
    feed = Feed(log, Acks(), LogCheck.COMPARED, proved=True)
    report = write_proved_position(position, tail_checksum(log, position) ^ 1)
    with pytest.raises(StreamError, match=f"the slave's log differs from this master's before {position}"):
        feed.received(report)
    assert log.examined == [(begin, 1024 // record.SIZE_MIN + 1)]
    log.damaged = 1100
    with pytest.raises(StreamError, match="this master's record at 1100 is damaged"):
        Feed(log, Acks(), LogCheck.COMPARED, proved=True).received(report)


def test_a_right_proof_counts_with_the_first_acknowledgement() -> None:
    log, acks = _Log(), Acks()
    feed = Feed(log, acks, LogCheck.COMPARED, proved=True)
    report = write_proved_position(END, tail_checksum(log, END))
    assert feed.received(report[:11]) is None
    assert feed.received(report[11:]) is None
    assert acks.slaves == 0
    assert feed.received(report) == END
    assert (acks.slaves, acks.highest) == (1, END)


def test_a_proof_beyond_the_end_is_refused_as_a_position() -> None:
    feed = Feed(_Log(), Acks(), LogCheck.COMPARED, proved=True)
    with pytest.raises(StreamError, match=f"the slave's log goes beyond {END + 1}"):
        feed.received(write_proved_position(END + 1, 0))
    log, acks = _Log(), Acks()
    feed = Feed(log, acks, LogCheck.COMPARED, proved=True)
    feed.received(write_proved_position(0, 0))
    assert acks.slaves == 1, "an empty log needs no proof"


def test_the_position_of_a_slave_never_decreases() -> None:
    feed, _, acks = _feed()
    feed.received(write_position(1200))
    _frames(feed)
    for position in (1400, 1300):
        feed.received(write_position(position))
    assert acks.positions() == (1400,)
