"""`mqproof check` and `mqproof coverage`."""

import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stop, terminable
from mqproof.report.model import Exit, Report, Verdict, exit_code, overall
from mqproof.report.running_command import beginning

if TYPE_CHECKING:
    from mqproof.spec.catalogue import Invariant
    from mqproof.spec.model_file import Models, Question
    from mqproof.spec.models import Answer
    from mqproof.spec.tlc.toolbox import Toolbox
    from mqproof.spec.tlc.trace import Trace

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

_DRAW = Annotated[
    Path | None, typer.Option("--draw", metavar="FILE.svg", help="Draw it as a sequence diagram.")
]
_MODELS = Annotated[
    Path | None, typer.Option("--models", metavar="FILE", help="Another models.toml, e.g. of your own.")
]
_JUDGE = Annotated[
    str | None,
    typer.Option(
        "--judge", metavar="PROGRAM", help="Also ask this program, the `tla` of the crate tla-checker."
    ),
]
_JSON = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")]


@app.callback()
def _root() -> None:
    """The specification: check its models, and show which layer checks which invariant."""


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All models if none is named.")
    ] = None,
    profile: Annotated[str, typer.Option(help="The runs to use: smoke, mutation, ci or deep.")] = "smoke",
    only: Annotated[str | None, typer.Option(metavar="NAME", help="Check one run, probe or mutant.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads of each TLC, instead of those in models.toml.")
    ] = None,
    properties: Annotated[
        bool, typer.Option("--properties", help="Show one row for each property as well.")
    ] = False,
    judge: _JUDGE = None,
    draw: _DRAW = None,
    json_file: _JSON = None,
    models_file: _MODELS = None,
) -> None:
    """Model-check with TLC, and show the verdict, states, depth and seconds of every run.

    A property that does not hold is shown with its counterexample, step by step. --draw FILE.svg draws the
    first counterexample as a sequence diagram, including the expected one of a mutant or a probe.

    Examples: mqproof check Flush --only FlushAckBeforeFlush --draw counterexample.svg;
    mqproof check --models my-models.toml --properties
    """
    from mqproof.report import json_file as as_json
    from mqproof.report import terminal
    from mqproof.report.files import expect_writable
    from mqproof.spec.check_screen import full_table, progress, runs_table, shown_results
    from mqproof.spec.model_file import PROFILES, ModelFileError, load
    from mqproof.spec.models import ask_all
    from mqproof.spec.tlc.errors import TlcError
    from mqproof.spec.tlc.toolbox import find_toolbox

    if profile not in PROFILES:
        stop(f"--profile {profile}: expected one of {', '.join(PROFILES)}", Exit.USAGE)
    expect_writable(json=json_file, draw=draw)
    program = _program(judge)
    began = time.monotonic()
    try:
        models = load() if models_file is None else load(models_file)
        questions = _with_workers(_chosen(models, names or [], profile, only), workers)
        toolbox = find_toolbox()
        with progress(len(questions)) as follower, terminable():
            answers = _judged(models, ask_all(models, questions, follower, toolbox), program)
    except ModelFileError as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), error.exit_code)
    facts = _facts(toolbox, "as named" if only else profile, time.monotonic() - began)
    results = tuple(result for answer in answers for result in answer.results)
    report = Report("mqproof check", results, facts, (full_table(answers),))
    _print_counterexamples(answers)
    screen = replace(report, results=shown_results(answers), tables=(runs_table(answers),))
    terminal.show(screen, rows=properties)
    if draw is not None:
        _draw_first(draw, answers)
    _write_json(json_file, as_json.render(report))
    raise typer.Exit(exit_code(report.results))


def _program(judge: str | None) -> Path | None:
    """Return the program that `--judge` names, or end the command if there is none."""
    if judge is None:
        return None
    found = shutil.which(judge)
    if found is None:
        stop(f"--judge {judge}: no such program; to install it: cargo install tla-checker", Exit.TOOL)
    return Path(found).absolute()


def _judged(models: "Models", answers: "tuple[Answer, ...]", program: Path | None) -> "tuple[Answer, ...]":
    """Return the answers with those of the other checker, if there is one."""
    from mqproof.spec import second_checker

    return answers if program is None else second_checker.judged(models, answers, program)


