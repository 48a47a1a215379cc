"""`mqproof behaviours`: replays the models' behaviours on a target and reports the coverage."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.report.console import stages, stop
from mqproof.report.model import Exit, Report, Result, Verdict, exit_code
from mqproof.report.option_groups import with_groups

if TYPE_CHECKING:
    from mqproof.conformance.commands.behaviour_results import ModelReplay

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

TARGETS: Final = ("reference", "impl")


@app.callback()
def _root() -> None:
    """Behaviours generated from the models."""


@dataclass(frozen=True)
class Replays:
    """The replayed behaviours and their target."""

    target: Annotated[
        str,
        typer.Option(help="reference, or impl (our code)."),
    ] = "impl"
    every: Annotated[int, typer.Option(min=1, help="Replay only every N-th behaviour.")] = 1
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Read behaviours from this folder; default: those of this release."),
    ] = None
    write: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the behaviours to this folder; replay nothing."),
    ] = None
    outcomes: Annotated[
        bool,
        typer.Option(
            "--outcomes", help="With --out: also write the behaviours of outcomes, which takes minutes."
        ),
    ] = False
    images: Annotated[
        bool, typer.Option("--images", help="On impl: also test each disk image that a crash may leave.")
    ] = False


@dataclass(frozen=True)
class ResultFiles:
    """The options that name files for the result."""

    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE.html", help="Write the result as a page with the graphs to this file."
        ),
    ] = None


@app.command()
@with_groups
def behaviours(
    replays: Replays,
    files: ResultFiles,
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="Models; default: all.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--counterexample",
            metavar="NAME",
            help="Replay TLC's counterexample of this model mutant instead.",
        ),
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Write the coloured state graph of one model to this file."),
    ] = None,
) -> None:
    """Take every step of the models' state graphs on a target; try disabled actions in a sample of states.

    Examples: mqproof behaviours Flush --draw flush.svg; mqproof behaviours --target reference; mqproof
    behaviours --out build/corpus
    """
    from mqproof.reference.models import MODELS, expect_models

    expect_models(models or ())
    if replays.target not in TARGETS:
        stop(f"--target {replays.target}: expected one of {', '.join(TARGETS)}", Exit.USAGE)
    chosen = models or list(MODELS)
    for option, given in (("--draw", draw), ("--counterexample", variant)):
        if given is not None and len(chosen) != 1:
            stop(f"{option}: expected exactly one model", Exit.USAGE)
    if variant is not None:
        answered = _answered(chosen[0], replays.target, variant)
        _show(Report("mqproof behaviours", (answered,)), files, None)
        raise typer.Exit(exit_code([answered]))
    found = _written_or_replayed(chosen, replays)
    if replays.write is None:
        report = _report(found, replays)
        _show(report, files, draw)
        raise typer.Exit(exit_code(report.results))


def _written_or_replayed(models: Sequence[str], replays: Replays) -> "list[ModelReplay]":
    """Write the behaviours of the models with --out; otherwise replay them. Ends the command on bad input."""
    from mqproof.conformance.behaviours.corpus import CORPUS, CorpusError, write_file
    from mqproof.conformance.behaviours.outcomes import FOLDER, write_files
    from mqproof.conformance.commands.behaviour_results import replayed

    found = []
    with stages("behaviours") as on_stage:
        try:
            for model in models:
                if (folder := replays.write) is not None:
                    on_stage(f"{write_file(model, folder)}")
                    for path in write_files(model, folder / FOLDER.name) if replays.outcomes else ():
                        on_stage(f"{path}")
                else:
                    on_stage(f"{model} on {replays.target}")
                    corpus = replays.corpus or CORPUS
                    found.append(
                        replayed(model, replays.target, corpus, replays.every, images=replays.images)
                    )
        except CorpusError as error:
            stop(str(error), Exit.USAGE)
        except OSError as error:
            stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    return found


def _report(found: "Sequence[ModelReplay]", replays: Replays) -> Report:
    return Report(
        "mqproof behaviours",
        tuple(one.result for one in found),
        facts={"target": replays.target, "every": str(replays.every)},
        tables=tuple(table for one in found for table in one.tables if table.rows),
        figures=tuple(one.figure for one in found if one.figure),
    )


def _answered(model: str, target: str, variant: str) -> Result:
    """Return the result of a counterexample on the target.

    It is held if the target deviates from the counterexample, because it does not have the defect. It is
    unknown if the target cannot be made to take a step that does not show the defect.
    """
    from mqproof.conformance.behaviours.counterexample import CounterexampleError, replay_counterexample
    from mqproof.conformance.behaviours.replay import Failure
    from mqproof.conformance.commands.behaviour_results import witness
    from mqproof.conformance.subjects.stepped.model_targets import resolve, why_not
    from mqproof.spec.tlc.errors import TlcError

    make = resolve(target, model)
    if make is None:
        stop(f"--target {target}: it does not support the model {model}: {why_not(model)}", Exit.USAGE)
    began = time.perf_counter()
    try:
        answer = replay_counterexample(model, variant, make)
    except CounterexampleError as error:
        stop(f"--counterexample {error}", Exit.USAGE)
    except TlcError as error:
        stop(str(error), Exit.TOOL)
    steps = len(answer.script.steps)
    why = "the target has the defect: it takes every step"
    verdict, what = Verdict.VIOLATED, answer.left or Failure(answer.script, steps - 1, why)
    if answer.left:
        verdict = Verdict.HELD
    elif answer.stuck_at is not None:
        verdict = Verdict.UNKNOWN
        what = Failure(answer.script, answer.stuck_at, "the target cannot be made to take this step")
    shown = witness(what)
    return Result(
        "SPEC-1",
        f"Counterexample {variant}",
        "behaviours",
        verdict,
        {"steps": steps, "taken": steps if verdict is Verdict.VIOLATED else what.at},
        witnesses=() if answer.left else (shown,),
        detail=f"{answer.violated}: {shown.text}",
        replay=f"mqproof behaviours {model} --target {target} --counterexample {variant}",
        seconds=time.perf_counter() - began,
    )


def _show(report: Report, files: ResultFiles, draw: Path | None) -> None:
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.write import write_text

    terminal.show(report)
    write_files(report, json=files.json_file, page=files.report_file)
    try:
        if draw is not None and report.figures:
            write_text(draw, report.figures[0].svg)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
