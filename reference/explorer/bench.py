"""`mqproof bench explore`: compares the explorer with TLC on the same bounded models in the same run.

Each side is the command that a user types, in a process of its own: `mqproof check` for TLC, with two
workers, and `mqproof explore`. Both check the same properties, those that the reference has. TLC's seconds
are those of its JVM. The explorer's are those of the whole command, including the start of Python. TLC's
start is also measured separately. Rounds alternate, and the result is the median.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqproof.reference.explorer.survey import bounded_models
from mqproof.reference.models import MODELS, expect_models
from mqproof.report import measurements
from mqproof.report.console import stages, stop, terminable
from mqproof.report.measurements import described
from mqproof.report.model import Exit
from mqproof.report.write import write_text
from mqproof.spec.model_file import MODELS_FILE, PROFILES, ModelFileError, Question, load

Sides = Mapping[str, tuple[str, ...]]
"""The explorers that are compared with TLC, by name, with their options for `mqproof explore`."""

_MQPROOF: Final = (sys.executable, "-c", "from mqproof.cli import main; main()")
_TLC_WORKERS: Final = 2
_ONE_STATE: Final = {
    "models.toml": """
[OneState]
about = "what TLC needs to start"
module = "OneState"
cfg = "OneState.cfg"
[[OneState.runs]]
cfg = "OneState.cfg"
profiles = ["smoke"]
states = 1
depth = 1
""",
    "tla/OneState.tla": """---- MODULE OneState ----
VARIABLE x
Init == x = 0
Next == UNCHANGED x
OK == x = 0
====
""",
    "tla/OneState.cfg": "INIT Init\nNEXT Next\nINVARIANT OK\n",
}

_ASKED: Final = """
[{q.model}]
about = "what the reference is asked as well"
module = "{q.module}"
cfg = "Asked.cfg"
[[{q.model}.runs]]
cfg = "Asked.cfg"
profiles = ["smoke"]
states = [1, 1_000_000_000]
depth = [1, 1000]
seconds_max = {q.seconds_max}
heap_mib = {q.heap_mib}
"""


class BenchError(Exception):
    """A command of the benchmark did not succeed. The message contains its last line."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a command."""

    seconds: float
    states: int
    bytes_a_state: float | None


