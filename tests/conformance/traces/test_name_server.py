"""Event logs of name servers as traces of Routing: corrupted logs are refused, windows accepted.

TLC runs once for all of them. test_runs.py tests that simulated runs are accepted.
"""

from collections.abc import Callable

import pytest

from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.name_server import traces
from mqproof.report.model import Verdict
from mqproof.spec.events import Event, EventError, Kind
from tests.conformance.traces.event_logs import changed, first, moved, renumbered, without, write

pytestmark = pytest.mark.xdist_group("traces")

_A, _B = ("b-a", "1.0.0.1:10911"), ("b-b", "1.0.0.2:10911")


class _Log:
    """The events that a name server would write; `at` is in seconds."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.emit(0, Kind.RECOVER, expiry_ms="120000", scan_interval_ms="10000")

    def emit(self, at: float, kind: Kind, topic: str | None = None, **attrs: str) -> None:
        self.events.append(Event(int(at * 1e6), len(self.events), "ns", kind, topic=topic, attrs=attrs))

    def broker(self, at: float, kind: Kind, broker: tuple[str, str], **attrs: str) -> None:
        self.emit(at, kind, broker=broker[0], address=broker[1], **attrs)

    def route(self, at: float, brokers: str, writable: str, topic: str = "T") -> None:
        self.emit(at, Kind.ROUTE, topic, brokers=brokers, writable=writable)


def _log() -> list[Event]:
    """Return a log of two masters: one falls silent, the other leaves and returns."""
    log = _Log()
    log.broker(0, Kind.REGISTER, _A, id="0")
    log.broker(1.5, Kind.REGISTER, _B, id="0")
    log.route(2, "b-a:0,b-b:0", "b-a,b-b", "TBW102")
    log.route(2, "", "")
    for second in range(30, 240, 30):
        if second < 90:
            log.broker(second, Kind.REGISTER, _A, id="0")
        log.broker(second + 1.5, Kind.REGISTER if second == 30 else Kind.HEARTBEAT, _B, id="0")
        if second < 180:
            log.route(second + 2, "b-a:0,b-b:0", "b-a,b-b")
    log.broker(190, Kind.EXPIRE, _A, reason="silent")
    log.route(191, "b-b:0", "b-b")
    log.broker(192, Kind.UNREGISTER, _B)
    log.route(193, "", "")
    log.broker(194, Kind.REGISTER, _B, id="0")
    log.route(195, "b-b:0", "b-b")
    return renumbered(sorted(log.events, key=lambda event: event.ts))


def _forgotten_too_early(log: list[Event]) -> list[Event]:
    """A broker is removed one minute after its last message."""
    at = first(log, Kind.EXPIRE)
    return changed(moved(log, at, at - 4), at - 3, ts=log[at - 4].ts)


def _never_forgotten(log: list[Event]) -> list[Event]:
    """A broker is silent for longer than expiry and scan, and is still registered."""
    at = first(log, Kind.EXPIRE)
    return without(log, at)


def _a_broker_that_left_is_shown(log: list[Event]) -> list[Event]:
    at = first(log, Kind.UNREGISTER)
    return changed(log, at + 1, attrs={"brokers": "b-b:0", "writable": "b-b"})


def _a_live_broker_is_not_shown(log: list[Event]) -> list[Event]:
    at = first(log, Kind.ROUTE)
    return changed(log, at, attrs={"brokers": "b-a:0", "writable": "b-a"})


def _an_unknown_broker_is_shown(log: list[Event]) -> list[Event]:
    at = first(log, Kind.ROUTE)
    return changed(log, at, attrs={"brokers": "b-a:0,b-b:0,b-c:0", "writable": "b-a,b-b"})


def _a_slave_that_never_came_is_shown(log: list[Event]) -> list[Event]:
    at = first(log, Kind.ROUTE)
    return changed(log, at, attrs={"brokers": "b-a:0,b-a:1,b-b:0", "writable": "b-a,b-b"})


def _a_name_without_brokers_is_writable(log: list[Event]) -> list[Event]:
    at = first(log, Kind.ROUTE)
    return changed(log, at, attrs={"brokers": "b-a:0,b-b:0", "writable": "b-a,b-b,b-c"})


def _memory_outlives_a_restart(log: list[Event]) -> list[Event]:
    at = first(log, Kind.HEARTBEAT)
    return [*log[:at], changed([log[0]], 0, ts=log[at].ts)[0], *log[at:]]


def _unknown_broker_heartbeat(log: list[Event]) -> list[Event]:
    at = first(log, Kind.HEARTBEAT)
    return changed(log, at, attrs={"broker": "b-c", "address": "1.0.0.3:10911"})


def _left_twice(log: list[Event]) -> list[Event]:
    at = first(log, Kind.UNREGISTER)
    return [*log[: at + 1], *log[at:]]


CORRUPTIONS: tuple[Callable[[list[Event]], list[Event]], ...] = (
    _forgotten_too_early,
    _never_forgotten,
    _a_broker_that_left_is_shown,
    _a_live_broker_is_not_shown,
    _an_unknown_broker_is_shown,
    _a_slave_that_never_came_is_shown,
    _a_name_without_brokers_is_writable,
    _memory_outlives_a_restart,
    _unknown_broker_heartbeat,
    _left_twice,
)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogVerdict]:
    """Return the verdicts by name, from one run of TLC."""
    folder = tmp_path_factory.mktemp("name-servers")
    logs = {corrupt.__name__: renumbered(corrupt(_log())) for corrupt in CORRUPTIONS}
    logs["good"] = _log()
    logs["partial"] = [event for event in _log() if event.kind is not Kind.ROUTE]
    paths = [write(folder / name, renumbered(events)) for name, events in logs.items()]
    return {log.path.name: log for log in check_logs(paths, records_max=2)}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda corrupt: corrupt.__name__.lstrip("_"))
def test_a_corrupted_log_is_refused(
    checked: dict[str, LogVerdict], corrupt: Callable[[list[Event]], list[Event]]
) -> None:
    (result,) = results([checked[corrupt.__name__]])
    assert result.verdict is Verdict.VIOLATED
    assert "no action of Routing explains" in result.witnesses[0].text


@pytest.mark.parametrize("name", ["good", "partial"])
def test_a_log_is_accepted_in_windows_and_without_client_requests(
    checked: dict[str, LogVerdict], name: str
) -> None:
    (result,) = results([checked[name]])
    assert result.verdict is Verdict.HELD, result.witnesses
    assert result.counts["traces"] > 1


def test_a_window_begins_with_the_known_brokers_and_their_ages() -> None:
    second = list(traces(_log(), "log", records_max=1))[1]
    assert [event["event"] for event in second.events[:4]] == ["register", "tick", "register", "tick"]


def test_each_requested_topic_has_a_trace() -> None:
    log = [*_log(), Event(200_000_000, len(_log()), "ns", Kind.ROUTE, topic="U", attrs={"brokers": ""})]
    log = renumbered(log)
    assert len(list(traces(log, "log"))) == 2


def test_missing_events_are_an_error() -> None:
    with pytest.raises(EventError, match="events are missing"):
        list(traces(without(_log(), 3), "log"))


def test_a_registration_without_its_id_is_an_error() -> None:
    log = changed(_log(), 1, attrs={"broker": "b-a", "address": "1.0.0.1:10911"})
    with pytest.raises(EventError, match=r"register at seq 1 has no attrs\.id"):
        list(traces(log, "log"))
