"""A whole cluster under faults: what is promised holds, and seeds replay bit for bit."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from fuzz import targets
from fuzz.cluster_program import HEAD_BYTES, Run, fault, random_program
from fuzz.target import Finding
from spec.events import Event, Kind, encode

ROOT = Path(__file__).parents[2]
SEEDS_CI = 40
SEEDS_DEEP = 10_000

ALONE, ASYNC_MASTER, SYNC_MASTER = 0, 1, 2
SYNC_FLUSH = 4


def _run(seeds: range) -> Counter[str]:
    checked: Counter[str] = Counter()
    for seed in seeds:
        try:
            Run(random_program(seed), checked).run()
        except Finding as finding:
            pytest.fail(f"seed {seed}: {finding.invariant}: {finding}")
    return checked


def _events(program: bytes) -> list[Event]:
    run = Run(program, Counter())
    run.run()
    return run.cluster.events


def digest(program: bytes) -> str:
    """Of all that the brokers say they did."""
    return hashlib.sha256(b"".join(map(encode, _events(program)))).hexdigest()


def _head(shape: int) -> bytes:
    return bytes((1, 0, 0, 0, shape, 0))[:HEAD_BYTES]


def test_whatever_happens_to_a_cluster_what_is_promised_holds() -> None:
    checked = _run(range(SEEDS_CI))
    assert set(checked) == set(targets.load("cluster").invariants)
    assert all(checked.values()), checked


@pytest.mark.deep
@pytest.mark.timeout(4 * 3600)
def test_ten_thousand_seeds() -> None:
    _run(range(SEEDS_CI, SEEDS_DEEP))


def test_a_seed_replays_bit_for_bit() -> None:
    first, again = (_events(random_program(3)) for _ in range(2))
    assert first == again
    assert len(first) > 100


def test_a_seed_replays_in_another_process_too() -> None:
    """Where sets of texts have another order."""
    code = (
        "from tests.fuzz.test_cluster import digest; from fuzz.cluster_program import random_program;"
        " print(digest(random_program(8)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert other.stdout.split() == [digest(random_program(8))], other.stderr


def test_any_bytes_are_a_program_and_nothing_is_a_broker_alone() -> None:
    run = Run(b"", Counter())
    run.run()
    assert run.cluster.nodes == ("master",)
    assert run.sends > 0


@pytest.mark.parametrize("name", ["kill", "lose_power", "crash", "stop", "crash_all", "restart"])
def test_a_master_that_goes_comes_back(name: str) -> None:
    events = _events(_head(SYNC_MASTER | SYNC_FLUSH) + fault(name, 1 if name == "kill" else 0, 16, 7))
    starts = [event for event in events if event.node == "master" and event.kind is Kind.RECOVER]
    assert len(starts) >= 3, "at first, after the fault, and when its slave has been read"


def test_a_slave_that_was_cut_off_catches_up() -> None:
    program = _head(SYNC_MASTER) + fault("cut_link", 3, 8, 79)
    checked: Counter[str] = Counter()
    run = Run(program, checked)
    run.run()
    statuses = {event.status for event in run.cluster.events if event.kind is Kind.SEND_ACK}
    assert "FLUSH_SLAVE_TIMEOUT" in statuses
    assert checked["SlaveCatchesUp"]
