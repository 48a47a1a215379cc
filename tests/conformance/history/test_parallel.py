"""Several processes find what one process finds."""

import os
import signal
from typing import NoReturn

import pytest

from mqproof.conformance.history import parallel
from mqproof.conformance.history.exact_delivery import clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import RULES, Rule
from mqproof.report.model import Verdict


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Record:
    """Return a history with an anomaly, which is long enough for several processes."""
    monkeypatch.setattr(parallel, "OPERATIONS_MIN", 0)
    world = clean(3)
    INJECTED["message-lost"].inject(world)
    return record(world.lines)


def test_two_processes_find_what_one_process_finds(wrong: Record) -> None:
    one, two = ({id_: found for id_, (found, _) in parallel.findings(wrong, n).items()} for n in (1, 2))
    assert one == two
    assert set(two) == {rule.id for rule in RULES}
    assert two["A01"].verdict is Verdict.VIOLATED


def test_an_error_of_a_rule_in_another_process_is_raised(
    wrong: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Record) -> NoReturn:
        raise RuntimeError("injected")

    broken = (*RULES[1:], Rule("A01", "lost-write", "DELIV-1", fail))
    monkeypatch.setattr(parallel, "RULES", broken)
    with pytest.raises(RuntimeError, match="injected"):
        parallel.findings(wrong, 2)


def test_a_killed_process_is_one_error_that_says_what_to_do(
    wrong: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_: Record) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process goes on")

    killing = (*RULES[1:], Rule("A01", "lost-write", "DELIV-1", end))
    monkeypatch.setattr(parallel, "RULES", killing)
    with pytest.raises(parallel.KilledProcessError, match=r"killed.* --processes"):
        parallel.findings(wrong, 2)


def test_a_short_history_is_judged_by_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", None)
    assert set(parallel.findings(record(clean(3).lines), 2)) == {rule.id for rule in RULES}
