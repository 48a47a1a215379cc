"""Goal: `mqproof check` fits 80 columns, and shows states and seconds while TLC runs."""

import io

from rich.console import Console

from mqproof.report.model import Report, Result, Verdict, Witness
from mqproof.report.terminal import render
from mqproof.spec.check_screen import _Moving, full_table, label, runs_table, shown_results
from mqproof.spec.model_file import Question, load
from mqproof.spec.models import Answer


def every_run() -> list[Question]:
    return [question for questions in load().questions.values() for question in questions]


def answer(question: Question) -> Answer:
    held = Result("X-1", "x", "tla", Verdict.HELD, {"states": 1})
    return Answer(question, (held,), 12_345_678, 123, 1234.5, None)


def test_the_table_of_all_our_runs_fits_80_columns() -> None:
    table = runs_table([answer(question) for question in every_run()])
    lines = render(Report("check", (), {}, (table,)), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if " 12345678 " in line]
    assert len(rows) == len(every_run())  # no row is wrapped


def test_the_label_of_a_run_contains_the_name_of_its_model() -> None:
    assert all(question.model in label(question) for question in every_run())


def test_the_table_written_to_files_also_has_the_columns_model_and_kind() -> None:
    (question, *_) = every_run()
    assert full_table([answer(question)]).columns[:4] == ("model", "run", "kind", "verdict")


def test_the_summary_groups_unknown_results_and_does_not_repeat_the_steps() -> None:
    (question, *_) = every_run()
    steps = (Witness("step 1"),)
    broken = Result("X-1", "broken", "tla", Verdict.VIOLATED, {}, steps, "x under y", "mqproof check x")
    left = [
        Result("X.run", name, "tla", Verdict.UNKNOWN, {}, (), "the run stopped", "mqproof check x")
        for name in ("a", "b", "c")
    ]
    found = shown_results([Answer(question, (broken, *left), 5, 2, 1.0, None)])
    lines = render(Report("check", found), width=80, rows=False).splitlines()
    assert [line for line in lines if line.startswith(("?", "✗"))] == [
        "? unknown X.run a, b, c (tla): the run stopped",
        "✗ violated X-1 broken (tla): x under y; replay: mqproof check x",
        "✗ violated: 1 violated, 3 unknown",
    ]
    assert not any("step 1" in line for line in lines)


def test_the_progress_line_counts_runs_states_and_seconds_and_fits_the_width() -> None:
    first, second, third, *_ = every_run()
    console = Console(file=io.StringIO(), width=80)
    moving = _Moving(console, 3)
    moving.started(first)
    moving.started(second)
    moving.found(second, 1000)
    assert str(moving.__rich__()).startswith("0/3 runs, 1,000 states, 0 s: MCFlush_smoke 0 s, ")
    moving.answered(answer(first))
    moving.started(third)
    assert str(moving.__rich__()).startswith("1/3 runs, 12,346,678 states, 0 s: ")
    assert len(str(moving.__rich__())) <= 78
