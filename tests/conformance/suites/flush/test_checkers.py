"""Each named invariant on short histories: held, violated, and unknown without relevant operations."""

from dataclasses import replace

import pytest

from mqproof.conformance.suites.flush.checkers import CHECKERS, judge
from mqproof.conformance.suites.flush.steps import Commit, History, Pull, Query, Restart
from mqproof.conformance.suites.flush.target import Pulled, PullStatus
from mqproof.report.model import Verdict
from mqproof.spec.catalogue import catalogue
from tests.conformance.suites.flush.histories import (
    ASYNC,
    KILLED,
    OS_CRASHED,
    STOPPED,
    SYNC,
    abandoned,
    found,
    message,
    nothing,
    refused,
    seen,
    stored,
)

UP = Restart()
FOREIGN = replace(found(0, "m1").answer, messages=(message("m1", 0, queue=1),))
ALTERED = replace(found(0, "m1").answer, messages=(replace(message("m1", 0), body=b"other"),))
SKIPPED = Pulled(PullStatus.FOUND, (message("m2", 1),), 2, 0, 2)

HELD = {
    "FLUSH-1": seen(SYNC, stored("m1", 0), OS_CRASHED, UP, found(0, "m1")),
    "FLUSH-2": seen(ASYNC, stored("m1", 0), KILLED, UP, found(0, "m1")),
    "FLUSH-3": seen(SYNC, stored("m1", 0), found(0, "m1")),
    "FLUSH-4": seen(SYNC, stored("m1", 0), stored("m2", 1), KILLED, UP, stored("m3", 2)),
    "FLUSH-5": seen(ASYNC, stored("m1", 0), stored("m2", 1), OS_CRASHED, UP, found(0, "m1"), nothing(1)),
    "FLUSH-8": seen(SYNC, KILLED, UP),
    "DELIV-1": seen(SYNC, stored("m1", 0), found(0, "m1")),
    "DELIV-2": seen(SYNC, abandoned("m1"), found(0, "m1")),
    "DELIV-4": seen(SYNC, stored("m1", 0), stored("m2", 1), found(0, "m1", "m2")),
    "DELIV-5": seen(SYNC, Commit(0, 2, True), Query(0, 2), Commit(0, 1, True, reset=True), Query(0, 1)),
}
VIOLATED = {
    "FLUSH-1": [
        seen(SYNC, stored("m1", 0), OS_CRASHED, UP, nothing(0)),
        seen(SYNC, stored("m1", 0), KILLED, UP, stored("m2", 0), found(0, "m2")),
    ],
    "FLUSH-2": [seen(ASYNC, stored("m1", 0), KILLED, UP, nothing(0))],
    "FLUSH-3": [
        seen(SYNC, stored("m1", 0), Pull(0, 0, 1, FOREIGN)),
        seen(SYNC, stored("m1", 0), Pull(0, 0, 1, ALTERED)),
        seen(SYNC, found(0, "")),
    ],
    "FLUSH-4": [
        seen(SYNC, stored("m1", 0), KILLED, UP, stored("m2", 0)),
        seen(SYNC, stored("m1", 1)),
        seen(SYNC, stored("m1", 0), found(0, "m1"), found(1, "m1")),
    ],
    "FLUSH-5": [
        seen(ASYNC, stored("m1", 0), stored("m2", 1), OS_CRASHED, UP, found(0, "m2")),
        seen(ASYNC, stored("m1", 0), OS_CRASHED, UP, nothing(0), KILLED, UP, found(0, "m1")),
        seen(ASYNC, stored("m1", 0), OS_CRASHED, UP, found(0, "m_invented")),
    ],
    "FLUSH-8": [seen(SYNC, KILLED, Restart("a file is torn"))],
    "DELIV-1": [
        seen(SYNC, stored("m1", 0), stored("m2", 1), Pull(0, 0, 2, SKIPPED)),
        seen(ASYNC, stored("m1", 0), STOPPED, UP, nothing(0)),
    ],
    "DELIV-2": [seen(SYNC, found(0, "m_never_sent")), seen(SYNC, refused("m1"), found(0, "m1"))],
    "DELIV-4": [
        seen(SYNC, stored("m1", 0), stored("m2", 1), Pull(0, 0, 2, SKIPPED)),
        seen(SYNC, stored("m1", 0), nothing(0, end=1)),
        seen(SYNC, stored("m1", 0), stored("m2", 1), found(0, "m2", "m1")),
        seen(SYNC, abandoned("m1"), found(0, "m1"), OS_CRASHED, UP, nothing(0)),
    ],
    "DELIV-5": [seen(SYNC, Commit(0, 2, True), Query(0, 1)), seen(SYNC, Query(0, 2), Query(0, 1))],
}
UNKNOWN = {
    # under ASYNC_FLUSH, a crash of the operating system may lose acknowledged messages
    "FLUSH-1": seen(ASYNC, stored("m1", 0), OS_CRASHED, UP, nothing(0)),
    "FLUSH-2": seen(ASYNC, stored("m1", 0), OS_CRASHED, UP, nothing(0)),
    "FLUSH-3": seen(SYNC, stored("m1", 0)),
    "FLUSH-4": seen(SYNC, refused("m1")),
    "FLUSH-5": seen(SYNC, stored("m1", 0), found(0, "m1")),
    "FLUSH-8": seen(SYNC, KILLED),
    # the queue only lags behind
    "DELIV-1": seen(SYNC, stored("m1", 0), nothing(0)),
    "DELIV-2": seen(SYNC, stored("m1", 0), nothing(0)),
    "DELIV-4": seen(SYNC, stored("m1", 0)),
    "DELIV-5": seen(SYNC, Commit(0, 2, True)),
}


