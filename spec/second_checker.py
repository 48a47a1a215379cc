"""`mqproof check --judge`: asks another model checker TLC's questions, and compares verdicts and counts.

The judge is the program `tla` of the crate tla-checker, which shares no code with TLC. It is asked for the
runs and mutants whose answer depends on invariants alone. What it cannot read is not tested, never held.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mqproof.report.model import Result, Verdict
from mqproof.spec.model_file import Kind, Models, Question
from mqproof.spec.models import LAYER, Answer, replay

_CONFIG_FILE: Final = "run.cfg"
_ANSWER: Final = '{"status"'
"""The beginning of the line with the answer; the program prints other lines before it."""
_MOST: Final = str(10**9)
"""More states and more steps than any run has."""


def judged(models: Models, answers: Iterable[Answer], program: Path) -> tuple[Answer, ...]:
    """Return the answers, each with the judge's result where it can be asked.

    Raises:
        OSError: the program does not start.
    """
    return tuple(
        replace(answer, results=(*answer.results, _compared(models, answer, program)))
        if _is_for_judge(answer.question)
        else answer
        for answer in answers
    )


def _is_for_judge(question: Question) -> bool:
    by_invariant = question.violates is None or question.violates in question.config.names("INVARIANT")
    return question.kind in (Kind.CHECK, Kind.MUTANT) and by_invariant and not question.deadlock


def _compared(models: Models, answer: Answer, program: Path) -> Result:
    question = answer.question
    try:
        found = _ask(models, question, program)
    except subprocess.TimeoutExpired:
        found = {"status": f"no answer within {question.seconds_max} seconds"}
    states = found.get("stats", {}).get("states_explored", 0)
    if found["status"] == "ok":
        verdict = _verdict(question.violates is None and states == answer.states)
        detail = f"the judge found no violation in {states} states, TLC counted {answer.states}"
    elif found["status"] == "invariant_violation":
        verdict = _verdict(found["invariant_name"] == question.violates)
        detail = f"the judge found that {found['invariant_name']} is violated"
    else:
        verdict, detail = Verdict.NOT_TESTED, f"the judge: {found['status']}: {found.get('error', '')}"
    return Result(
        id=f"{question.model}.{question.name}",
        name="AnotherCheckerAgrees",
        layer=LAYER,
        verdict=verdict,
        counts={"states": states},
        detail="" if verdict is Verdict.HELD else " ".join(detail.split()),
        replay=f"{replay(models, question)} --judge {program}",
    )


def _verdict(agrees: bool) -> Verdict:
    return Verdict.HELD if agrees else Verdict.VIOLATED


def _ask(models: Models, question: Question, program: Path) -> dict[str, Any]:
    """Return what the program prints about a question, without its temporal properties."""
    with tempfile.TemporaryDirectory(prefix="mqproof-judge-") as name:
        place = Path(name)
        for library in reversed(models.libraries):
            for module in library.resolve().glob("*.tla"):
                (place / module.name).unlink(missing_ok=True)
                (place / module.name).symlink_to(module)
        (place / _CONFIG_FILE).write_text(question.config.without("PROPERTY").text(), encoding="utf-8")
        command = [str(program), f"{question.module}.tla", "--config", _CONFIG_FILE, "--json"]
        command += ["--allow-deadlock", "--max-states", _MOST, "--max-depth", _MOST]
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=question.seconds_max, check=False
        )
    for line in done.stdout.splitlines():
        if line.startswith(_ANSWER):
            found: dict[str, Any] = json.loads(line)
            return found
    return {"status": "unreadable", "error": (done.stderr or done.stdout)[-200:]}