def bench_explore(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All if none is named.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="The bounded models to use: smoke, mutation, ci or deep.")
    ] = "ci",
    workers: Annotated[
        str, typer.Option("--worker-counts", help="Numbers of processes of the explorer, as in 1,2.")
    ] = "1,2",
    spark: Annotated[
        str | None, typer.Option("--master", metavar="MASTER", help="Also measure Spark on this master.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Also measure the explorer in this memory, as in 1GiB."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each side.")] = 3,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Compare the explorer with TLC on every bounded model: seconds with the start, ratios, memory per state.

    Example: mqproof bench explore Flush --profile smoke --rounds 1
    """
    if profile not in PROFILES:
        stop(f"--profile {profile}: expected one of {', '.join(PROFILES)}", Exit.USAGE)
    expect_models(names or ())
    if not all(number.isdecimal() and int(number) for number in workers.split(",")):
        stop(f"--worker-counts {workers}: expected numbers, as in 1,2", Exit.USAGE)
    sides: Sides = {f"explorer {n}": ("--workers", n) for n in workers.split(",")}
    if memory is not None:
        sides = {**sides, f"explorer {memory}": ("--memory", memory)}
    if spark is not None:
        sides = {**sides, f"spark {spark}": ("--master", spark)}
    try:
        models = load()
        bounded = [q for name in names or MODELS for q in bounded_models(models, name, profile)]
        questions = [q for q in bounded if q.violates is None]
        with terminable(), stages("bench explore") as on_stage:
            result = measure(questions, sides, rounds, on_stage)
    except ModelFileError as error:
        stop(str(error), Exit.USAGE)
    except BenchError as error:
        stop(f"{error}", Exit.TOOL)
    print(table(result))
    if json_file is not None:
        measurements.write(json_file, result)
    if result["failed"]:
        stop("\n".join(result["failed"]), Exit.TOOL)


def measure(
    questions: list[Question], sides: Sides, rounds: int, on_stage: Callable[[str], None]
) -> dict[str, Any]:
    """Run every round of every side, and return the medians.

    A bounded model on which a command does not succeed, or on which two sides count different states, has a
    message in `failed` and no times.

    Raises:
        BenchError: TLC did not start.
    """
    measured: list[tuple[Question, dict[str, list[Run]]]] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mqproof-bench-") as name:
        place = Path(name)
        shutil.copytree(MODELS_FILE.parent / "tla", place / "tla")
        starts = [_tlc_start(place) for _ in range(rounds)]
        for question in questions:
            try:
                measured.append((question, _measured(question, sides, rounds, place, on_stage)))
            except BenchError as error:
                failed.append(str(error))
    rows = [
        (
            f"{question.model} {question.name}: s",
            {side: [run.seconds for run in of_side] for side, of_side in runs.items()},
        )
        for question, runs in measured
    ]
    return {
        **described("bench explore", rows, baseline="tlc"),
        "rounds": rounds,
        "tlc_start_seconds": round(statistics.median(starts), 2),
        "models": [
            {
                "model": question.model,
                "run": question.name,
                "tlc_workers": _TLC_WORKERS,
                "states": runs["tlc"][0].states,
                "sides": {side: _median(of_side) for side, of_side in runs.items()},
            }
            for question, runs in measured
        ],
        "failed": failed,
    }


def _measured(
    question: Question,
    sides: Sides,
    rounds: int,
    place: Path,
    on_stage: Callable[[str], None],
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {"tlc": [], **{side: [] for side in sides}}
    for number in range(1, rounds + 1):
        for side, of_side in runs.items():
            on_stage(f"{question.name}, {side}, round {number}/{rounds}")
            of_side.append(
                _tlc(question, place) if side == "tlc" else _explorer(question, sides[side], place)
            )
    if len(counted := {run.states for of_side in runs.values() for run in of_side}) > 1:
        raise BenchError(f"{question.name}: states are counted as {sorted(counted)}")
    return runs


def _median(runs: list[Run]) -> dict[str, Any]:
    seconds = statistics.median(run.seconds for run in runs)
    sizes = [run.bytes_a_state for run in runs if run.bytes_a_state is not None]
    return {
        "seconds": round(seconds, 2),
        "states_per_second": round(runs[0].states / seconds),
        "bytes_per_state": round(statistics.median(sizes)) if sizes else None,
        "rounds": [round(run.seconds, 2) for run in runs],
    }


def _tlc(question: Question, place: Path) -> Run:
    _write_asked(question, place)
    models_file = str(place / "models.toml")
    command = ("check", question.model, "--models", models_file, "--workers", str(_TLC_WORKERS))
    document, _, peak = _command(command, place)
    states = max(result["counts"].get("states", 0) for result in document["results"])
    return Run(sum(result["seconds"] for result in document["results"]), states, peak / states)


def _write_asked(question: Question, place: Path) -> None:
    """Write a model file with the same bounded model and the properties that the reference checks."""
    model = MODELS[question.model]
    asked = question.config.without("INVARIANT", "PROPERTY")
    for section, names in (("INVARIANT", model.invariants), ("PROPERTY", model.step_invariants)):
        asked = asked.with_section(section, " ".join(names)) if names else asked
    write_text(place / "tla" / "Asked.cfg", asked.text())
    write_text(place / "models.toml", _ASKED.format(q=question))


def _tlc_start(place: Path) -> float:
    for name, text in _ONE_STATE.items():
        write_text(place / name, text)
    document, _, _ = _command(("check", "OneState", "--models", str(place / "models.toml")), place)
    return float(sum(result["seconds"] for result in document["results"]))


def _explorer(question: Question, options: tuple[str, ...], place: Path) -> Run:
    document, seconds, _ = _command(("explore", question.model, "--only", question.name, *options), place)
    row = dict(zip(document["tables"][0]["columns"], document["tables"][0]["rows"][0], strict=True))
    memory = None if row["bytes/state"] == "-" else float(row["bytes/state"])
    return Run(seconds, int(row["states"]), memory)


def _command(arguments: tuple[str, ...], place: Path) -> tuple[dict[str, Any], float, int]:
    """Return a command's JSON, its duration in seconds, and its peak memory, including its processes."""
    report = place / "report.json"
    report.unlink(missing_ok=True)
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            (*_MQPROOF, *arguments, "--json", str(report)), stdout=output, stderr=output
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != Exit.HELD:
            output.seek(0)
            lines = output.read().decode(errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "")
            raise BenchError(f"mqproof {' '.join(arguments)}: exit code {process.returncode}: {last}")
    document: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return document, seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def table(result: dict[str, Any]) -> str:
    """Return the result as text."""
    start = result["tlc_start_seconds"]
    lines = [
        f"{result['machine']}; rounds: {result['rounds']}",
        f"TLC's seconds include its start, which is {start:.1f} s for a model of one state.",
        "TLC's bytes are the maximum of its JVM, including unused heap.",
    ]
    for model in result["models"]:
        lines += ["", *_lines(model)]
    slower = [model["run"] for model in result["models"] if _is_slower(model["sides"])]
    return "\n".join([*lines, "", f"The explorer is slower than TLC: {', '.join(slower) or 'nowhere'}"])


def _lines(model: dict[str, Any]) -> Iterator[str]:
    yield f"{model['model']} {model['run']}: {model['states']} states"
    yield f"  {'':22}{'seconds':>9}{'states/s':>11}{'TLC / it':>10}{'bytes/state':>13}"
    for side, found in model["sides"].items():
        name = f"TLC, {model['tlc_workers']} workers" if side == "tlc" else side
        ratio = model["sides"]["tlc"]["seconds"] / found["seconds"]
        rate, memory = found["states_per_second"], found["bytes_per_state"] or "-"
        yield f"  {name:22}{found['seconds']:>9.1f}{rate:>11}{ratio:>10.2f}{memory:>13}"


def _is_slower(sides: dict[str, Any]) -> bool:
    best = min(found["seconds"] for side, found in sides.items() if side.startswith("explorer"))
    return bool(best > sides["tlc"]["seconds"])
