"""Tests the suites by name, and the results of a suite without a target."""

from dataclasses import replace
from typing import NoReturn

import pytest

from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.registry.suite_registry import SUITES, conduct
from mqproof.report.model import Verdict


def silent(*_: int) -> None:
    """Show no progress."""


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_lists_the_selected_results_and_a_line_for_each(name: str) -> None:
    options = RunOptions("impl", ids=("*-1",))
    listed = SUITES[name].listed(options)
    assert {each.verdict for each in listed} <= {Verdict.NOT_TESTED}
    # `damage` also lists its cases, which are no results.
    shown = [line.split()[0] for line in SUITES[name].lines(options) if not line.startswith("damage/")]
    assert shown == [each.id for each in listed]
    assert len(listed) < len(SUITES[name].listed(RunOptions("impl")))


@pytest.mark.parametrize("name", ["producers", "consumers", "replication"])
def test_a_suite_without_such_a_target_is_not_tested(name: str) -> None:
    part = conduct(RunOptions("remoting://127.0.0.1:1", examples=1), name, silent)
    assert {each.verdict for each in part.results} == {Verdict.NOT_TESTED}
    assert part.refusal is not None


def test_a_suite_whose_target_fails_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise TargetError("no connection")

    monkeypatch.setitem(SUITES, "consumers", replace(SUITES["consumers"], play=fail))  # type: ignore[type-var]
    part = conduct(RunOptions("impl", examples=1), "consumers", silent)
    assert {(each.verdict, each.detail) for each in part.results} == {(Verdict.UNKNOWN, "no connection")}
