"""The rounds in which suites judge a mutant, and the cases that they run."""

from collections.abc import Iterator
from typing import Any

import pytest

from mqproof.conformance.engine.run_options import Part
from mqproof.conformance.mutation import examiner
from mqproof.conformance.mutation.examiner import Judge, Outcome, Task
from mqproof.report.model import Result, Verdict


def test_each_suite_runs_shortly_before_any_suite_runs_with_all_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[str, int, tuple[str, ...]]] = []

    def holds(judge: Judge, _: Task) -> Iterator[object]:
        ran.append((judge.suite, judge.examples, judge.cases))
        return iter(())

    monkeypatch.setattr(examiner, "_detections", holds)
    judges = (
        Judge("flush"), Judge("wire", cases=("a/1",)), Judge("hostile", cases=("b",), is_whole=True),
        Judge("damage", is_whole=True), Judge("admin", 45),
    )  # fmt: skip
    verdict = examiner.examine(Task("", 0, judges, 50, 0, 10_000), lambda _: None)
    assert verdict.outcome is Outcome.SURVIVED
    assert ran == [
        ("flush", 2, ()), ("wire", 2, ("a/1",)), ("hostile", 2, ("b",)), ("damage", 2, ()), ("admin", 47, ()),
        ("flush", 10, ()), ("admin", 50, ()),
        ("flush", 50, ()), ("wire", 50, ()),
    ]  # fmt: skip


def test_chosen_wire_cases_run_on_servers_in_this_process() -> None:
    chosen = ("remoting/max-offset/1", "remoting/max-offset/2")
    part = examiner.examined("wire", 1, 0, lambda *_: None, chosen)
    assert {result.id for result in part.results} == set(chosen)


def test_a_violation_of_an_inspection_counts_if_no_time_is_left_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(_: str, __: int, ___: int, ____: Any, cases: tuple[str, ...] = ()) -> Part:
        if cases == ("late",):
            raise examiner._OutOfBudgetError
        verdict = Verdict.VIOLATED if "wrong" in cases else Verdict.HELD
        return Part(
            "inspections", tuple(Result(each, each, "", verdict, {"runs": 1}) for each in cases), {}, 0.0
        )

    monkeypatch.setattr(examiner, "examined", run)
    for cases, outcome in (
        (("good", "wrong", "late"), Outcome.VIOLATION), (("good", "late", "wrong"), Outcome.SURVIVED),
    ):  # fmt: skip
        task = Task("", 0, (Judge("inspections", cases=cases, is_whole=True),), 50, 0, 10_000)
        assert examiner.examine(task, lambda _: None).outcome is outcome
