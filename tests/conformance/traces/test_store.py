"""Cutting a broker's event log into traces, and TLC's verdict on them.

TLC runs once for many logs: correct ones, and one log for each corruption that the model must refuse.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.store import windows
from mqproof.report.model import Verdict
from mqproof.spec.events import Event, EventError, Kind, encode
from tests.conformance.traces.broker_log import RECORD_BYTES, BrokerLog


def _cut(log: BrokerLog, records_max: int = 200) -> list[list[str]]:
    return [[str(e["event"]) for e in w.events] for w in windows(log.events, "log", records_max)]


def test_a_message_becomes_append_flush_dispatch_answer() -> None:
    log = BrokerLog().recovered()
    log.message()
    assert _cut(log) == [["open", "append", "flush", "dispatch", "answer"]]


def test_a_full_window_omits_settled_records_and_passes_on_open_ones() -> None:
    log = BrokerLog().recovered()
    log.message()
    log.append()
    log.append()
    second = list(windows(log.events, "log", records_max=2))[1]
    appends = [event for event in second.events if event["event"] == "append"]
    assert [(a["message"], a["offset"]) for a in appends] == [("m1", 0), ("m2", 1)]


def test_a_window_grows_while_its_records_are_open() -> None:
    log = BrokerLog().recovered()
    for _ in range(9):
        log.append()
    assert len(_cut(log, records_max=3)) == 1


def test_a_recovery_ends_a_window_and_the_next_begins_settled() -> None:
    log = BrokerLog().recovered()
    log.message()
    log.recovered(crashed=True)
    log.message()
    first, second = windows(log.events, "log")
    assert first.events[-2:] == ({"event": "crash", "length": 1}, {"event": "recover", "length": 1})
    assert second.events[1] == {"event": "append", "message": "m1", "queue": "q0", "offset": 0}


def test_a_missing_event_is_an_error() -> None:
    log = BrokerLog().recovered()
    log.message()
    del log.events[2]
    with pytest.raises(EventError, match="seq 3 follows 1"):
        list(windows(log.events, "log"))


def test_an_append_without_size_is_an_error() -> None:
    log = BrokerLog().recovered()
    log.log(Kind.APPEND, topic="T", queue_id=0, queue_offset=0, commit_offset=0)
    with pytest.raises(EventError, match=r"attrs\.size is '', expected bytes"):
        list(windows(log.events, "log"))


def test_a_recovery_without_a_flush_mode_is_an_error() -> None:
    with pytest.raises(EventError, match="expected SYNC_FLUSH or ASYNC_FLUSH"):
        list(windows([Event(ts=0, seq=0, node="b0", kind=Kind.RECOVER, commit_offset=0)], "log"))


def _good_lives() -> Iterable[Event]:
    log = BrokerLog().recovered()
    for n in range(5):
        log.message(queue_id=n % 2)
    log.append()
    log.recovered(crashed=True)  # SIGKILL: the unflushed record remains in the page cache
    log.message()
    log.flush(file="queues")
    log.recovered()  # a clean exit
    log.message(queue_id=1)
    return log.events


def _os_crash_takes_an_unflushed_record() -> Iterable[Event]:
    log = BrokerLog(mode="ASYNC_FLUSH").recovered()
    log.message()
    offset = log.append()
    log.ack(0, offset)
    log.offsets[0] -= 1
    log.recovered(end=RECORD_BYTES, crashed=True)
    log.message()
    return log.events


def _many_windows() -> Iterable[Event]:
    log = BrokerLog().recovered()
    for n in range(450):
        log.message(queue_id=n % 3)
    return log.events


def _ack_before_flush() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.ack(0, log.append())
    return log.events


def _dispatch_before_flush() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.dispatch(0, log.append(), 0)
    return log.events


def _offset_used_twice() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.message()
    log.offsets[0] = 0
    log.message()
    return log.events


def _flushed_record_lost() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.message()
    log.recovered(end=0, crashed=True)
    return log.events


def _settled_record_lost() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.message()
    log.recovered(crashed=True)
    log.recovered(end=0, crashed=True)
    return log.events


def _clean_exit_without_flush() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.append()
    log.recovered()
    return log.events


def _dispatched_to_another_queue() -> Iterable[Event]:
    log = BrokerLog().recovered()
    log.append()
    log.flush()
    log.dispatch(1, 0, 0)
    return log.events


def _late_timeout() -> Iterable[Event]:
    log = BrokerLog().recovered()
    offset = log.append()
    log.flush()
    log.ack(0, offset, "FLUSH_DISK_TIMEOUT")
    return log.events


GOOD = (_good_lives, _os_crash_takes_an_unflushed_record, _many_windows)
BAD = (
    _ack_before_flush,
    _dispatch_before_flush,
    _offset_used_twice,
    _flushed_record_lost,
    _settled_record_lost,
    _clean_exit_without_flush,
    _dispatched_to_another_queue,
    _late_timeout,
)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogVerdict]:
    folder = tmp_path_factory.mktemp("logs")
    paths = []
    for make in (*GOOD, *BAD):
        path = folder / f"{make.__name__}.ndjson"
        path.write_bytes(b"".join(map(encode, make())))
        paths.append(path)
    return {log.path.stem: log for log in check_logs(paths)}


@pytest.mark.parametrize("make", GOOD)
def test_a_log_that_the_model_explains_is_accepted(
    make: Callable[[], Iterable[Event]], verdicts: dict[str, LogVerdict]
) -> None:
    (result,) = results([verdicts[make.__name__]])
    assert result.verdict is Verdict.HELD, result.witnesses


@pytest.mark.parametrize("make", BAD)
def test_a_log_that_the_model_does_not_explain_is_refused_with_the_event(
    make: Callable[[], Iterable[Event]], verdicts: dict[str, LogVerdict]
) -> None:
    (result,) = results([verdicts[make.__name__]])
    assert result.verdict is Verdict.VIOLATED
    assert "no action of Flush explains" in result.witnesses[0].text


def test_a_log_without_store_events_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "empty.ndjson"
    path.write_bytes(b"")
    (result,) = results(check_logs([path]))
    assert result.verdict is Verdict.UNKNOWN
