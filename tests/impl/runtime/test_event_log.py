"""Tests the event log of a node: consecutive numbers and whole lines, across restarts and kills."""

from pathlib import Path

import pytest

from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.simulated_loop import EPOCH_US, ManualClock
from mqproof.spec.events import SCHEMA_VERSION, Event, EventError, Kind, read_log


def test_events_have_node_time_and_consecutive_numbers() -> None:
    events: list[Event] = []
    log = EventLog(events.append, "broker-a", ManualClock())
    log.emit(Kind.APPEND, msg_id="m1", topic="T", queue_id=0, queue_offset=0, attrs={"size": "10"})
    log.emit(Kind.FLUSH, commit_offset=10)
    assert [(event.seq, event.node, event.ts) for event in events] == [
        (0, "broker-a", EPOCH_US),
        (1, "broker-a", EPOCH_US),
    ]
    assert events[0].attrs == {"size": "10", "schema": str(SCHEMA_VERSION)}
    assert events[1].attrs == {}


def test_numbering_continues_after_a_restart_and_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    first = EventLog.to_file(str(path), "a", ManualClock())
    for _ in range(3):
        first.emit(Kind.HEARTBEAT)
    with path.open("ab") as file:
        file.write(b'{"ts":1,"seq":3,"no')
    second = EventLog.to_file(str(path), "a", ManualClock())
    second.emit(Kind.RECOVER)
    assert [event.seq for event in read_log(path)] == [0, 1, 2, 3]


def test_the_last_append_of_an_earlier_process_is_known(tmp_path: Path) -> None:
    path = str(tmp_path / "events.ndjson")
    first = EventLog.to_file(path, "a", ManualClock())
    assert first.last_append is None
    for commit_offset in (0, 100):
        first.emit(Kind.APPEND, commit_offset=commit_offset)
    first.emit(Kind.FLUSH, commit_offset=200)
    EventLog.to_file(path, "b", ManualClock()).emit(Kind.APPEND, commit_offset=7)
    again = EventLog.to_file(path, "a", ManualClock())
    assert (again.last_append, again.seq_next) == (100, 3)


def test_nodes_that_write_to_one_file_number_their_own_events(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    logs = {node: EventLog.to_file(str(path), node, ManualClock()) for node in "ab"}
    for node in "aab":
        logs[node].emit(Kind.HEARTBEAT)
    again = EventLog.to_file(str(path), "a", ManualClock())
    again.emit(Kind.HEARTBEAT)
    assert [(event.node, event.seq) for event in read_log(path)] == [("a", 0), ("a", 1), ("b", 0), ("a", 2)]


def test_a_file_that_is_not_an_event_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"hello\n")
    with pytest.raises(EventError, match=r"notes.txt: not an event"):
        EventLog.to_file(str(path), "a", ManualClock())
