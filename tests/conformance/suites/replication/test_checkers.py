"""Random runs of a master and a slave hold the catalogue's invariants, and injected defects are detected."""

import pytest

from mqproof.conformance.mutants import replication
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.subjects.pair_run import live
from mqproof.conformance.suites.replication import checkers
from mqproof.conformance.suites.replication.checkers import CHECKERS, Life, LogsSeen, ReadsSeen, SendSeen
from mqproof.report.model import Verdict

MUTANTS = replication.MUTANTS | replication.OF_TWO_SLAVES
LIVES = range(8)
"""The seeds of the random runs; test_suite.py judges the next four."""
SEEDS = dict.fromkeys(MUTANTS, 0) | {
    "absent-slave-waited-for": 5,
    "last-record-not-compared": 26,
    "logs-compared-as-shipped": 3,
    "no-slave-waited-for": 1,
    "one-of-two-slaves-is-enough": 1,
    "replica-status-lost": 4,
    "slave-never-hangs-up": 5,
}
"""The first seed that detects each mutant."""


@pytest.fixture(scope="module")
def lives() -> list[Life]:
    return [live(seed) for seed in LIVES]


@pytest.mark.parametrize("invariant", CHECKERS)
def test_random_runs_of_a_pair_hold_the_invariant(invariant: str, lives: list[Life]) -> None:
    findings = [CHECKERS[invariant](life) for life in lives]
    assert not [finding.witnesses for finding in findings if finding.witnesses]
    assert sum(finding.verdict is Verdict.HELD for finding in findings) >= len(LIVES) // 3


def test_the_random_runs_include_every_status_and_a_fork(lives: list[Life]) -> None:
    statuses = {send.status for life in lives for send in life.sends}
    assert statuses >= {"SEND_OK", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT"}
    assert any(life.logs[-1].forked for life in lives)
    assert any(life.caught_up for life in lives)


def test_the_same_seed_gives_the_same_run(lives: list[Life]) -> None:
    assert live(3) == lives[3]


@pytest.mark.parametrize("name", MUTANTS)
def test_the_named_invariant_detects_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name], seed=SEEDS[name], examples_max=1)
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed"
    assert result.id == MUTANTS[name].breaks


def test_every_invariant_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == CHECKERS.keys()


NOTHING = Life(True, (), (), (), None, ())


def test_a_run_without_operations_is_unknown() -> None:
    assert {check(NOTHING).verdict for check in CHECKERS.values()} == {Verdict.UNKNOWN}


def test_each_checker_reports_the_violation() -> None:
    ok = frozenset({"SEND_OK"})
    lost = Life(True, (SendSeen("m", "SEND_OK", True, ok, False, True),), (), (), None, ())
    assert checkers.sync_acked_on_slave(lost).witnesses[0].text.startswith("m was answered SEND_OK")
    silent = Life(True, (), (LogsSeen(("a", "b"), ("c",), True, True),), (), None, ())
    assert checkers.slave_is_prefix(silent).verdict is Verdict.VIOLATED
    noticed = Life(True, (), (LogsSeen(("a", "b"), ("c",), False, True),), (), None, ())
    assert checkers.slave_is_prefix(noticed).verdict is Verdict.HELD
    late = Life(True, (SendSeen("m", "FLUSH_SLAVE_TIMEOUT", True, ok, True, True),), (), (), None, ())
    assert "SEND_OK expected" in checkers.status_honest(late).witnesses[0].text
    unread = Life(True, (), (), (ReadsSeen(("a", "b"), ("a",)),), None, ())
    assert checkers.readable_without_master(unread).verdict is Verdict.VIOLATED
    behind = Life(True, (), (), (), False, ())
    assert checkers.slave_catches_up(behind).verdict is Verdict.VIOLATED
    back = Life(True, (), (), (), None, (3, 2))
    assert checkers.slaves_offset_monotone(back).verdict is Verdict.VIOLATED
