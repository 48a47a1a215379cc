"""Event logs of DLedger groups as traces of Replication, leader by leader: corrupted logs are refused.

TLC runs once for all of them. test_group_runs.py tests that simulated runs are accepted.
"""

from collections.abc import Callable

import msgspec
import pytest

from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.leadership import traces
from mqproof.report.model import Verdict
from mqproof.spec.events import Event, EventError, Kind
from tests.conformance.traces.event_logs import changed, first, leaving_out, moved, renumbered, without, write
from tests.conformance.traces.group_runs import quiet_run, run

pytestmark = pytest.mark.xdist_group("group-traces")

Log = list[Event]
SEED = 3
"""The seed of a run with a crash and a second leader."""


def _answered(log: Log) -> int:
    """Return the index of the first answer to a client."""
    return first(log, Kind.SEND_ACK)


def _committed(log: Log) -> int:
    """Return the index at which the leader commits that entry."""
    answer = log[_answered(log)]
    return first(log, Kind.RAFT_COMMIT, answer.node, index=answer.attrs["index"])


def _follower(log: Log) -> str:
    return log[first(log, Kind.HA_ACK)].node


def _answered_before_the_commit(log: Log) -> Log:
    return moved(log, _answered(log), _committed(log) - 1)


def _committed_by_the_leader_only(log: Log) -> Log:
    """No follower acknowledges an entry."""
    return [event for event in log if event.kind is not Kind.HA_ACK]


def _acknowledged_before_its_sync(log: Log) -> Log:
    node = _follower(log)
    return [event for event in log if event.node != node or event.kind is not Kind.FLUSH]


def _another_entry(log: Log) -> Log:
    at = first(log, Kind.RAFT_APPEND, role="follower")
    return changed(log, at, term=(log[at].term or 0) + 1)


def _an_entry_is_skipped(log: Log) -> Log:
    return without(log, first(log, Kind.RAFT_APPEND, _follower(log), role="follower"))


def _seen_at_a_follower_before_the_commit(log: Log) -> Log:
    at = next(
        n for n, e in enumerate(log) if e.kind is Kind.RAFT_COMMIT and e.node != log[_answered(log)].node
    )
    index = log[at].attrs["index"]
    leads = first(log, Kind.RAFT_COMMIT, log[_answered(log)].node, index=index)
    written = first(log, Kind.RAFT_APPEND, log[at].node, index=index)
    assert written < leads, "it has the entry before the commit is known"
    return moved(log, at, written)


def _answered_after_the_end(log: Log) -> Log:
    """A former leader answers."""
    at = _answered(log)
    last = log[at]
    end = Event(ts=last.ts, seq=0, node=last.node, kind=Kind.STEP_DOWN, term=9, attrs={"reason": "no_quorum"})
    return [*log[:at], end, last]


def _back_without_anything(log: Log, node: str) -> Log:
    last = log[-1]
    crash = Event(ts=last.ts, seq=0, node=node, kind=Kind.CRASH, attrs={"kind": "power"})
    attrs = {"index": "-1", "end_term": "0", "voted_for": "", "members": "n0,n1,n2"}
    return [*log, crash, msgspec.structs.replace(crash, kind=Kind.RECOVER, term=last.term or 1, attrs=attrs)]


def _acknowledged_record_is_lost(log: Log) -> Log:
    follows = log[first(log, Kind.HEARTBEAT, _follower(log))]
    return [*_back_without_anything(log, follows.node), follows]


def _leader_lacks_acknowledged_record(log: Log) -> Log:
    lost = _back_without_anything(log, _follower(log))
    return [*lost, msgspec.structs.replace(lost[-1], kind=Kind.BECOME_LEADER, term=9)]


CORRUPTIONS: dict[Callable[[Log], Log], str] = {
    _answered_before_the_commit: "answer",
    _committed_by_the_leader_only: "commit",
    _acknowledged_before_its_sync: "keep",
    _another_entry: "write",
    _an_entry_is_skipped: "write",
    _seen_at_a_follower_before_the_commit: "commit",
    _answered_after_the_end: "answer",
    _acknowledged_record_is_lost: "follow",
    _leader_lacks_acknowledged_record: "lead",
}
"""Maps a corruption to the first event that no action explains."""


