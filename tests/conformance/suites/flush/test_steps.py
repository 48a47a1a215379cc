"""A history is shown as a script and written as an event log."""

from mqproof.conformance.suites.flush.steps import Commit, Restart, events, numbered
from mqproof.spec.events import Kind, decode, encode
from tests.conformance.suites.flush.histories import KILLED, SYNC, abandoned, found, refused, seen, stored

HISTORY = seen(
    SYNC,
    stored("m1", 0),
    refused("m2"),
    abandoned("m3"),
    found(0, "m1"),
    Commit(0, 1, True),
    KILLED,
    Restart(),
)


def test_a_history_reads_as_numbered_steps() -> None:
    lines = [line.strip() for line in numbered(HISTORY).splitlines()]
    assert lines[0] == "1. open a broker, SYNC_FLUSH, 1 queue(s), seed 0"
    assert lines[1] == "2. send m1 (10 bytes) to queue 0: SEND_OK at offset 0"
    assert lines[-2:] == ["7. kill", "8. restart"]


def test_a_history_is_written_as_an_event_log() -> None:
    log = list(events(HISTORY))
    assert [event.kind for event in log] == [
        Kind.SEND, Kind.SEND_ACK, Kind.SEND, Kind.SEND_FAIL, Kind.SEND, Kind.SEND_FAIL,
        Kind.DELIVER, Kind.OFFSET_COMMIT, Kind.CRASH,
    ]  # fmt: skip
    assert [event.seq for event in log] == list(range(len(log)))
    assert [decode(encode(event), "log:1") for event in log] == log
    assert [event.status for event in log if event.kind is Kind.SEND_FAIL] == ["SYSTEM_BUSY", "unknown"]
