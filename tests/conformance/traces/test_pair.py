"""Event logs of a master and its slave as traces of Replication: corrupted logs are refused.

TLC runs once for all of them. test_runs.py tests that simulated runs are accepted.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.subjects.pair import Pair, play
from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.pair import traces
from mqproof.impl.store.config import FlushMode
from mqproof.report.model import Verdict
from mqproof.spec.events import Event, EventError, Kind
from tests.conformance.traces.event_logs import changed, first, moved, renumbered, without, write

pytestmark = pytest.mark.xdist_group("traces")


async def _quiet(pair: Pair) -> list[Event]:
    await pair.followed()
    for number in range(8):
        await pair.send(f"m{number}")
    return list(pair.events)


def _log() -> list[Event]:
    return play(_quiet, flush=FlushMode.SYNC_FLUSH)


def _acked_before_the_slave(log: list[Event]) -> list[Event]:
    """The producer receives success before the slave has reported the record."""
    return moved(log, first(log, Kind.SEND_ACK), first(log, Kind.APPEND, SLAVE))


def _acked_before_the_fsync(log: list[Event]) -> list[Event]:
    """The answer does not wait for a synchronous flush."""
    return [e for e in log if e.node != MASTER or e.kind is not Kind.FLUSH or e.attrs["file"] != "log"]


def _acknowledged_unwritten(log: list[Event]) -> list[Event]:
    """The slave's report precedes its record."""
    ack = first(log, Kind.HA_ACK)
    return moved(log, ack, first(log, Kind.HA_TRANSFER))


def _never_sent(log: list[Event]) -> list[Event]:
    """The slave has a record that its master has not sent yet."""
    return moved(log, first(log, Kind.APPEND, SLAVE), first(log, Kind.APPEND, MASTER))


def _another_message(log: list[Event]) -> list[Event]:
    return changed(log, first(log, Kind.APPEND, SLAVE), msg_id="another")


def _another_queue(log: list[Event]) -> list[Event]:
    return changed(log, first(log, Kind.APPEND, SLAVE), queue_id=7)


def _a_record_is_skipped(log: list[Event]) -> list[Event]:
    return without(log, first(log, Kind.APPEND, SLAVE))


def _answered_twice(log: list[Event]) -> list[Event]:
    at = first(log, Kind.SEND_ACK)
    return [*log[: at + 1], *log[at:]]


def _answer_about_nothing(log: list[Event]) -> list[Event]:
    """The answer is about a record that was never appended."""
    return changed(log, first(log, Kind.SEND_ACK), commit_offset=77)


def _back(log: list[Event], node: str, end: int, *, crashed: bool) -> list[Event]:
    last = log[-1]
    crash = Event(ts=last.ts, seq=0, node=node, kind=Kind.CRASH, attrs={"kind": "unknown"})
    attrs = {"flush_disk_type": "SYNC_FLUSH"}
    back = Event(ts=last.ts, seq=0, node=node, kind=Kind.RECOVER, commit_offset=end, attrs=attrs)
    return [*log, *([crash] if crashed else []), back]


def _durable_record_lost(log: list[Event]) -> list[Event]:
    return _back(log, MASTER, 0, crashed=True)


def _clean_exit_that_lost_a_record(log: list[Event]) -> list[Event]:
    return _back(log, SLAVE, 0, crashed=False)


CORRUPTIONS: tuple[Callable[[list[Event]], list[Event]], ...] = (
    _acked_before_the_slave,
    _acked_before_the_fsync,
    _acknowledged_unwritten,
    _never_sent,
    _another_message,
    _another_queue,
    _a_record_is_skipped,
    _answered_twice,
    _answer_about_nothing,
    _durable_record_lost,
    _clean_exit_that_lost_a_record,
)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogVerdict]:
    """Return Replication's verdicts by name, from one run of TLC."""
    folder = tmp_path_factory.mktemp("pairs")
    logs = {corrupt.__name__: renumbered(corrupt(_log())) for corrupt in CORRUPTIONS}
    logs["good"] = _log()
    logs["master alone"] = [event for event in _log() if event.node == MASTER]
    paths = [write(folder / name, events) for name, events in logs.items()]
    verdicts = check_logs(paths, records_max=3, models=["Replication"])
    return {log.path.name: log for log in verdicts}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda corrupt: corrupt.__name__.lstrip("_"))
def test_a_corrupted_log_is_refused(
    checked: dict[str, LogVerdict], corrupt: Callable[[list[Event]], list[Event]]
) -> None:
    (result,) = results([checked[corrupt.__name__]])
    assert result.verdict is Verdict.VIOLATED
    assert "no action of Replication explains" in result.witnesses[0].text


@pytest.mark.parametrize("name", ["good", "master alone"])
def test_a_log_is_accepted_in_windows_and_without_the_slaves_reports(
    checked: dict[str, LogVerdict], name: str
) -> None:
    (result,) = results([checked[name]])
    assert result.verdict is Verdict.HELD, result.witnesses
    assert result.counts["traces"] > 1


def test_a_window_begins_with_the_last_record_of_the_previous_one() -> None:
    second = list(traces(_log(), "log", records_max=3))[1]
    appends = [event for event in second.events if event["event"] == "append"]
    assert [(event["node"], event["message"]) for event in appends[:2]] == [("master", "m1"), ("slave", "m1")]


def test_missing_events_are_an_error() -> None:
    log = _log()
    del log[first(log, Kind.HA_ACK)]
    with pytest.raises(EventError, match="events are missing"):
        list(traces(log, "log"))


def test_a_log_that_begins_with_unrecorded_records_is_no_trace() -> None:
    log = [msgspec.structs.replace(e, commit_offset=400) if e.kind is Kind.RECOVER else e for e in _log()]
    assert list(traces(log, "log")) == []


def test_a_log_of_two_masters_is_no_trace(tmp_path: Path) -> None:
    log = _log()
    at = first(log, Kind.HA_TRANSFER)
    other = msgspec.structs.replace(log[at], node="other", seq=0)
    (verdict,) = check_logs([write(tmp_path / "log", [*log, other])], models=["Replication"])
    (result,) = results([verdict])
    assert result.verdict is Verdict.UNKNOWN
