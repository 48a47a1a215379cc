"""`mqproof behaviours`: the models' behaviours on a target, and how much of each it was seen to take."""

import itertools
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from mqproof.conformance.behaviours.conditions import Outcome
    from mqproof.conformance.behaviours.corpus import Script
    from mqproof.conformance.behaviours.cover import Steps
    from mqproof.conformance.crash_images.store_images import Recovered

from mqproof.report.console import stages, stop
from mqproof.report.model import Exit, Figure, Report, Result, Table, Verdict, Witness, exit_code

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

TARGETS: Final = ("reference", "impl")
_WITNESSES_MAX: Final = 5


@app.callback()
def _root() -> None:
    """Behaviours generated from the models."""


@app.command()
def behaviours(
    models: Annotated[list[str] | None, typer.Argument(metavar="[MODEL]...", help="Default: all.")] = None,
    target: Annotated[
        str,
        typer.Option(help="reference, or impl: ours."),
    ] = "impl",
    every: Annotated[int, typer.Option(min=1, help="Replay every so many-th behaviour only.")] = 1,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Behaviours from there; default: those of this release."),
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the behaviours there; replay nothing.")
    ] = None,
    outcomes: Annotated[
        bool, typer.Option("--outcomes", help="With --out: write those of outcomes too, which takes minutes.")
    ] = False,
    images: Annotated[
        bool, typer.Option("--images", help="On impl: each disk image that a crash may leave, too.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The result as JSON.")
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="The result as a page, with the graphs."),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--counterexample",
            metavar="NAME",
            help="Replay TLC's counterexample of a mutant instead.",
        ),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="The coloured state graph of one model.")
    ] = None,
) -> None:
    """Take every step of the models' state graphs on a target; try what is disabled in a sample of states.

    Examples: mqproof behaviours Flush --draw flush.svg; mqproof behaviours --target reference;
    mqproof behaviours --out build/corpus
    """
    from mqproof.conformance.behaviours.corpus import CORPUS, CorpusError, write_file
    from mqproof.conformance.behaviours.outcomes import FOLDER, write_files
    from mqproof.reference.models import MODELS, expect_models

    expect_models(models or ())
    if target not in TARGETS:
        stop(f"--target {target}: expected one of {', '.join(TARGETS)}", Exit.USAGE)
    chosen = models or list(MODELS)
    if draw is not None and len(chosen) != 1:
        stop("--draw: name one model", Exit.USAGE)
    if variant is not None:
        if len(chosen) != 1:
            stop("--counterexample: name one model", Exit.USAGE)
        answered = _answered(chosen[0], target, variant)
        _show(Report("mqproof behaviours", (answered,)), json_file, report_file, None)
        raise typer.Exit(exit_code([answered]))
    with stages("behaviours") as told:
        try:
            if write is not None:
                for model in chosen:
                    told(f"{write_file(model, write)}")
                    for path in write_files(model, write / FOLDER.name) if outcomes else ():
                        told(f"{path}")
                return
            found = []
            for model in chosen:
                told(f"{model} on {target}")
                found.append(_replayed(model, target, corpus or CORPUS, every, images=images))
        except CorpusError as error:
            stop(str(error), Exit.USAGE)
        except OSError as error:
            stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    results = tuple(result for result, _, _ in found)
    report = Report(
        "mqproof behaviours",
        results,
        facts={"target": target, "every": str(every)},
        tables=tuple(table for _, tables, _ in found for table in tables if table.rows),
        figures=tuple(figure for _, _, figure in found if figure),
    )
    _show(report, json_file, report_file, draw)
    raise typer.Exit(exit_code(results))


def _answered(model: str, target: str, variant: str) -> Result:
    """Held when the target leaves the counterexample: it has not got the defect. Unknown when it cannot be
    brought to take a step that is not the point."""
    from mqproof.conformance.behaviours.counterexample import CounterexampleError, ask
    from mqproof.conformance.behaviours.replay import Failure
    from mqproof.conformance.subjects.stepped_targets import resolve
    from mqproof.spec.tlc.errors import TlcError

    make = resolve(target, model)
    if make is None:
        stop(f"--target {target}: it has no steps of {model}", Exit.USAGE)
    began = time.perf_counter()
    try:
        answer = ask(model, variant, make)
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
        what = Failure(answer.script, answer.stuck_at, "the target cannot be brought to take this step")
    told = _witness(what)
    return Result(
        "SPEC-1",
        f"Counterexample {variant}",
        "behaviours",
        verdict,
        {"steps": steps, "taken": steps if verdict is Verdict.VIOLATED else what.at},
        witnesses=() if answer.left else (told,),
        detail=f"{answer.violated}: {told.text}",
        replay=f"mqproof behaviours {model} --target {target} --counterexample {variant}",
        seconds=time.perf_counter() - began,
    )


