"""Bugs that the suites once missed, each found again by the shortest known run of its suite.

`SEEDS` has bugs that the suites find by drawing; the seed and the number of examples were recorded when the
bug was found. The others have a script of their own. Three more bugs take longer to find:
tests/conformance/history/test_workload.py finds them in the deep profile.
"""

import pytest

from mqproof.conformance.adapters.mutant_broker import MutantTarget
from mqproof.conformance.adapters.routing.name_servers import ImplNameServer, MutantNameServer
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.mutants import flush, routing
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.suites.flush.session import Session
from mqproof.conformance.suites.flush.steps import End
from mqproof.conformance.suites.flush.target import Fault, Setup
from mqproof.conformance.suites.routing.session import RoutingSession
from mqproof.conformance.suites.routing.target import TOPICS, Broker
from mqproof.impl.store import recovery
from mqproof.impl.store.files.checkpoint import Checkpoint
from mqproof.impl.store.files.consume_queue import ConsumeQueues
from mqproof.impl.store.queue_flush import CheckpointWriter
from mqproof.report.model import Verdict

SEEDS = {
    "retry-level-off-by-one": (14, 2),
    "delayed-put-for-ever": (1, 2),
    "delayed-beyond-the-queue": (0, 100),
    "delayed-cut-not-written": (0, 100),
    "newest-index-file-only": (22, 6),
    "empty-share-kept": (0, 1),
    "commit-of-slow-member-stored": (5, 1),
}
"""The seed and the number of examples, by mutant."""
_FULL_SEGMENT_BYTES = 339
"""Two messages with bodies of this size leave less room in a segment than a filler needs."""


DEEP = pytest.mark.deep(
    "6 CPU seconds: its example never ends; SPEC-1 detects other bugs of delayed messages in every run"
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=DEEP if name == "delayed-put-for-ever" else ()) for name in SEEDS]
)
def test_the_suite_finds_the_bug_with_the_recorded_seed(name: str) -> None:
    seed, examples = SEEDS[name]
    (result,) = mutant_judge.run([name], seed=seed, examples_max=examples)
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed"


def shared_and_closed(target: ImplNameServer) -> Verdict:
    """Let a broker register over the connection of another one, close it, and judge ROUTE-1."""
    session = RoutingSession(target)
    session.register(Broker("a", 0), TOPICS)
    session.register(Broker("b", 0), TOPICS, over=Broker("a", 0))
    session.look()
    session.hang_up(Broker("a", 0))
    session.look()
    target.close()
    return session.findings()["ROUTE-1"].verdict


def test_two_brokers_of_a_closed_connection_are_both_removed() -> None:
    assert shared_and_closed(ImplNameServer()) is Verdict.HELD
    mutant = routing.MUTANTS["one-of-two-brokers-removed"]
    assert shared_and_closed(MutantNameServer(mutant)) is Verdict.VIOLATED


@pytest.mark.deep("12 CPU seconds")
def test_a_checkpoint_that_counts_entries_that_are_not_durable_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No client can see this bug: a start compares the count with the queues, and dispatches again."""
    found: list[bool] = []
    whole = recovery.queues_are_whole

    def counted(queues: ConsumeQueues, checkpoint: Checkpoint) -> bool:
        found.append(whole(queues, checkpoint))
        return found[-1]

    def written(writer: CheckpointWriter) -> int:
        return min(writer._log.flushed, writer._queue_flusher._dispatcher.position)

    monkeypatch.setattr(recovery, "queues_are_whole", counted)
    monkeypatch.setattr(CheckpointWriter, "_position", written)
    part = SUITES["flush"].run(RunOptions("impl", examples=60, seed=5), lambda *_: None)
    assert Verdict.VIOLATED not in {result.verdict for result in part.results}
    assert found.count(False) > 3, "the bug never made a count wrong"


def test_a_segment_without_room_for_a_filler_loses_messages() -> None:
    target = MutantTarget(flush.MUTANTS["no-room-for-a-filler"])
    session = Session(target, Setup("SYNC_FLUSH"))
    for _ in range(5):
        session.send(0, _FULL_SEGMENT_BYTES)
    session.end(End.KILL, 0)
    session.restart()
    session.drain()
    target.close()
    assert session.findings()["DELIV-1"].verdict is Verdict.VIOLATED


def test_a_store_time_that_goes_back_is_not_explained() -> None:
    target = MutantTarget(flush.MUTANTS["store-time-goes-back"])
    session = Session(target, Setup("SYNC_FLUSH"))
    session.send(0, 1)
    session.disturb(Fault.CLOCK_BACK)
    session.send(0, 1)
    session.calm()
    session.drain()
    target.close()
    assert session.findings()[SPEC_1].verdict is Verdict.VIOLATED
