"""Tests that each rule of replication is needed: without it, a test fails.

Rules whose absence random runs notice have their mutants in `conformance/mutants/replication.py`.
"""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from mqproof.conformance.mutants.replication import MUTANTS
from mqproof.impl.replication import rules
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.rules import RULES
from tests.impl.replication import test_follow


def test_an_acknowledgement_counts_within_the_masters_log_and_never_decreases() -> None:
    acks = Acks()
    acks.joined("slave")
    acks.reported("slave", 7, 10)
    acks.reported("slave", 11, 10)
    acks.reported("slave", 3, 10)
    assert acks.highest == 7
    assert acks.positions() == (7,)


def test_the_required_number_of_slaves_has_the_position_of_the_slowest_of_them() -> None:
    acks = Acks()
    for slave, position in (("a", 5), ("b", 9), ("c", 7)):
        acks.joined(slave)
        acks.reported(slave, position, 10)
    assert [acks.reached(count) for count in (1, 2, 3, 4)] == [9, 7, 5, 0]
    acks.left("b")
    assert [acks.reached(count) for count in (1, 2, 3)] == [9, 5, 0], "one slave may have gone since"


@pytest.mark.parametrize(
    ("slaves", "end", "acked", "usable"),
    [(1, 99, 0, True), (1, 100, 0, False), (1, 150, 51, True), (0, 10, 10, False)],
)
def test_a_slave_is_waited_for_if_it_lags_by_less_than_the_limit(
    slaves: int, end: int, acked: int, usable: bool
) -> None:
    assert rules.slave_usable(slaves, end, acked, 100) is usable


@pytest.mark.parametrize(
    ("last", "end", "first"), [(None, 0, 0), (None, 8192, 8192), (0, 90, 1), (90, 180, 90)]
)
def test_a_slave_requests_its_last_record(last: int | None, end: int, first: int) -> None:
    assert rules.first_report(last, end) == first


WRONG: dict[str, tuple[Callable[..., Any], Callable[[], None]]] = {
    "first-report-asks-for-the-last-record": (
        lambda _last, end: end,
        lambda: test_follow.test_a_master_that_lost_its_last_records_is_refused(3),
    ),
    "continues-where-the-log-ends": (
        lambda _position, _end: True,
        test_follow.test_bytes_for_another_position_are_refused,
    ),
    "no-acknowledgement-beyond-the-end": (
        lambda acked, reported, _end: max(acked, reported),
        test_an_acknowledgement_counts_within_the_masters_log_and_never_decreases,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_without_a_rule_its_test_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, notices = WRONG[name]
    notices()
    module, _, attribute = RULES[name].partition(":")
    monkeypatch.setattr(importlib.import_module(module), attribute, wrong)
    with pytest.raises((Exception, pytest.fail.Exception)):  # an assertion, or nothing was raised
        notices()


def test_every_rule_is_tested() -> None:
    noticed = {mutant.where for mutant in MUTANTS.values()}
    assert RULES.keys() == {name for name, where in RULES.items() if where in noticed} | WRONG.keys()
