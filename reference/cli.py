"""`mqproof equiv` and `mqproof prove`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from report.console import stages, stop
from report.model import Exit, Report, Result, Verdict, Witness, exit_code
from spec.catalogue import id_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reference.equiv import Equivalence
    from reference.explorer import Step
    from spec.model_file import Models, Question

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _root() -> None:
    """The reference: the executable model that is equal to TLC's."""


@app.command()
def equiv(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All when none is named.")
    ] = None,
    profile: Annotated[str, typer.Option(help="smoke or ci: which bounded models.")] = "ci",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Show that the reference's states and labelled steps are exactly those of TLC's state graph.

    A difference is printed with the shortest path to the first state in which the two part.

    Example: mqproof equiv Flush --profile smoke
    """
    from reference.models import MODELS
    from report import json_file as as_json
    from report import terminal
    from report.write import write_text
    from spec.model_file import ModelFileError
    from spec.tlc.errors import TlcError

    if profile not in ("smoke", "ci"):
        stop(f"--profile {profile}: expected smoke or ci", Exit.USAGE)
    if unknown := [name for name in names or [] if name not in MODELS]:
        stop(f"no reference model {unknown[0]!r}; there are {', '.join(MODELS)}", Exit.USAGE)
    try:
        results = tuple(result for name in names or MODELS for result in _results(name, profile))
    except ModelFileError as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), Exit.TOOL)
    report = Report("mqproof equiv", results, {"profile": profile})
    terminal.show(report)
    if json_file is not None:
        write_text(json_file, as_json.render(report))
    raise typer.Exit(exit_code(results))


@app.command()
def prove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All when none is named.")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="The broken variants instead: each proof must fail.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Prove invariants inductive with Z3, and the contracts of pure functions with CrossHair.

    Prints what each proof grants. A proof that fails shows a counterexample to induction: a small state that
    the invariant allows, and the step that breaks it. What the solver cannot decide is unknown, exit code 3.

    Example: mqproof prove Flush;  mqproof prove Flush --mutants
    """
    from reference.proofs import command
    from report import json_file as as_json
    from report import terminal
    from report.write import write_text

    if unknown := [name for name in names or [] if name not in command.names()]:
        stop(f"nothing to prove is called {unknown[0]!r}; there are {', '.join(command.names())}", Exit.USAGE)
    with stages("prove") as on_stage:
        report = command.report(names or (), mutants, on_stage)
    terminal.show(report)
    if json_file is not None:
        write_text(json_file, as_json.render(report))
    raise typer.Exit(exit_code(report.results))


def _questions(models: "Models", model: str, profile: str) -> "list[Question]":
    """The model's runs, without those that only ask something else of the same constants."""
    from spec.model_file import Kind

    distinct: dict[tuple[str, ...], Question] = {}
    for question in models.questions[model]:
        if question.kind is Kind.CHECK and profile in question.profiles:
            distinct.setdefault(question.config.of("CONSTANT"), question)
    return list(distinct.values())


def _results(model: str, profile: str) -> "Iterator[Result]":
    """A result a bounded model for the comparison, and one an invariant over all of them."""
    from reference.equiv import compare
    from reference.models import MODELS
    from spec.model_file import load

    models = load()
    compared: list[Equivalence[Any]] = []
    for question in _questions(models, model, profile):
        started = time.perf_counter()
        with stages(f"equiv {model} {question.name}") as on_stage:
            equivalence = compare(
                MODELS[model],
                question.module,
                question.config.text(),
                models.libraries,
                next_name="MCNext",
                on_stage=on_stage,
            )
        compared.append(equivalence)
        yield _equal(question, equivalence, time.perf_counter() - started)
    for name in (*MODELS[model].invariants, *MODELS[model].step_invariants):
        yield _invariant(model, name, compared)


def _equal(question: "Question", equivalence: "Equivalence[Any]", seconds: float) -> Result:
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
        witnesses = (Witness(f"after {_path(difference.path)}", values),)
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
    violations = [e.violation for e in compared if e.violation and e.violation.invariant == name]
    return Result(
        id=id_of(model, name),
        name=name,
        layer="reference",
        verdict=Verdict.VIOLATED if violations else Verdict.HELD,
        counts={"states": sum(equivalence.states for equivalence in compared)},
        witnesses=tuple(Witness(_path(violation.path)) for violation in violations),
        replay=f"mqproof equiv {model}",
    )


def _path(path: "tuple[Step[Any], ...]") -> str:
    return " -> ".join(step.action + (str(step.parameters) if step.parameters else "") for step in path)
