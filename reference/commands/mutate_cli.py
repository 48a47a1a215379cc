"""The command `mqproof mutate`."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, Report, Result, Table, Verdict, exit_code
from mqproof.report.running_command import beginning

if TYPE_CHECKING:
    from mqproof.spec.model_file import Models
    from mqproof.spec.mutation.score import Score

app = typer.Typer(add_completion=False, no_args_is_help=False, pretty_exceptions_enable=False)

_NO_REFERENCE = (
    "these models have no reference model: state graphs are not compared, so only "
    "properties and probes can detect a mutant"
)
_PROFILES = {"mutation": ("mutation",), "ci": ("mutation", "ci")}


@app.callback()
def _root() -> None:
    """Systematic mutation of the models."""


@app.command()
def mutate(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="All models if none is named.")
    ] = None,
    each: Annotated[
        int,
        typer.Option(min=0, help="Make at most this many mutants of a kind for each operator; 0 means all."),
    ] = 0,
    kind: Annotated[str | None, typer.Option(help="Make only mutants of this kind, e.g. guard.")] = None,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Make only mutants whose id contains this text.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="mutation, or ci: larger models check the surviving mutants.")
    ] = "mutation",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore the cached judgements in build/mutation.")
    ] = False,
    record: Annotated[bool, typer.Option("--record", help="Write spec/mutation_scores.json.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
    models_file: Annotated[
        Path | None, typer.Option("--models", metavar="FILE", help="Another models.toml, e.g. of your own.")
    ] = None,
) -> None:
    """Break every action in every small way; report what the properties detect, and what only equiv detects.

    Judgements are kept in build/mutation, so that a stopped campaign continues. A mutant that nothing notices
    needs an explanation in survivors.toml beside models.toml.

    Exit codes: 0 each such mutant is explained; 1 one is not, or an explained one is noticed; 2 wrong use;
    3 TLC ran out of time or memory; 4 Java or TLC is missing or failed.

    Models of your own have no reference model: there, properties and probes judge alone, and state graphs are
    not compared.

    Examples: mqproof mutate Flush --kind guard;  mqproof mutate --models my-models.toml
    """
    from mqproof.report import terminal
    from mqproof.report.files import expect_writable
    from mqproof.spec.mutation import score

    expect_writable(json=json_file)
    is_whole = kind is None and only is None
    _check_models(names, models_file, record=record)
    _check_options(kind, profile, record=record, is_whole=is_whole)
    models = _models(models_file)
    chosen = _chosen(models, names, models_file)
    scores, reasons = _judged(models, chosen, kind, only, each, profile, fresh)
    if not any(one.judgements for one in scores):
        stop("no such mutants", Exit.USAGE)
    reasons = _applicable(reasons, scores, all_judged=is_whole and not each, profile=profile)
    report = _report(scores, reasons, models_file, profile)
    terminal.show(report)
    if record:
        score.record(scores)
    if json_file is not None:
        _write(json_file, report)
    raise typer.Exit(exit_code(report.results))


def _check_models(names: list[str] | None, models_file: Path | None, *, record: bool) -> None:
    from mqproof.reference.models import expect_models

    if models_file is None:
        expect_models(names or ())
    elif record:
        stop("--record is not available with --models", Exit.USAGE)


def _check_options(kind: str | None, profile: str, *, record: bool, is_whole: bool) -> None:
    from mqproof.spec.checkout import expect_checkout
    from mqproof.spec.mutation.operators import Kind

    if profile not in _PROFILES:
        stop(f"--profile {profile}: expected mutation or ci", Exit.USAGE)
    if kind is not None and kind not in list(Kind):
        stop(f"--kind {kind}: expected one of {', '.join(Kind)}", Exit.USAGE)
    if record and not is_whole:
        stop("--record: expected without --kind and --only; it records a whole campaign", Exit.USAGE)
    if record:
        expect_checkout("--record")


def _models(models_file: Path | None) -> "Models":
    """Load the models, and say what is not available for models of the user's own."""
    from mqproof.spec.model_file import ModelFileError, load

    if models_file is None:
        return load()
    try:
        models = load(models_file)
    except ModelFileError as error:
        stop(str(error), Exit.USAGE)
    print(f"{beginning()}: {_NO_REFERENCE}", file=sys.stderr)
    return models


def _chosen(models: "Models", names: list[str] | None, models_file: Path | None) -> list[str]:
    """Return the models to break; all of them when none is named."""
    from mqproof.reference.models import MODELS

    chosen = names or list(MODELS if models_file is None else models.questions)
    if unknown := [name for name in chosen if name not in models.questions]:
        stop(f"no model {unknown[0]!r}; there are {', '.join(models.questions)}", Exit.USAGE)
    return chosen


