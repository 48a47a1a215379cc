"""`mqproof equiv`, `mqproof explore` and `mqproof prove`."""

import os
import sys
import time
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from mqproof.report.console import is_quiet, stages, stop, terminable
from mqproof.report.model import Exit, Report, Result, Table, Verdict, Witness, exit_code
from mqproof.report.running_command import beginning
from mqproof.spec.catalogue import id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mqproof.reference.equivalence.equiv import Equivalence
    from mqproof.reference.explorer.infinite_runs import Judged
    from mqproof.reference.explorer.search import OnLevel
    from mqproof.reference.explorer.survey import Explore, Explored
    from mqproof.spec.model_file import Question

_CLEAR: Final = "\r\x1b[K"

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _root() -> None:
    """The reference: the executable model that is equal to TLC's."""


@app.command()
def equiv(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All if none is named.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="The bounded models to use: smoke (the first of each), mutation or ci.")
    ] = "ci",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Show that the reference's states and labelled steps are exactly those of TLC's state graph.

    A difference is printed with the shortest path to the first state in which the two part.

    Example: mqproof equiv Flush --profile smoke
    """
    from mqproof.reference.models import MODELS, expect_models
    from mqproof.spec.model_file import ModelFileError
    from mqproof.spec.tlc.errors import TlcError

    if profile not in ("smoke", "mutation", "ci"):
        stop(f"--profile {profile}: expected smoke, mutation or ci", Exit.USAGE)
    expect_models(names or ())
    try:
        results = tuple(result for name in names or MODELS for result in _results(name, profile))
    except ModelFileError as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), error.exit_code)
    report = Report("mqproof equiv", results, {"profile": profile})
    _finish(report, json_file)


@app.command()
def explore(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All if none is named.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="The bounded models to use: smoke, mutation, ci or deep.")
    ] = "smoke",
    only: Annotated[str | None, typer.Option(metavar="RUN", help="One bounded model by its name.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; with --memory, threads.")] = 1,
    spark: Annotated[
        str | None, typer.Option("--master", metavar="MASTER", help="Use Spark, e.g. on local[2].")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Compare 64-bit fingerprints, in about this much memory, as in 4GiB; files hold the rest.",
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where --memory makes its folder of files.")
    ] = None,
    states_max: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Give up a bounded model beyond this many states.")
    ] = None,
    actions: Annotated[bool, typer.Option(help="Also show how often each action was taken.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Walk all reachable states of the reference, judge every invariant, and compare the size with TLC's.

    Liveness is judged where TLC judges it: does an infinite run exist that is fair and violates the property?
    A violation is printed with a shortest path to it; of liveness, with a path and the cycle after it.
    A bounded model that is too large is inconclusive.

    With --memory it is fastest; the report then has the probability that two fingerprints collided.

    Examples: mqproof explore Flush --profile ci --workers 2;  mqproof explore Flush --master 'local[2]';
    mqproof explore Guarantee --only MCGuarantee_deep --memory 2GiB --folder /var/tmp
    """
    from mqproof.reference.models import expect_models

    _expect_one_explorer(workers, spark, memory, folder)
    expect_models(names or ())
    chosen = _chosen(names or (), profile, only)
    which = f"--only {only}" if only else f"--profile {profile}"
    with terminable(), _explorer(workers, spark, memory, folder) as explorer:
        done, results = _explored(chosen, which, explorer, states_max)
    judged, liveness = _judged(names or (), profile, only, which, states_max)
    results += liveness
    _print_problems(
        [(e.question.name, e.problem) for e in done], [(j.question.name, j.problem) for j in judged]
    )
    by = f"Spark on {spark}" if spark else f"{workers} process" + "es" * (workers > 1)
    if memory:
        by = f"{workers} thread{'s' * (workers > 1)}, {memory}"
    options = {"profile": "as named" if only else profile, "by": by}
    _finish(Report("mqproof explore", tuple(results), options, _tables(done, judged, actions)), json_file)


def _tables(done: "list[Explored]", judged: "list[Judged]", actions: bool) -> tuple[Table, ...]:
    from mqproof.reference.explorer import infinite_runs, survey

    tables = [survey.rows(done)]
    tables += [infinite_runs.rows(judged)] if judged else []
    tables += [table] if (table := survey.fingerprints(done)) else []
    tables += [survey.steps_taken(done)] if actions else []
    return tuple(tables)


def _finish(report: Report, json_file: Path | None) -> NoReturn:
    """Show a report, write it, and end the command with its exit code."""
    from mqproof.report import json_file as as_json
    from mqproof.report import terminal
    from mqproof.report.write import write_text

    terminal.show(report)
    if json_file is not None:
        write_text(json_file, as_json.render(report))
    raise typer.Exit(exit_code(report.results))


