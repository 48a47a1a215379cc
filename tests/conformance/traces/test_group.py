"""Event logs of DLedger groups as traces of Election: corrupted logs are refused.

TLC runs once for all of them. test_group_runs.py tests that simulated runs are accepted.
"""

from collections.abc import Callable

import msgspec
import pytest

from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.group import trace
from mqproof.report.model import Verdict
from mqproof.spec.events import Event, EventError, Kind
from tests.conformance.traces.event_logs import changed, first, leaving_out, renumbered, write
from tests.conformance.traces.group_runs import quiet_run, run

pytestmark = pytest.mark.xdist_group("group-traces")

SEED = 3
"""The seed of a run with a crash and a second leader."""


@pytest.fixture(scope="module")
def good() -> list[Event]:
    """Return the log of a group without faults."""
    return quiet_run()


def _acknowledged_too_early(events: list[Event]) -> list[Event]:
    """A client receives success before the entry is committed."""
    ack = first(events, Kind.SEND_ACK)
    taken = first(events, Kind.RAFT_APPEND, index=events[ack].attrs["index"], role="leader")
    return [*events[: taken + 1], events[ack], *events[taken + 1 : ack], *events[ack + 1 :]]


def _kept_before_the_sync(events: list[Event]) -> list[Event]:
    """A follower acknowledges an entry that is not durable."""
    kept = first(events, Kind.HA_ACK)
    node = events[kept].node
    synced = max(n for n, e in enumerate(events[:kept]) if e.kind is Kind.FLUSH and e.node == node)
    return [*events[:synced], *events[synced + 1 :]]


def _committed_without_quorum(events: list[Event]) -> list[Event]:
    """A leader commits before a follower has acknowledged the entry."""
    commit = first(events, Kind.RAFT_COMMIT)
    return [e for n, e in enumerate(events) if n > commit or e.kind is not Kind.HA_ACK]


def _leads_without_votes(events: list[Event]) -> list[Event]:
    leads = first(events, Kind.BECOME_LEADER)
    candidate = events[leads].node
    return [e for n, e in enumerate(events) if n > leads or e.kind is not Kind.VOTE or e.node == candidate]


def _votes_twice(events: list[Event]) -> list[Event]:
    """A voter also votes for itself."""
    vote = next(n for n, e in enumerate(events) if e.status == "ACCEPT" and e.attrs["candidate"] != e.node)
    again = msgspec.structs.replace(events[vote], attrs={"candidate": events[vote].node})
    return [*events[: vote + 1], again, *events[vote + 1 :]]


def _other_entry_at_a_follower(events: list[Event]) -> list[Event]:
    """A follower writes an entry of a term that differs from its leader's entry."""
    written = first(events, Kind.RAFT_APPEND, role="follower")
    return changed(events, written, term=(events[written].term or 0) + 1)


def _durable_entry_lost(events: list[Event]) -> list[Event]:
    """A member restarts without an entry that it had synced."""
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


def _two_lead(events: list[Event]) -> list[Event]:
    """A following member becomes leader of the same term."""
    leads = first(events, Kind.BECOME_LEADER)
    follows = first(events, Kind.HEARTBEAT)
    other = msgspec.structs.replace(events[leads], node=events[follows].node)
    return [*events, other, msgspec.structs.replace(events[leads + 1], node=other.node)]


def _committed_before_any_sync(events: list[Event]) -> list[Event]:
    """The leader commits an entry that only the leader itself has synced."""
    commit = first(events, Kind.RAFT_COMMIT)
    leader = events[commit].node
    return [e for n, e in enumerate(events) if n > commit or e.kind is not Kind.FLUSH or e.node == leader]