def _judged(
    models: "Models",
    chosen: list[str],
    kind: str | None,
    only: str | None,
    each: int,
    profile: str,
    fresh: bool,
) -> "tuple[list[Score], dict[str, str]]":
    """Judge the mutants of the models; return the scores, and the recorded reasons of the survivors."""
    from mqproof.spec.model_file import ModelFileError
    from mqproof.spec.mutation import score
    from mqproof.spec.syntax import SyntaxProblemError
    from mqproof.spec.tlc.errors import TlcError

    try:
        with terminable():
            scores = [_score(models, name, kind, only, each, profile, fresh) for name in chosen]
        reasons = score.survivors(models.file.with_name("survivors.toml"))
    except (ModelFileError, SyntaxProblemError, score.SurvivorsError) as error:
        stop(str(error), Exit.USAGE)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    except TlcError as error:
        stop(str(error), error.exit_code)
    return scores, {mutant: why for mutant, why in reasons.items() if mutant.split(".")[0] in chosen}


def _applicable(
    reasons: dict[str, str], scores: "list[Score]", *, all_judged: bool, profile: str
) -> dict[str, str]:
    """Return the reasons for survivors that this campaign can confirm, because it judged their mutants."""
    from mqproof.spec.mutation.judge import Noticed

    judgements = [judgement for one in scores for judgement in one.judgements]
    if not all_judged:
        judged = {judgement.mutant for judgement in judgements}
        reasons = {mutant: why for mutant, why in reasons.items() if mutant in judged}
    if profile == "ci":
        # The reasons are of the smaller models; what only larger models notice needs none.
        noticed = {judgement.mutant for judgement in judgements if judgement.noticed is not Noticed.NOT}
        reasons = {mutant: why for mutant, why in reasons.items() if mutant not in noticed}
    return reasons


def _report(scores: "list[Score]", reasons: dict[str, str], models_file: Path | None, profile: str) -> Report:
    results = tuple(_result(one, reasons, models_file) for one in scores)
    tables = tuple(_tables(scores, compared=models_file is None))
    return Report("mqproof mutate", results, {"profile": profile}, tables)


def _write(path: Path, report: Report) -> None:
    from mqproof.report import json_file
    from mqproof.report.write import write_text

    try:
        write_text(path, json_file.render(report))
    except OSError as error:
        stop(f"--json {path}: {error}", Exit.USAGE)


def _score(
    models: "Models", name: str, kind: str | None, only: str | None, each: int, profile: str, fresh: bool
) -> "Score":
    from mqproof.reference.equivalence import mutate as with_reference
    from mqproof.reference.models import MODELS
    from mqproof.spec.model_file import MODELS_FILE
    from mqproof.spec.mutation import own_model
    from mqproof.spec.mutation.operators import mutants
    from mqproof.spec.mutation.score import Score, campaign

    if models.file == MODELS_FILE:
        asked = with_reference.subject(models, MODELS[name], _PROFILES[profile])
        roots = with_reference.roots(models, name)
    else:
        asked = own_model.subject(models, name, _PROFILES[profile])
        roots = own_model.roots(models, name)
    made = [
        mutant
        for mutant in mutants(asked.text, *roots)
        if kind in (None, mutant.kind.value)
        and (only or "") in mutant.id
        and (not each or mutant.number <= each)
    ]
    with stages(f"mutate {name}") as on_stage:
        judgements = campaign(
            asked,
            made,
            fresh=fresh,
            on_judged=lambda number, judgement: on_stage(
                f"{number}/{len(made)} {judgement.mutant} {judgement.noticed} {judgement.by}"
            ),
        )
    return Score(name, judgements)


def _result(score: "Score", reasons: dict[str, str], models_file: Path | None) -> Result:
    from mqproof.spec.mutation.score import unexplained

    mine = {mutant: why for mutant, why in reasons.items() if mutant.startswith(f"{score.model}.")}
    wrong = unexplained(score.judgements, mine)
    own = ["--models", str(models_file)] if models_file else []
    return Result(
        id=f"{score.model}.mutants" if models_file else "SPEC-2",
        name=f"{score.model}: every mutant is detected or explained",
        layer="tla",
        verdict=Verdict.VIOLATED if wrong else Verdict.HELD,
        counts={"mutants": len(score.judgements), "behave otherwise": score.different},
        detail="; ".join(wrong),
        replay=shlex.join(["mqproof", "mutate", score.model, *own]),
    )


def _tables(scores: "list[Score]", *, compared: bool) -> Iterator[Table]:
    from mqproof.spec.mutation.judge import Noticed
    from mqproof.spec.mutation.score import kinds, table

    if compared:
        yield table(scores)
        yield kinds(scores)
    broken = (Noticed.PROPERTY, Noticed.EVALUATION)
    rows = tuple(
        (judgement.mutant, judgement.noticed.value, judgement.by, judgement.run)
        for score in scores
        for judgement in score.judgements
        if judgement.noticed not in broken
    )
    yield Table("Mutants that no property detects", ("mutant", "detected by", "how", "in"), rows)
