"""Tests a whole cluster under faults: the invariants hold, and seeds can be replayed exactly."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from mqproof.conformance.hosts.simulated import MEMBERS
from mqproof.conformance.mutants.replacement import injected
from mqproof.fuzz import simulation, targets
from mqproof.fuzz.cluster.faults import HEAD_BYTES, fault
from mqproof.fuzz.cluster.program import Run, random_program, upkeep
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.minimise import minimise
from mqproof.fuzz.targets.cluster import TESTING_ALL
from mqproof.spec.events import Event, Kind, encode
from tests.fuzz.seeds import UNBEGUN, hold, parts

ROOT = Path(__file__).parents[3]
ASYNC_MASTER, SYNC_MASTER, ELECTED = 1, 2, 192
SYNC_FLUSH = 4


def _head(shape: int) -> bytes:
    return bytes((1, 0, 0, 0, shape, 0))[:HEAD_BYTES]


ELECTED_PROGRAM = _head(ELECTED) + fault("pause", 1, 16, 60) + fault("crash", 1, 60, 8)
FOUND_ONCE = (2932, 3103, 8016, 8771, 9185, 9822)
"""Seeds of the deep profile. Each one found a defect of the broker or of the judge, since corrected."""


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


def _events(program: bytes) -> list[Event]:
    run = Run(program, Counter())
    run.run()
    return run.cluster.events


def digest(program: bytes) -> str:
    """Return the hash of everything that the brokers log."""
    return hashlib.sha256(b"".join(map(encode, _events(program)))).hexdigest()


@UNBEGUN
@pytest.mark.parametrize("seeds", parts(), ids=str)
def test_the_invariants_hold_whatever_faults_a_cluster_has(seeds: range) -> None:
    checked = hold(_play, seeds)
    assert set(checked) <= set(targets.load("cluster").invariants)


@UNBEGUN
def test_seeds_that_once_found_a_defect_find_none() -> None:
    hold(_play, FOUND_ONCE)


def test_the_seeds_test_every_invariant() -> None:
    checked = hold(_play, TESTING_ALL)
    assert {name for name, times in checked.items() if times} == set(targets.load("cluster").invariants)


def test_a_seed_replays_bit_for_bit() -> None:
    first, again = (_events(random_program(3)) for _ in range(2))
    assert first == again
    assert len(first) > 100


@pytest.mark.parametrize("program", [random_program(8), ELECTED_PROGRAM], ids=["pair", "group"])
def test_a_program_replays_in_another_process(program: bytes) -> None:
    """Sets of strings have another order there."""
    code = f"from tests.fuzz.targets.test_cluster import digest; print(digest({program!r}))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert other.stdout.split() == [digest(program)], other.stderr


def test_any_bytes_are_a_program_and_no_bytes_are_a_single_broker() -> None:
    run = Run(b"", Counter())
    run.run()
    assert run.cluster.nodes == ("master",)
    assert run.sends > 0


@pytest.mark.parametrize("name", ["kill", "lose_power", "crash", "stop", "crash_all", "restart"])
def test_a_killed_master_restarts(name: str) -> None:
    events = _events(_head(SYNC_MASTER | SYNC_FLUSH) + fault(name, 1 if name == "kill" else 0, 16, 7))
    starts = [event for event in events if event.node == "master" and event.kind is Kind.RECOVER]
    assert len(starts) >= 3, "at first, after the fault, and when its slave has been read"


def test_a_disconnected_slave_catches_up() -> None:
    program = _head(SYNC_MASTER) + fault("cut_link", 3, 8, 79)
    checked: Counter[str] = Counter()
    run = Run(program, checked)
    run.run()
    statuses = {event.status for event in run.cluster.events if event.kind is Kind.SEND_ACK}
    assert "FLUSH_SLAVE_TIMEOUT" in statuses
    assert checked["SlaveCatchesUp"]


def _leaderships(program: bytes) -> list[tuple[str, int]]:
    """Return the elected leaders with their terms."""
    return [(e.node, e.term or 0) for e in _events(program) if e.kind is Kind.BECOME_LEADER]


def test_a_group_without_faults_has_one_leader() -> None:
    assert len(_leaderships(_head(ELECTED))) == 1


@pytest.mark.parametrize("name", ["kill", "lose_power", "stop", "isolate", "mute", "pause"])
def test_a_group_whose_master_fails_elects_another(name: str) -> None:
    first = _leaderships(_head(ELECTED))[0][0]
    selector = (
        {node: number for number, node in enumerate(MEMBERS)}[first] if name in ("lose_power", "stop") else 1
    )
    masters = [node for node, _ in _leaderships(_head(ELECTED) + fault(name, selector, 16, 70))]
    assert masters[0] == first
    assert set(masters) != {first}


def test_a_master_that_was_paused_answers_late_or_never() -> None:
    events = _events(_head(SYNC_MASTER) + fault("pause", 1, 16, 40))
    times = [event.ts for event in events if event.node == "master"]
    assert max(later - earlier for earlier, later in pairwise(times)) > 8_000_000, "microseconds of silence"


def test_a_deleted_topic_is_recreated_by_the_next_send() -> None:
    run = Run(_head(SYNC_MASTER) + upkeep("delete_topic", 0, 24, 0), Counter())
    run.run()
    (topic,) = run.witness.topics
    assert [len(topic.past), topic.is_deleted] == [1, True]
    first = [
        (event.node, event.msg_id)
        for event in run.cluster.events
        if event.kind is Kind.DISPATCH and (event.queue_id, event.queue_offset) == (0, 0)
    ]
    assert len({name for node, name in first if node == "master"}) == 2
    assert set(first) == {(node, name) for node in ("master", "slave") for _, name in first}


@pytest.mark.parametrize("shape", [SYNC_MASTER, ELECTED], ids=["pair", "group"])
def test_old_data_is_deleted_while_messages_are_sent(shape: int) -> None:
    """Four busy producers fill a segment in a second or two."""
    busy = bytes((1, 0, 0, 0, shape | 24, 48))
    run = Run(busy + b"".join(upkeep("expire", selector, 60, 60) for selector in range(3)), Counter())
    run.run()
    assert all(broker.store.log_begin > 0 for broker in run.cluster.brokers.values())
    assert run.witness.is_apart is False


def test_a_finding_of_a_group_shrinks_to_a_group_without_faults() -> None:
    target = targets.load("cluster")
    mutant = simulation.MUTANTS["CommitNotLearned"]
    with injected(mutant):
        found = judge(target, ELECTED_PROGRAM)
        assert found is not None
        assert found.invariant == "LogsConverge"

        def fails(data: bytes) -> bool:
            failure = judge(target, data)
            return failure is not None and failure.signature == found.signature

        small = minimise(ELECTED_PROGRAM, fails, 20)
        assert fails(small)
    assert small[4] >= ELECTED
    assert len(small) <= HEAD_BYTES