STILL_REFUSED: dict[Kind, Callable[[list[Event]], list[Event]]] = {
    Kind.VOTE: _two_lead,
    Kind.STEP_DOWN: _votes_twice,
    Kind.HEARTBEAT: _other_entry_at_a_follower,
    Kind.FLUSH: _durable_entry_lost,
    Kind.HA_ACK: _committed_before_any_sync,
    Kind.RAFT_COMMIT: _acknowledged_too_early,
}
"""Maps an omitted kind to a corruption that is found nevertheless."""
LEFT_OUT: tuple[tuple[Kind, ...], ...] = (
    *((kind,) for kind in STILL_REFUSED),
    (Kind.SEND_ACK,),
    (Kind.HEARTBEAT, Kind.FLUSH, Kind.HA_ACK, Kind.RAFT_COMMIT),
    (Kind.HEARTBEAT, Kind.STEP_DOWN),
)


def _hands_over(events: list[Event]) -> list[Event]:
    """The leader steps down, because its transfer is not answered."""
    last, node = events[-1], events[first(events, Kind.BECOME_LEADER)].node
    term = (last.term or 1) + 1
    steps = (
        Event(ts=last.ts, seq=0, node=node, kind=Kind.STEP_DOWN, term=term, attrs={"reason": "transfer"}),
        Event(
            ts=last.ts, seq=0, node=node, kind=Kind.VOTE, term=term, status="DURABLE", attrs={"voted_for": ""}
        ),
    )
    return [*events, *steps]


@pytest.fixture(scope="module")
def checked(good: list[Event], tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogVerdict]:
    """Return the verdicts by name, from one run of TLC."""
    folder = tmp_path_factory.mktemp("groups")
    logs = {corrupt.__name__: renumbered(corrupt(good)) for corrupt in CORRUPTIONS}
    logs |= {f"partial, {kind}": leaving_out(corrupt(good), kind) for kind, corrupt in STILL_REFUSED.items()}
    logs |= {f"without {'+'.join(kinds)}": leaving_out(run(SEED), *kinds) for kinds in LEFT_OUT}
    logs["hands over"] = renumbered(_hands_over(good))
    paths = [write(folder / name, events) for name, events in logs.items()]
    return {log.path.name: log for log in check_logs(paths, models=["Election"])}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda corrupt: corrupt.__name__.lstrip("_"))
def test_a_corrupted_log_is_refused(
    checked: dict[str, LogVerdict], corrupt: Callable[[list[Event]], list[Event]]
) -> None:
    (result,) = results([checked[corrupt.__name__]])
    assert result.verdict is Verdict.VIOLATED
    assert "no action of Election explains" in result.witnesses[0].text


@pytest.mark.parametrize("kind", STILL_REFUSED)
def test_a_corrupted_log_with_omitted_kinds_is_refused(checked: dict[str, LogVerdict], kind: Kind) -> None:
    (result,) = results([checked[f"partial, {kind}"]])
    assert result.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("kinds", LEFT_OUT, ids="+".join)
def test_a_log_that_declares_its_omitted_kinds_is_accepted(
    checked: dict[str, LogVerdict], kinds: tuple[Kind, ...]
) -> None:
    (result,) = results([checked[f"without {'+'.join(kinds)}"]])
    assert result.verdict is Verdict.HELD, result.witnesses


def test_a_leader_that_hands_over_without_an_answer_is_accepted(checked: dict[str, LogVerdict]) -> None:
    (result,) = results([checked["hands over"]])
    assert result.verdict is Verdict.HELD, result.witnesses


def test_the_partially_recorded_run_had_a_crash_and_two_leaders() -> None:
    kinds = [event.kind for event in run(SEED)]
    assert Kind.CRASH in kinds
    assert kinds.count(Kind.BECOME_LEADER) >= 2


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([Kind.RAFT_APPEND], "'raft_append' is omitted, but only"),
        ([Kind.VOTE, Kind.STEP_DOWN], "the terms are unknown"),
    ],
)
def test_a_log_cannot_omit_a_required_kind(good: list[Event], kinds: list[Kind], message: str) -> None:
    with pytest.raises(EventError, match=message):
        trace(leaving_out(good, *kinds), "log")


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
