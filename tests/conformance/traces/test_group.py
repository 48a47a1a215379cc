"""Event logs of DLedger groups as traces of Election: corrupted ones are refused.

TLC runs once for all of them. That simulated runs are accepted is seen in test_group_runs.py.
"""

from collections.abc import Callable

import msgspec
import pytest

from conformance.traces.check import LogVerdict, check_logs, results
from conformance.traces.group import trace
from report.model import Verdict
from spec.events import Event, EventError, Kind
from tests.conformance.traces.event_logs import changed, first, renumbered, write
from tests.conformance.traces.group_runs import quiet_run

pytestmark = pytest.mark.xdist_group("group-traces")


@pytest.fixture(scope="module")
def good() -> list[Event]:
    """A quiet group."""
    return quiet_run()


def _acknowledged_too_early(events: list[Event]) -> list[Event]:
    """A client hears of success before the entry is committed."""
    ack = first(events, Kind.SEND_ACK)
    taken = first(events, Kind.RAFT_APPEND, index=events[ack].attrs["index"], role="leader")
    return [*events[: taken + 1], events[ack], *events[taken + 1 : ack], *events[ack + 1 :]]


def _kept_before_the_sync(events: list[Event]) -> list[Event]:
    """A follower answers for what is not durable."""
    kept = first(events, Kind.HA_ACK)
    node = events[kept].node
    synced = max(n for n, e in enumerate(events[:kept]) if e.kind is Kind.FLUSH and e.node == node)
    return [*events[:synced], *events[synced + 1 :]]


def _committed_without_quorum(events: list[Event]) -> list[Event]:
    """A leader commits and nobody had told it that the entry is kept."""
    commit = first(events, Kind.RAFT_COMMIT)
    return [e for n, e in enumerate(events) if n > commit or e.kind is not Kind.HA_ACK]


def _leads_without_votes(events: list[Event]) -> list[Event]:
    leads = first(events, Kind.BECOME_LEADER)
    candidate = events[leads].node
    return [e for n, e in enumerate(events) if n > leads or e.kind is not Kind.VOTE or e.node == candidate]


def _votes_twice(events: list[Event]) -> list[Event]:
    """A voter votes for itself too."""
    vote = next(n for n, e in enumerate(events) if e.status == "ACCEPT" and e.attrs["candidate"] != e.node)
    again = msgspec.structs.replace(events[vote], attrs={"candidate": events[vote].node})
    return [*events[: vote + 1], again, *events[vote + 1 :]]


def _other_entry_at_a_follower(events: list[Event]) -> list[Event]:
    """A follower writes an entry of a term that its leader does not have there."""
    written = first(events, Kind.RAFT_APPEND, role="follower")
    return changed(events, written, term=(events[written].term or 0) + 1)


def _durable_entry_lost(events: list[Event]) -> list[Event]:
    """A member comes back without what it had synced."""
    last = events[-1]
    node = next(e.node for e in events if e.kind is Kind.HA_ACK)
    attrs = {"index": "-1", "end_term": "0", "voted_for": "", "members": "n0,n1,n2"}
    crash = Event(ts=last.ts, seq=0, node=node, kind=Kind.CRASH, attrs={"kind": "power"})
    back = Event(ts=last.ts, seq=0, node=node, kind=Kind.RECOVER, term=last.term or 1, attrs=attrs)
    return [*events, crash, back]


CORRUPTIONS: tuple[Callable[[list[Event]], list[Event]], ...] = (
    _acknowledged_too_early,
    _kept_before_the_sync,
    _committed_without_quorum,
    _leads_without_votes,
    _votes_twice,
    _other_entry_at_a_follower,
    _durable_entry_lost,
)


@pytest.fixture(scope="module")
def checked(good: list[Event], tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogVerdict]:
    """Verdicts by name, from one run of TLC."""
    folder = tmp_path_factory.mktemp("groups")
    logs = {corrupt.__name__: renumbered(corrupt(good)) for corrupt in CORRUPTIONS}
    paths = [write(folder / name, events) for name, events in logs.items()]
    return {log.path.name: log for log in check_logs(paths, models=["Election"])}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda corrupt: corrupt.__name__.lstrip("_"))
def test_a_corrupted_log_is_refused(
    checked: dict[str, LogVerdict], corrupt: Callable[[list[Event]], list[Event]]
) -> None:
    (result,) = results([checked[corrupt.__name__]])
    assert result.verdict is Verdict.VIOLATED
    assert "no action of Election explains" in result.witnesses[0].text


def test_missing_events_are_an_error(good: list[Event]) -> None:
    with pytest.raises(EventError, match="events are missing"):
        trace([e for e in good if e.kind is not Kind.FLUSH], "log")


def test_a_log_that_begins_in_the_middle_is_an_error(good: list[Event]) -> None:
    start = next(e for e in good if e.kind is Kind.RECOVER)
    later = changed([start], 0, attrs={**start.attrs, "index": "7", "end_term": "2"})
    with pytest.raises(EventError, match="begins with 8 entries"):
        trace(later, "log")


def test_an_event_without_its_index_is_an_error() -> None:
    event = Event(ts=0, seq=0, node="n0", kind=Kind.RAFT_COMMIT)
    with pytest.raises(EventError, match=r"no attrs\.index"):
        trace([event], "log")