def _expect_one_explorer(workers: int, spark: str | None, memory: str | None, folder: Path | None) -> None:
    """End the command if options of different explorers are combined."""
    if workers > 1 and spark is not None:
        stop("--workers sets the number of local processes; expected without --master", Exit.USAGE)
    if spark is not None and memory is not None:
        stop("--memory bounds an exploration in this process; expected without --master", Exit.USAGE)
    if folder is not None and memory is None:
        stop("--folder is where --memory makes its files; expected with --memory", Exit.USAGE)


def _chosen(names: "Iterable[str]", profile: str, only: str | None) -> "dict[str, list[Question]]":
    """Return the bounded models to explore, by model. Ends the command when there is none."""
    from mqproof.reference.explorer import survey
    from mqproof.reference.models import MODELS
    from mqproof.spec.model_file import PROFILES, ModelFileError, load

    if profile not in PROFILES:
        stop(f"--profile {profile}: expected one of {', '.join(PROFILES)}", Exit.USAGE)
    try:
        models = load()
    except ModelFileError as error:
        stop(str(error), Exit.USAGE)
    chosen = {
        name: [
            question
            for each in (PROFILES if only else (profile,))
            for question in survey.bounded_models(models, name, each)
            if question.violates is None
        ]
        for name in names or MODELS
    }
    if only is not None:
        chosen = {name: [q for q in found if q.name == only][:1] for name, found in chosen.items()}
    if not any(chosen.values()):
        which = f"--only {only}" if only else f"--profile {profile}"
        stop(f"{which}: no such bounded model of {', '.join(chosen)}", Exit.USAGE)
    return chosen


def _explored(
    chosen: "dict[str, list[Question]]", which: str, explorer: "Explore", states_max: int | None
) -> "tuple[list[Explored], list[Result]]":
    """Explore the bounded models one after the other; return them and the results of their invariants."""
    from mqproof.reference.explorer import survey
    from mqproof.reference.models import MODELS

    done: list[Explored] = []
    results: list[Result] = []
    for name, questions in chosen.items():
        of_model = [
            survey.explored(MODELS[name], question, explorer, states_max, _on_level(name, question.name))
            for question in questions
        ]
        if of_model:
            results += survey.results(MODELS[name], of_model, which)
        done += of_model
    _clear()
    return done, results


def _judged(
    names: "Iterable[str]", profile: str, only: str | None, which: str, states_max: int | None
) -> "tuple[list[Judged], list[Result]]":
    """Judge liveness in this process: graphs with liveness are small, and a cycle needs all steps."""
    from mqproof.reference.explorer import infinite_runs
    from mqproof.reference.models import MODELS
    from mqproof.spec.model_file import load

    models = load()
    done: list[Judged] = []
    results: list[Result] = []
    for name in names or MODELS:
        fair = infinite_runs.fair_models(models, MODELS[name], None if only else profile)
        of_model = [
            judged
            for question in fair
            if only is None or question.name == only
            for judged in infinite_runs.judged(
                MODELS[name], question, states_max, _on_level(name, question.name)
            )
        ]
        results += infinite_runs.results(name, of_model, f"mqproof explore {name} {which}")
        done += of_model
    _clear()
    return done, results


def _print_problems(*problems: "list[tuple[str, str]]") -> None:
    """Print each problem of a bounded model once."""
    for run, problem in dict.fromkeys(chain(*problems)):
        if problem:
            print(f"{beginning()}: {run}: {problem}", file=sys.stderr)


def _clear() -> None:
    if sys.stderr.isatty():
        print(_CLEAR, end="", file=sys.stderr, flush=True)


@contextmanager
def _explorer(
    workers: int, spark: str | None, memory: str | None, folder: Path | None
) -> "Iterator[Explore]":
    """Yield the explorer: with this number of processes, on Spark if a master is given, or in this memory."""
    from mqproof.reference.explorer import parallel

    if memory is not None:
        yield _in_memory(memory, folder, workers)
        return
    if spark is None:
        yield partial(parallel.explore, workers=workers)
        return
    from mqproof.reference.explorer import on_spark
    from mqproof.spec.spark import MASTER, SessionError

    if not MASTER.fullmatch(spark):
        stop(f"--master {spark}: expected a master such as local[2] or spark://HOST:PORT", Exit.USAGE)
    try:
        with on_spark.opened(spark) as session:
            yield partial(on_spark.explore, spark=session)
    except SessionError as error:
        stop(str(error), Exit.TOOL)