@app.command()
def simulate(
    name: Annotated[str, typer.Argument(metavar="MODEL", help="The model.")],
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use the constants of this run or mutant.")
    ] = None,
    depth: Annotated[int, typer.Option(min=2, help="Show at most this many states.")] = 15,
    seed: Annotated[int, typer.Option(help="Another seed gives another behaviour.")] = 1,
    draw: _DRAW = None,
    models_file: _MODELS = None,
) -> None:
    """Print a random behaviour of a model, and draw it as a sequence diagram with --draw FILE.svg.

    No property is checked. The same seed gives the same behaviour.

    Example: mqproof simulate Flush --depth 20 --seed 7 --draw behaviour.svg
    """
    from mqproof.report.files import expect_writable
    from mqproof.spec.model_file import ModelFileError, load
    from mqproof.spec.models import simulated
    from mqproof.spec.syntax import SyntaxProblemError
    from mqproof.spec.tlc.errors import TlcError
    from mqproof.spec.tlc.trace import render

    expect_writable(draw=draw)
    try:
        models = load() if models_file is None else load(models_file)
        question = _to_simulate(models, name, only)
        with terminable():
            trace = simulated(models, question, depth, seed)
    except (ModelFileError, SyntaxProblemError) as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), error.exit_code)
    print(render(trace))
    if draw is not None:
        _draw(draw, trace, question, f"{name}: a behaviour of {question.name}, seed {seed}")


@app.command()
def coverage(
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="GLOB", help="Show these invariants in detail; once for each."),
    ] = None,
    layers: Annotated[
        list[str] | None, typer.Option("--layer", metavar="LAYER", help="Show this layer; once for each.")
    ] = None,
    only_open: Annotated[bool, typer.Option("--open", help="Show only what is not checked yet.")] = False,
    with_details: Annotated[
        bool, typer.Option("--details", help="Show statements, checks, mutants and reasons.")
    ] = False,
    json_file: _JSON = None,
) -> None:
    """Show which layer checks which invariant, which cannot, and which checks are missing.

    Examples: mqproof coverage;  mqproof coverage --id FLUSH-1;  mqproof coverage --layer fuzz --open
    """
    from mqproof.report import terminal
    from mqproof.spec.catalogue import LAYERS, CatalogueError, catalogue
    from mqproof.spec.coverage import LEGEND, as_json, details, matrix, totals

    if unknown := [layer for layer in layers or () if layer not in LAYERS]:
        stop(f"--layer {unknown[0]}: expected one of {', '.join(LAYERS)}", Exit.USAGE)
    shown = tuple(layer for layer in LAYERS if layer in (layers or LAYERS))
    try:
        invariants = _matching(tuple(catalogue().values()), ids or ())
    except (CatalogueError, OSError) as error:
        stop(f"{error}", Exit.USAGE)
    if only_open:
        invariants = tuple(each for each in invariants if "open" in map(each.cell, shown))
    lines = list(matrix(invariants, shown)) if invariants else []
    if ids or with_details:
        lines = [line for each in invariants for line in (*details(each, shown), "")]
    elif lines:
        lines += ["", *LEGEND]
    counts = ", ".join(f"{number} {what}" for what, number in totals(invariants, shown).items())
    lines.append(f"{len(invariants)} invariant{'' if len(invariants) == 1 else 's'}: {counts}")
    terminal.write("\n".join(lines) + "\n")
    _write_json(json_file, json.dumps(as_json(invariants, shown), indent=1) + "\n")


def _matching(invariants: "tuple[Invariant, ...]", globs: Sequence[str]) -> "tuple[Invariant, ...]":
    """Return the invariants whose id or name matches one of the patterns; all if there is no pattern."""
    from fnmatch import fnmatchcase

    def fits(invariant: "Invariant", glob: str) -> bool:
        return fnmatchcase(invariant.id, glob) or fnmatchcase(invariant.name, glob)

    for glob in globs:
        if not any(fits(each, glob) for each in invariants):
            stop(f"--id {glob}: no invariant has such an id or name", Exit.USAGE)
    return tuple(each for each in invariants if not globs or any(fits(each, glob) for glob in globs))


