"""The rounds in which suites judge a mutant, and the cases that they run."""

from collections.abc import Iterator

import pytest

from mqproof.conformance.mutation import examiner
from mqproof.conformance.mutation.examiner import Judge, Outcome, Task


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
