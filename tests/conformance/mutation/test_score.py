"""The score counts white spots and endless mutants as not detected, and leaves out what cannot be shown."""

from dataclasses import replace
from pathlib import Path

from mqproof.conformance.mutation.campaign import Judged
from mqproof.conformance.mutation.examiner import Outcome, Verdict
from mqproof.conformance.mutation.operators import Mutant
from mqproof.conformance.mutation.score import percent, report
from mqproof.conformance.mutation.survivors import Kind, Stated, key
from mqproof.report import model


def _judged(number: int, outcome: Outcome, suite: str = "flush", part: str = "store") -> Judged:
    mutant = Mutant(f"mqproof.impl.{part}.m", number, "shift-constant", 3, str(number), str(number + 1))
    reached = () if outcome is Outcome.UNREACHED else ("wire", "flush")
    return Judged(mutant, reached, Verdict(outcome, suite if outcome is Outcome.VIOLATION else ""))


def test_only_detected_mutants_raise_the_score() -> None:
    outcomes = [Outcome.VIOLATION, Outcome.BROKEN, Outcome.ENDLESS, Outcome.SURVIVED, Outcome.UNREACHED]
    assert percent([_judged(number, each) for number, each in enumerate(outcomes)]) == 40
    assert percent([]) == 0


def _table(found: model.Report, title: str) -> tuple[tuple[str, ...], ...]:
    return next(table.rows for table in found.tables if table.title == title)


def test_what_cannot_be_shown_does_not_count_unless_it_is_detected() -> None:
    detected, equal, hidden, visible = (
        _judged(number, Outcome.SURVIVED if number else Outcome.VIOLATION) for number in range(4)
    )
    kinds = {0: Kind.EQUIVALENT, 1: Kind.EQUIVALENT, 2: Kind.INVISIBLE, 3: Kind.VISIBLE}
    known = {(each.mutant.module, key(each.mutant)): Stated(kinds[each.mutant.number], "why")
             for each in (detected, equal, hidden, visible)}  # fmt: skip
    found = report([detected, equal, hidden, visible], {}, 50, known=known)
    assert found.facts["equivalent"] == "1"
    assert _table(found, "Score by part")[-1] == ("all", "3", "1", "0", "2", "0", "1", "50%", "not run", "")
    assert [row[5:7] for row in _table(found, "Mutants that no suite detects")] == [
        ("equivalent", "why"),
        ("invisible", "why"),
        ("visible", "why"),
    ]


def test_unit_tests_add_what_they_detect() -> None:
    outcomes = [Outcome.VIOLATION, Outcome.SURVIVED, Outcome.UNREACHED]
    first, *missed = [_judged(number, each) for number, each in enumerate(outcomes)]
    failing = replace(missed[0], by_unit_tests=Verdict(Outcome.VIOLATION, by="test_m.py::test_it"))
    passing = replace(missed[1], by_unit_tests=Verdict(Outcome.SURVIVED))
    found = report([first, failing, passing], {}, 90, known={})
    assert _table(found, "Score by part")[-1][-3:] == ("33%", "1 of 2", "66%")
    rows = _table(found, "Mutants that no suite detects")
    assert [row[-1] for row in rows] == ["test_m.py::test_it", "none"]


def test_the_share_with_unit_tests_is_the_least_while_some_did_not_run() -> None:
    first, second = _judged(1, Outcome.SURVIVED), _judged(2, Outcome.SURVIVED)
    failing = replace(first, by_unit_tests=Verdict(Outcome.VIOLATION, by="test_m.py::test_it"))
    found = report([failing, second], {}, 90, known={})
    assert _table(found, "Score by part")[-1][-2:] == ("1 of 1", "at least 50%")
    assert [row[-1] for row in _table(found, "Mutants that no suite detects")] == [
        "test_m.py::test_it", "not run",
    ]  # fmt: skip


def test_a_survivor_has_the_input_that_executes_its_line() -> None:
    reached = replace(_judged(1, Outcome.SURVIVED), first_input="flush example 3")
    found = report([reached, _judged(2, Outcome.UNREACHED)], {}, 0, known={})
    rows = _table(found, "Mutants that no suite detects")
    assert [row[3:5] for row in rows] == [("wire, flush", "flush example 3"), ("no suite", "")]


def test_a_module_whose_mutants_cannot_be_shown_has_no_score() -> None:
    one = _judged(1, Outcome.SURVIVED)
    known = {(one.mutant.module, key(one.mutant)): Stated(Kind.INVISIBLE, "a log")}
    assert _table(report([one], {}, 0, known=known), "Score by module")[0][-3] == "none counts"


def test_part_below_the_goal_is_violated() -> None:
    judged = [
        _judged(1, Outcome.VIOLATION),
        _judged(2, Outcome.SURVIVED),
        _judged(3, Outcome.VIOLATION, part="client"),
    ]
    found = {result.name: result for result in report(judged, {}, 90, known={}).results}
    assert found["The suites detect mutants of impl/store"].verdict is model.Verdict.VIOLATED
    assert found["The suites detect mutants of impl/client"].verdict is model.Verdict.HELD
    assert "50%" in found["The suites detect mutants of impl/store"].detail


def test_a_folder_of_patches_has_a_row_for_each_and_its_own_replay() -> None:
    one = _judged(1, Outcome.VIOLATION)
    found = report([one], {}, 90, Path("my bugs"), known={})
    (table,) = (table for table in found.tables if table.title == "Patches")
    assert table.rows == (("1", "impl.store.m:3", "violation", "flush", ""),)
    assert found.results[0].replay == "mqproof mutate-impl --patches 'my bugs'"


def test_suite_that_ran_after_the_detection_judged_nothing() -> None:
    found = report([_judged(1, Outcome.VIOLATION, "wire")], {}, 0, known={})
    assert _table(found, "Mutants by suite, the fastest first") == (("wire", "1", "1"),)