def test_every_checker_has_a_catalogue_entry_and_a_test_here() -> None:
    assert set(CHECKERS) <= set(catalogue())
    assert set(HELD) == set(VIOLATED) == set(UNKNOWN) == set(CHECKERS)


@pytest.mark.parametrize("invariant", CHECKERS)
def test_the_good_case_is_held_and_counted(invariant: str) -> None:
    finding = judge(HELD[invariant])[invariant]
    assert finding.verdict is Verdict.HELD, finding.witnesses
    assert any(finding.counts.values())


@pytest.mark.parametrize(
    ("invariant", "history"), [(i, history) for i, histories in VIOLATED.items() for history in histories]
)
def test_the_bad_case_is_violated_and_has_a_witness(invariant: str, history: History) -> None:
    finding = judge(history)[invariant]
    assert finding.verdict is Verdict.VIOLATED
    assert finding.witnesses


@pytest.mark.parametrize("invariant", CHECKERS)
def test_a_run_without_relevant_operations_is_unknown(invariant: str) -> None:
    assert judge(seen(SYNC))[invariant].verdict is Verdict.UNKNOWN
    assert judge(UNKNOWN[invariant])[invariant].verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("invariant", CHECKERS)
def test_a_good_case_violates_nothing_else(invariant: str) -> None:
    verdicts = {i: finding.verdict for i, finding in judge(HELD[invariant]).items()}
    assert Verdict.VIOLATED not in verdicts.values(), verdicts


def test_an_indeterminate_send_is_neither_lost_nor_a_phantom() -> None:
    lost = judge(seen(SYNC, abandoned("m1"), KILLED, UP, nothing(0)))
    delivered = judge(seen(SYNC, abandoned("m1"), KILLED, UP, found(0, "m1")))
    for invariant in ("FLUSH-1", "DELIV-1", "DELIV-2"):
        assert lost[invariant].verdict is not Verdict.VIOLATED
        assert delivered[invariant].verdict is not Verdict.VIOLATED


def test_a_message_whose_flush_timed_out_may_be_lost_and_its_offset_reused() -> None:
    history = seen(
        SYNC,
        stored("m1", 0, "FLUSH_DISK_TIMEOUT"),
        OS_CRASHED,
        UP,
        nothing(0),
        stored("m2", 0),
        found(0, "m2"),
    )
    assert all(finding.verdict is not Verdict.VIOLATED for finding in judge(history).values())


def test_messages_lost_by_async_flush_in_a_power_loss_leave_no_hole_before_later_ones() -> None:
    history = seen(
        ASYNC, stored("m1", 0), OS_CRASHED, UP, nothing(0), stored("m2", 0), KILLED, UP, found(0, "m2")
    )
    assert all(finding.verdict is not Verdict.VIOLATED for finding in judge(history).values())