def _with_workers(questions: "tuple[Question, ...]", workers: int | None) -> "tuple[Question, ...]":
    if workers is None:
        return questions
    return tuple(replace(question, workers=workers) for question in questions)


def _facts(toolbox: "Toolbox", profile: str, seconds: float) -> dict[str, str]:
    return {
        "profile": profile,
        "java": f"{toolbox.java.major} from the {toolbox.java.origin}",
        "tla2tools": str(toolbox.jar),
        "seconds": f"{seconds:.1f}",
    }


def _write_json(file: Path | None, text: str) -> None:
    from mqproof.report.write import write_text

    if file is None:
        return
    try:
        write_text(file, text)
    except OSError as error:
        stop(f"--json {file}: {error.strerror}", Exit.USAGE)


def _to_simulate(models: "Models", name: str, only: str | None) -> "Question":
    """Return the named run; without a name the smoke run, or the model's first run if it has none."""
    if only or any("smoke" in question.profiles for question in models.questions.get(name, ())):
        return _chosen(models, [name], "smoke", only)[0]
    return next(iter(models.questions.get(name, ())), None) or _chosen(models, [name], "smoke", None)[0]


def _chosen(models: "Models", names: list[str], profile: str, only: str | None) -> "tuple[Question, ...]":
    if unknown := [name for name in names if name not in models.questions]:
        stop(f"no model {unknown[0]!r}; there are {', '.join(models.questions)}", Exit.USAGE)
    of_models = [q for name in names or models.questions for q in models.questions[name]]
    chosen = tuple(q for q in of_models if (q.name == only if only else profile in q.profiles))
    if only:
        chosen += tuple(q.probe(only) for q in of_models if only in q.probes)
    if not chosen:
        wanted = f"--only {only}" if only else f"--profile {profile}"
        stop(f"{wanted}: no such run; there are {', '.join(q.name for q in of_models)}", Exit.USAGE)
    return chosen


def _draw_first(file: Path, answers: "tuple[Answer, ...]") -> None:
    """Draw the first counterexample of an unexpected violation, or else of an expected one."""
    found = [answer for answer in answers if answer.trace is not None]
    unexpected = [answer for answer in found if overall(answer.results) is Verdict.VIOLATED]
    if not found:
        message = "--draw: nothing was violated; mqproof simulate draws a behaviour"
        print(f"{beginning()}: {message}", file=sys.stderr)
        return
    answer = (unexpected or found)[0]
    assert answer.trace is not None
    question = answer.question
    violated = question.violates or next(r.name for r in answer.results if r.verdict is Verdict.VIOLATED)
    _draw(file, answer.trace, question, f"{question.model}: {question.name}", violated)


def _draw(file: Path, trace: "Trace", question: "Question", title: str, violated: str = "") -> None:
    from mqproof.report.sequence import render
    from mqproof.report.write import write_text
    from mqproof.spec.catalogue import catalogue
    from mqproof.spec.drawing import draw
    from mqproof.spec.drawing_tables import table
    from mqproof.spec.model_file import Kind

    statements = {invariant.name: invariant.statement for invariant in catalogue().values()}
    why = f"What must hold: {statements[violated]}" if violated in statements else ""
    if question.kind in (Kind.PROBES, Kind.ACTION_PROBE):
        why = "As it must be: this run shows that the situation does happen."
    diagram = draw(trace, title, table(question.model), violated, why)
    try:
        write_text(file, render(diagram))
    except OSError as error:
        stop(f"--draw {file}: {error.strerror}", Exit.USAGE)
    print(f"drawn: {file}", file=sys.stderr)


def _print_counterexamples(answers: "tuple[Answer, ...]") -> None:
    from mqproof.spec.tlc.trace import render

    for answer in answers:
        if answer.trace is not None and overall(answer.results) is Verdict.VIOLATED:
            print(f"Counterexample of {answer.question.model} {answer.question.name}")
            print(render(answer.trace))
            print()
