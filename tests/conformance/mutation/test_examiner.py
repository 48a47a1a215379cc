"""The rounds in which suites judge a mutant, and the cases that they run."""

from collections.abc import Iterator

import pytest

from mqproof.conformance.engine.run_options import Part
from mqproof.conformance.mutation import examiner
from mqproof.conformance.mutation.examiner import Judge, Outcome, Task
from mqproof.report.model import Result, Verdict, Witness


def test_each_suite_runs_shortly_before_any_suite_runs_with_all_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[str, int, tuple[str, ...]]] = []

    def holds(judge: Judge, _: Task) -> Iterator[object]:
        ran.append((judge.suite, judge.examples, judge.cases))
        return iter(())

    monkeypatch.setattr(examiner, "_detections", holds)
    first, more = examiner.FIRST_CASES, examiner.NEXT_CASES
    cases = tuple(f"c/{number}" for number in range(first + more + 2))
    judges = (
        Judge("inspections", cases=cases, is_whole=True), Judge("flush"), Judge("wire", cases=("a/1",)),
        Judge("hostile", cases=("b",), is_whole=True),
        Judge("damage", is_whole=True), Judge("admin", 45),
    )  # fmt: skip
    verdict = examiner.examine(Task("", 0, judges, 50, 0, 10_000), lambda _: None)
    assert verdict.outcome is Outcome.SURVIVED
    assert ran == [
        ("inspections", 2, cases[:first]), ("flush", 2, ()), ("wire", 2, ("a/1",)),
        ("hostile", 2, ("b",)), ("damage", 2, ()), ("admin", 47, ()),
        ("inspections", 0, cases[first:-2]), ("inspections", 0, cases[-2:]),
        ("flush", 10, ()), ("admin", 50, ()),
        ("flush", 50, ()), ("wire", 50, ()),
    ]  # fmt: skip


def test_chosen_wire_cases_run_on_servers_in_this_process() -> None:
    chosen = ("remoting/max-offset/1", "remoting/max-offset/2")
    part = examiner.examined("wire", 1, 0, lambda *_: None, chosen)
    assert {result.id for result in part.results} == set(chosen)


def test_a_violation_of_an_inspection_counts_although_the_time_ends_before_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[str, ...]] = []

    def one(_suite: str, _examples: int, _seed: int, _progress: object, cases: tuple[str, ...]) -> Part:
        ran.append(cases)
        if cases != ("b",):
            return Part("inspections", (), {}, 0.0)
        wrong = Result("b", "b", "inspections", Verdict.VIOLATED, {}, (Witness("differs"),))
        return Part("inspections", (wrong,), {}, 0.0)

    monkeypatch.setattr(examiner, "examined", one)
    judge = Judge("inspections", cases=("a", "b", "c"))
    verdict = examiner.examine(Task("", 0, (judge,), 50, 0, 10_000), lambda _: None)
    assert (verdict.outcome, verdict.by, ran) == (Outcome.VIOLATION, "b", [("a",), ("b",)])