def _replayed(
    model: str, target: str, folder: Path, every: int, *, images: bool
) -> tuple[Result, tuple[Table, ...], Figure | None]:
    from mqproof.conformance.behaviours.corpus import bounded, file_of, read, read_lines
    from mqproof.conformance.behaviours.cover import graph
    from mqproof.conformance.behaviours.drawing import draw
    from mqproof.conformance.behaviours.outcomes import FOLDER, behaviours, there_are
    from mqproof.conformance.behaviours.replay import replay
    from mqproof.conformance.subjects.stepped_targets import resolve
    from mqproof.reference.models import MODELS

    began = time.perf_counter()
    name = f"Behaviours {model}"
    command = f"mqproof behaviours {model} --target {target} --every {every}"
    make = resolve(target, model)
    if make is None:
        detail = (
            f"{target} has no steps of it; brokers of ours live through Guarantee: mqproof matrix --on impl"
        )
        result = Result("SPEC-1", name, "behaviours", Verdict.NOT_TESTED, detail=detail)
        return result, (), None
    path = file_of(model, folder)
    lines = read_lines(path)
    head: dict[str, Any] = json.loads(lines[0]) if lines else {}
    scripts = list(itertools.islice(read(lines, str(path)), 0, None, every))
    seen = replay(make, scripts)
    ends = list(behaviours(model, folder / FOLDER.name))
    ended = replay(make, ends)
    outcomes = {outcome for script in ends for outcome in script.outcomes}
    reached = f"{len(ended.outcomes):,} of {len(outcomes):,} outcomes of conditions"
    reference = MODELS[model]
    steps = graph(reference, bounded(model))
    counts = {
        "behaviours": seen.scripts,
        "states": len(seen.states),
        "states_of": head["states"],
        "steps": len(seen.steps),
        "steps_of": head["steps"],
        "actions": len(seen.actions),
        "actions_of": len(reference.actions),
        "outcomes": len(ended.outcomes),
        "outcomes_of": len(outcomes),
        "outcomes_unasked": len(ended.unasked - ended.outcomes),
        "outcomes_never": len(there_are(model)) - len(outcomes),
        "disabled_tried": sum(seen.refused.values()),
        "impossible": sum(seen.impossible.values()),
    }
    failures = [*seen.failures, *ended.failures]
    if images and target == "impl" and (recovered := _recovered(model, scripts, ends, steps)):
        counts |= recovered.counts
        failures += recovered.failures
    result = Result(
        "SPEC-1",
        name,
        "behaviours",
        Verdict.VIOLATED if failures else Verdict.HELD,
        counts,
        witnesses=tuple(_witness(failure) for failure in failures[:_WITNESSES_MAX]),
        detail=f"{100 * len(seen.steps) / head['steps']:.1f} % of the steps, {reached}",
        replay=command,
        seconds=time.perf_counter() - began,
    )
    rows = tuple(
        (
            action,
            *(str(counted[action]) for counted in (seen.actions, seen.refused, seen.impossible)),
            *(
                _outcomes_of(action, each)
                for each in (ended.outcomes, outcomes, ended.unasked - ended.outcomes)
            ),
        )
        for action in reference.actions
    )
    columns = ("action", "taken", "refused", "impossible", "outcomes", "of", "not to be asked")
    tables = (
        Table(f"{model}: actions", columns, rows),
        _outcomes_table(model, "not reached", outcomes - ended.outcomes - ended.unasked),
        _outcomes_table(model, "in no bounded model", set(there_are(model)) - outcomes),
    )
    drawn = draw(model, target, steps, seen.states, seen.steps, reached)
    return result, tables, Figure(f"{model} on {target}", drawn)


def _recovered(
    model: str, scripts: "Sequence[Script]", ends: "Sequence[Script]", steps: "Steps[Any]"
) -> "Recovered | None":
    """What starts make of the images of crashes; None for a model without any on our disks."""
    from mqproof.conformance.behaviours.corpus import bounded
    from mqproof.conformance.crash_images import member_images, pair_images, store_images

    found = store_images.Recovered()
    match model:
        case "Flush":
            states = store_images.States(steps)
            for script in scripts:
                store_images.expand(script, states, found)
        case "Replication":
            for script in scripts:
                pair_images.expand(script, found)
        case "Election":
            # Members crash in the larger configurations alone.
            for script in ends:
                member_images.expand(script, bounded(model, script.configuration).nodes, found)
        case _:
            return None
    return found


def _outcomes_of(action: str, outcomes: "Iterable[Outcome]") -> str:
    return str(sum(outcome.action == action for outcome in outcomes))


def _outcomes_table(model: str, which: str, outcomes: "Iterable[Outcome]") -> Table:
    rows = tuple((o.action, o.condition, str(o.value).lower()) for o in sorted(outcomes))
    return Table(f"{model}: outcomes of conditions, {which}", ("action", "condition", "is"), rows)


def _witness(failure: Any) -> Witness:
    from mqproof.conformance.behaviours.plain import order

    steps = failure.script.steps[: failure.at + 1]
    told = " ".join(f"{step.action}{order(step.parameters)}" for step in steps)
    return Witness(f"{failure.why}, after {told}", {"step": str(failure.at)})


def _show(report: Report, json_file: Path | None, report_file: Path | None, draw: Path | None) -> None:
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.write import write_text

    terminal.show(report)
    write_files(report, json=json_file, page=report_file)
    try:
        if draw is not None and report.figures:
            write_text(draw, report.figures[0].svg)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
