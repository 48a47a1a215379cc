"""The command `mqproof bounds`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, Report, Result, Verdict, exit_code

if TYPE_CHECKING:
    from mqproof.spec.bounds import Comparison

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _root() -> None:
    """The bounds of the models."""


@app.command()
def bounds(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All models if none is named.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Time limit for each larger model.")] = 120,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
    models_file: Annotated[
        Path | None, typer.Option("--models", metavar="FILE", help="Another models.toml, e.g. of your own.")
    ] = None,
) -> None:
    """Grow each constant of the ci models by one; report which kinds of steps and guard outcomes are new.

    A new kind is reported, not judged. A larger model that is not finished in time is unknown.

    Examples: mqproof bounds Flush --seconds 300;  mqproof bounds --models my-models.toml
    """
    from mqproof.report import json_file as as_json
    from mqproof.report import terminal
    from mqproof.report.files import expect_writable
    from mqproof.report.write import write_text
    from mqproof.spec.bounds import compare, table
    from mqproof.spec.model_file import ModelFileError, load
    from mqproof.spec.syntax import SyntaxProblemError
    from mqproof.spec.tlc.errors import TlcError

    expect_writable(json=json_file)
    try:
        models = load() if models_file is None else load(models_file)
        if unknown := [name for name in names or [] if name not in models.questions]:
            stop(f"no model {unknown[0]!r}; there are {', '.join(models.questions)}", Exit.USAGE)
        found: list[Comparison] = []
        with stages("bounds") as on_stage, terminable():
            for name in names or models.questions:
                on_stage(name)
                found += compare(models, name, seconds)
    except (ModelFileError, SyntaxProblemError) as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), error.exit_code)
    results = tuple(_result(each, models_file) for each in found)
    report = Report("mqproof bounds", results, {"seconds each": f"{seconds:g}"}, (table(found),))
    terminal.show(report)
    if json_file is not None:
        try:
            write_text(json_file, as_json.render(report))
        except OSError as error:
            stop(f"--json {json_file}: {error.strerror}", Exit.USAGE)
    raise typer.Exit(exit_code(results))


def _result(found: "Comparison", models_file: Path | None) -> Result:
    growth = found.growth
    own = ["--models", str(models_file)] if models_file else []
    return Result(
        id=f"{found.model}.bounds",
        name=f"{growth.question.name.partition(' ')[0]}: {growth.constant} {growth.before} -> {growth.after}",
        layer="tla",
        verdict=_verdict(found),
        counts={"states": found.states, "new kinds": len(found.kinds), "new outcomes": len(found.outcomes)},
        detail=found.unfinished or "; ".join([*found.kinds, *found.outcomes]),
        replay=shlex.join(["mqproof", "bounds", found.model, *own]),
    )


def _verdict(found: "Comparison") -> Verdict:
    if found.forbidden:
        return Verdict.NOT_TESTED
    return Verdict.UNKNOWN if found.unfinished else Verdict.HELD