def _in_memory(memory: str, folder: Path | None, threads: int) -> "Explore":
    """Return the explorer whose memory is bounded."""
    from mqproof.reference.explorer.memory import BOUND_MIN, size_in_bytes

    try:
        size = size_in_bytes(memory)
    except ValueError as error:
        stop(f"--memory {error}", Exit.USAGE)
    if size < BOUND_MIN:
        stop(f"--memory {memory}: expected at least {BOUND_MIN // 2**20}MiB", Exit.USAGE)
    if folder is not None and not os.access(folder, os.W_OK | os.X_OK):
        stop(f"--folder {folder}: expected a folder that can be written", Exit.USAGE)
    from mqproof.reference.explorer.spilling import explorer

    return partial(explorer.explore, memory_bytes=size, folder=folder, threads=threads)


def _on_level(model: str, name: str) -> "OnLevel":
    """Shows each level on a terminal, over the last one. Piped, only the result is printed."""
    if not sys.stderr.isatty() or is_quiet():
        return lambda _depth, _states: None

    def show_progress(depth: int, states: int) -> None:
        # A thread that draws, such as rich's, must not be there when processes are forked.
        line = f"{_CLEAR}{model} {name}: depth {depth}, {states} states"
        print(line, end="\r", file=sys.stderr, flush=True)

    return show_progress


@app.command()
def prove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All if none is named.")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Prove the broken variants instead; each proof must fail.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Prove invariants inductive with Z3, and the contracts of pure functions with CrossHair.

    A NAME is a model with a proof (Election with its number of nodes) or a module whose functions have
    contracts; a wrong name prints all of them. The report lists the assumptions of each proof. A proof that
    fails shows a counterexample to induction: a small state that the invariant allows, and the step that
    breaks it. If the solver cannot decide, the verdict is unknown.

    Exit codes: 0 all proved; 1 a proof or a contract fails; 2 wrong use; 3 the solver cannot decide.

    Examples: mqproof prove Flush;  mqproof prove Replication --mutants
    """
    from mqproof.reference.proofs import selection

    if unknown := [name for name in names or [] if name not in selection.names()]:
        stop(f"no proof {unknown[0]!r}; there are {', '.join(selection.names())}", Exit.USAGE)
    with stages("prove") as on_stage:
        report = selection.report(names or (), mutants, on_stage)
    _finish(report, json_file)


def _results(model: str, profile: str) -> "Iterator[Result]":
    """Yield one result for the comparison of each bounded model, then one for each invariant over all."""
    from mqproof.reference.equivalence.equiv import compare
    from mqproof.reference.explorer.survey import bounded_models
    from mqproof.reference.models import MODELS
    from mqproof.spec.model_file import load

    models = load()
    compared: list[Equivalence[Any]] = []
    bounded = bounded_models(models, model, profile)
    for question in bounded[:1] if profile == "smoke" else bounded:
        started = time.perf_counter()
        with stages(f"equiv {model} {question.name}") as on_stage:
            equivalence = compare(
                MODELS[model],
                question.module,
                question.config.text(),
                models.libraries,
                next_name="MCNext",
                seconds_max=question.seconds_max,
                on_stage=on_stage,
            )
        compared.append(equivalence)
        yield _equal(question, equivalence, time.perf_counter() - started)
    for name in (*MODELS[model].invariants, *MODELS[model].step_invariants):
        yield _invariant(model, name, compared)


def _equal(question: "Question", equivalence: "Equivalence[Any]", seconds: float) -> Result:
    from mqproof.reference.explorer.search import path_text

    counts = {
        "states": equivalence.states,
        "steps": equivalence.steps,
        "disabled": equivalence.disabled,
    }
    difference = equivalence.difference
    witnesses: tuple[Witness, ...] = ()
    if difference is not None:
        sides = {"only TLC": difference.only_tlc, "only the reference": difference.only_reference}
        values = {side: "; ".join(steps) for side, steps in sides.items()}
        witnesses = (Witness(f"after {path_text(difference.path)}", values),)
    return Result(
        id="SPEC-2",
        name=f"{equivalence.model} {question.name}",
        layer="reference",
        verdict=Verdict.HELD if difference is None else Verdict.VIOLATED,
        counts=counts,
        witnesses=witnesses,
        detail="" if difference is None else "the reference is not TLC's state graph",
        replay=f"mqproof equiv {equivalence.model}",
        seconds=seconds,
    )


def _invariant(model: str, name: str, compared: "list[Equivalence[Any]]") -> Result:
    from mqproof.reference.explorer.search import path_text

    violations = [e.violation for e in compared if e.violation and e.violation.invariant == name]
    return Result(
        id=id_of(model, name),
        name=name,
        layer="reference",
        verdict=Verdict.VIOLATED if violations else Verdict.HELD,
        counts={"states": sum(equivalence.states for equivalence in compared)},
        witnesses=tuple(Witness(path_text(violation.path)) for violation in violations),
        replay=f"mqproof equiv {model}",
    )