def _committed_before_any_sync(log: Log) -> Log:
    commit = first(log, Kind.RAFT_COMMIT)
    leader = log[commit].node
    return [e for n, e in enumerate(log) if n > commit or e.kind is not Kind.FLUSH or e.node == leader]


def _answered_before_any_follower_has_it(log: Log) -> Log:
    at = _answered(log)
    return moved(log, at, first(log, Kind.RAFT_APPEND, index=log[at].attrs["index"], role="leader"))


STILL_REFUSED: dict[Kind, tuple[Callable[[Log], Log], str]] = {
    Kind.STEP_DOWN: (_leader_lacks_acknowledged_record, "lead"),
    Kind.HEARTBEAT: (_another_entry, "write"),
    Kind.FLUSH: (_acknowledged_record_is_lost, "follow"),
    Kind.HA_ACK: (_committed_before_any_sync, "commit"),
    Kind.RAFT_COMMIT: (_answered_before_any_follower_has_it, "answer"),
}
"""Maps a kind to a corruption that is detected without its events, and the first unexplained event."""
LEFT_OUT: tuple[tuple[Kind, ...], ...] = (
    *((kind,) for kind in STILL_REFUSED),
    (Kind.VOTE,),
    (Kind.VOTE, Kind.HEARTBEAT, Kind.FLUSH, Kind.HA_ACK, Kind.RAFT_COMMIT),
)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogVerdict]:
    """Return the verdicts by name, from one run of TLC."""
    folder = tmp_path_factory.mktemp("leader_terms")
    logs = {corrupt.__name__: renumbered(corrupt(quiet_run())) for corrupt in CORRUPTIONS}
    logs["good"] = quiet_run()
    logs |= {
        f"partial, {kind}": leaving_out(corrupt(quiet_run()), kind)
        for kind, (corrupt, _) in STILL_REFUSED.items()
    }
    logs |= {f"without {'+'.join(kinds)}": leaving_out(run(SEED), *kinds) for kinds in LEFT_OUT}
    paths = [write(folder / name, events) for name, events in logs.items()]
    return {log.path.name: log for log in check_logs(paths, models=["Replication"])}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda corrupt: corrupt.__name__.lstrip("_"))
def test_a_corrupted_log_is_refused_and_the_event_is_named(
    checked: dict[str, LogVerdict], corrupt: Callable[[Log], Log]
) -> None:
    (result,) = results([checked[corrupt.__name__]])
    assert result.verdict is Verdict.VIOLATED
    assert f"no action of Replication explains {CORRUPTIONS[corrupt]}(" in result.witnesses[0].text


def test_a_quiet_run_is_accepted(checked: dict[str, LogVerdict]) -> None:
    (result,) = results([checked["good"]])
    assert result.verdict is Verdict.HELD, result.witnesses


@pytest.mark.parametrize("kind", STILL_REFUSED)
def test_a_corrupted_log_with_omitted_kinds_is_refused(checked: dict[str, LogVerdict], kind: Kind) -> None:
    (result,) = results([checked[f"partial, {kind}"]])
    assert result.verdict is Verdict.VIOLATED
    assert f"no action of Replication explains {STILL_REFUSED[kind][1]}(" in result.witnesses[0].text


@pytest.mark.parametrize("kinds", LEFT_OUT, ids="+".join)
def test_a_log_that_declares_its_omitted_kinds_is_accepted(
    checked: dict[str, LogVerdict], kinds: tuple[Kind, ...]
) -> None:
    (result,) = results([checked[f"without {'+'.join(kinds)}"]])
    assert result.verdict is Verdict.HELD, result.witnesses


def _leaders(log: Log) -> int:
    return sum(event.kind is Kind.BECOME_LEADER for event in log)


def test_each_leadership_is_a_trace_that_begins_with_the_committed_records() -> None:
    log = next(log for log in map(run, range(100)) if _leaders(log) == 2)
    one, two = traces(log, "log")
    assert one.events[0]["committed"] == ()
    assert two.events[0]["committed"]
    assert any(event["event"] == "end" for event in one.events)


def test_following_a_leader_that_is_not_in_the_log_is_an_error() -> None:
    log = [event for event in quiet_run() if event.kind is not Kind.BECOME_LEADER]
    with pytest.raises(EventError, match="did not lead term"):
        list(traces(renumbered(log), "log"))
