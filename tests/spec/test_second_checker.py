"""The answers of another checker are compared with TLC's: a script stands for its program."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.report.model import Result, Verdict
from mqproof.spec.model_file import Kind, Question, load
from mqproof.spec.models import Answer, ask_all
from mqproof.spec.second_checker import judged

MODELS = load()
RUN = next(q for q in MODELS.questions["Timers"] if q.kind is Kind.CHECK and q.violates is None)
MUTANT = next(q for q in MODELS.questions["Flush"] if q.name == "FlushAckBeforeFlush")


def answer(question: Question, states: int = 100) -> Answer:
    return Answer(question, (), states, 9, 1.0, None)


def asked(answer: Answer, tmp_path: Path, prints: str) -> Result | None:
    """Return the result of a judge that prints this text, if it was asked."""
    program = tmp_path / "judge"
    program.write_text(f"#!/bin/sh\ntest -f $1 && cat <<'END'\n{prints}\nEND\n", encoding="utf-8")
    program.chmod(0o755)
    (after,) = judged(MODELS, (answer,), program)
    return after.results[0] if after.results else None


@pytest.mark.parametrize(
    ("states", "verdict"), [(100, Verdict.HELD), (99, Verdict.VIOLATED), (101, Verdict.VIOLATED)]
)
def test_a_run_must_have_the_same_number_of_states(states: int, verdict: Verdict, tmp_path: Path) -> None:
    result = asked(answer(RUN), tmp_path, f'{{"status": "ok", "stats": {{"states_explored": {states}}}}}')
    assert result is not None
    assert result.verdict is verdict
    assert result.replay.endswith("judge")


@pytest.mark.parametrize(
    ("found", "verdict"), [("SyncAckedDurable", Verdict.HELD), ("NoAckedLost", Verdict.VIOLATED)]
)
def test_a_mutant_must_violate_the_same_invariant(found: str, verdict: Verdict, tmp_path: Path) -> None:
    prints = (
        f'{{"status": "invariant_violation", "invariant_name": "{found}", "stats": {{"states_explored": 7}}}}'
    )
    result = asked(answer(MUTANT), tmp_path, prints)
    assert result is not None
    assert result.verdict is verdict
    held = asked(answer(MUTANT), tmp_path, '{"status": "ok", "stats": {"states_explored": 100}}')
    assert held is not None
    assert held.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("prints", ['{"status": "parse_error", "error": "line 3"}', "panicked"])
def test_a_model_that_the_judge_cannot_read_is_not_tested(prints: str, tmp_path: Path) -> None:
    result = asked(answer(RUN), tmp_path, prints)
    assert result is not None
    assert result.verdict is Verdict.NOT_TESTED
    assert prints[12:17] in result.detail or "unreadable" in result.detail


def test_questions_about_time_are_not_asked(tmp_path: Path) -> None:
    about_time = replace(MUTANT, violates="SendAnswered")
    assert asked(answer(about_time), tmp_path, "") is None
    assert asked(answer(replace(RUN, kind=Kind.PROBES)), tmp_path, "") is None


@pytest.mark.deep("a run of TLC and of the crate tla-checker, if its program `tla` is on the PATH")
def test_another_checker_agrees_with_tlc() -> None:
    program = shutil.which("tla")
    if program is None:
        pytest.skip("not tested: tla-checker is not installed")
    answers = judged(MODELS, ask_all(MODELS, [RUN]), Path(program))
    assert answers[0].results[-1].verdict is Verdict.HELD
