"""Tests the suites by name, and the results of a suite without a target."""

import re
import sys
import time
import types
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.template import MyBroker
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.registry.suite_registry import SUITES, conduct
from mqproof.conformance.suites.flush.target import Pulled
from mqproof.report.model import Verdict

ROOT = Path(__file__).parents[3]


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


def test_the_page_of_suites_has_those_without_a_page_of_their_own_in_this_order() -> None:
    page = (ROOT / "docs/explanation/conformance/suites.md").read_text(encoding="utf-8")
    table = page.split("| suite | steps")[1].split("\n\n")[0]
    of_their_own = {"flush", "routing", "workload", "wire", "inspections", "hostile", "damage"}
    expected = [name for name in SUITES if name not in of_their_own]
    assert re.findall(r"^\| (\w+) \|", table, re.MULTILINE) == expected
    of_one_broker = expected[: len(EXAMINEES)]
    assert set(of_one_broker) == set(EXAMINEES)
    assert f"`{of_one_broker[0]}` to `{of_one_broker[-1]}` send their own requests to one broker" in page


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


class _Slow(MyBroker):
    """A broker that answers pulls after a second."""

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        time.sleep(1)
        return super().pull(topic, queue_id, offset, max_count)


def test_a_suite_ends_with_its_budget_and_judges_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("slow_broker")
    module.Slow = _Slow  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "slow_broker", module)
    options = RunOptions("python:slow_broker:Slow", examples=10_000, minutes=0.02)
    began = time.monotonic()
    part = conduct(options, "flush", silent)
    assert time.monotonic() - began < 60
    assert part.looked_at["examples"] < 10_000
    assert all("the budget of 0.02 minutes ended the suite after" in each.detail for each in part.results)
    assert Verdict.VIOLATED not in {each.verdict for each in part.results}


class _LeftDown(_Slow):
    """A slow broker that is down after an interruption, so that nothing can be closed or opened."""

    is_down = False

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        try:
            return super().pull(topic, queue_id, offset, max_count)
        except KeyboardInterrupt:
            _LeftDown.is_down = True
            raise

    def close(self) -> None:
        super().close()
        if _LeftDown.is_down:
            raise TargetError("the broker is down")


def test_a_budget_may_end_in_the_middle_of_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("left_down")
    module.Slow = _LeftDown  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "left_down", module)
    part = conduct(RunOptions("python:left_down:Slow", examples=10_000, minutes=0.03), "flush", silent)
    assert _LeftDown.is_down
    assert part.refusal is None
    assert all("the budget of 0.03 minutes ended the suite after" in each.detail for each in part.results)


@pytest.mark.parametrize("name", ["consumers", "replication"])
def test_a_suite_of_seeds_ends_with_its_budget(name: str) -> None:
    part = conduct(RunOptions("impl", examples=10_000, minutes=0.002), name, silent)
    assert part.looked_at["examples"] < 10_000
    assert Verdict.VIOLATED not in {each.verdict for each in part.results}
    assert all("ended the suite after" in each.detail for each in part.results)


@pytest.mark.deep("40 CPU seconds")
@pytest.mark.parametrize("name", ["consumers", "replication", "dledger", "convergence"])
def test_a_hundred_examples_of_a_suite_of_seeds_have_all_pairs(name: str) -> None:
    part = SUITES[name].run(RunOptions("impl"), silent)
    assert part.looked_at["pairs covered"] == part.looked_at["pairs feasible"] > 0
    assert {each.verdict for each in part.results} == {Verdict.HELD}
