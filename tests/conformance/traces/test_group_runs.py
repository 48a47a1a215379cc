"""Event logs of DLedger groups are behaviours of Election and, per leader, of Replication.

There are 30 of them, and two hundred in the deep profile. TLC runs once for each model. test_group.py and
test_leadership.py test that corrupted logs are refused.
"""

from itertools import pairwise

import pytest

from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.store import Window
from mqproof.report.model import Verdict
from mqproof.spec.events import Event, Kind
from tests.conformance.traces.event_logs import write
from tests.conformance.traces.group_runs import run

pytestmark = pytest.mark.xdist_group("group-traces")


@pytest.fixture(scope="module", params=[30, pytest.param(200, marks=pytest.mark.deep("TLC checks 200 logs"))])
def logs(request: pytest.FixtureRequest) -> list[list[Event]]:
    return [run(seed) for seed in range(request.param)]


@pytest.fixture(scope="module")
def verdicts(logs: list[list[Event]], tmp_path_factory: pytest.TempPathFactory) -> tuple[LogVerdict, ...]:
    folder = tmp_path_factory.mktemp("groups")
    return check_logs([write(folder / f"{seed}", log) for seed, log in enumerate(logs)])


def _commits(window: Window) -> bool:
    leader = window.events[0]["node"]
    return any(event["event"] == "commit" and event["node"] == leader for event in window.events)


@pytest.mark.timeout(600)
def test_every_run_is_a_behaviour_of_election_and_replication(verdicts: tuple[LogVerdict, ...]) -> None:
    judged = results(verdicts)
    assert [(r.name, r.witnesses) for r in judged if r.verdict is not Verdict.HELD] == []


def test_each_model_checks_a_trace_for_each_log(
    verdicts: tuple[LogVerdict, ...], logs: list[list[Event]]
) -> None:
    of = {model: [log for log in verdicts if log.model == model] for model in ("Election", "Replication")}
    assert sum(log.accepted for log in of["Election"]) >= len(logs)
    leaderships = [window for log in of["Replication"] for window in log.windows]
    assert sum(map(_commits, leaderships)) >= len(logs)


def _steps_us(log: list[Event]) -> list[int]:
    """Return the clock step of each member from one of its events to the next."""
    nodes = {event.node for event in log}
    return [two.ts - one.ts for n in nodes for one, two in pairwise([e for e in log if e.node == n])]


def test_the_runs_include_crashes_partitions_and_clock_jumps(logs: list[list[Event]]) -> None:
    assert sum(any(event.kind is Kind.CRASH for event in log) for log in logs) >= 0.9 * len(logs)
    reasons = {event.attrs["reason"] for log in logs for event in log if event.kind is Kind.STEP_DOWN}
    assert {"silence", "no_quorum"} <= reasons
    assert sum(min(_steps_us(log)) < 0 for log in logs) >= 0.2 * len(logs)
