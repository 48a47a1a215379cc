"""`mqproof mutate`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, Report, Result, Table, Verdict, exit_code

if TYPE_CHECKING:
    from mqproof.spec.model_file import Models
    from mqproof.spec.mutation.score import Score

app = typer.Typer(add_completion=False, no_args_is_help=False, pretty_exceptions_enable=False)

_PROFILES = {"mutation": ("mutation",), "ci": ("mutation", "ci")}


@app.callback()
def _root() -> None:
    """Systematic mutation of the models."""


@app.command()
def mutate(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="All when none is named.")
    ] = None,
    each: Annotated[
        int, typer.Option(min=0, help="At most so many of a kind for each operator; 0 is all of them.")
    ] = 0,
    kind: Annotated[str | None, typer.Option(help="One kind of mutants only, e.g. guard.")] = None,
    only: Annotated[str | None, typer.Option(metavar="TEXT", help="Mutants with this in their id.")] = None,
    profile: Annotated[
        str, typer.Option(help="mutation; or ci: larger models judge what nothing noticed.")
    ] = "mutation",
    fresh: Annotated[bool, typer.Option("--fresh", help="Judge again what is remembered.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Write spec/mutation_scores.json.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
) -> None:
    """Break every action in every small way; report what the properties notice, and what only equiv does.

    Exit 1 when a mutant that nothing notices is not explained in spec/survivors.toml, or an explained one is
    noticed. What was judged is remembered in build/mutation, so that a stopped campaign goes on.

    Example: mqproof mutate Flush --kind guard
    """
    from mqproof.reference.models import MODELS, expect_models
    from mqproof.report import terminal
    from mqproof.spec.mutation import score

    is_whole = kind is None and only is None
    _check_options(kind, profile, record=record, is_whole=is_whole)
    expect_models(names or ())
    chosen = names or list(MODELS)
    scores, reasons = _judged(chosen, kind, only, each, profile, fresh)
    if not any(one.judgements for one in scores):
        stop("no such mutants", Exit.USAGE)
    reasons = _applicable(reasons, scores, all_judged=is_whole and not each, profile=profile)
    results = tuple(_result(one, reasons) for one in scores)
    report = Report("mqproof mutate", results, {"profile": profile}, tuple(_tables(scores)))
    terminal.show(report)
    if record:
        score.record(scores)
    if json_file is not None:
        _write(json_file, report)
    raise typer.Exit(exit_code(results))


def _check_options(kind: str | None, profile: str, *, record: bool, is_whole: bool) -> None:
    from mqproof.spec.checkout import expect_checkout
    from mqproof.spec.mutation.operators import Kind

    if profile not in _PROFILES:
        stop(f"--profile {profile}: expected mutation or ci", Exit.USAGE)
    if kind is not None and kind not in list(Kind):
        stop(f"--kind {kind}: expected one of {', '.join(Kind)}", Exit.USAGE)
    if record and not is_whole:
        stop("--record: a whole campaign is recorded, without --kind and --only", Exit.USAGE)
    if record:
        expect_checkout("--record")


def _judged(
    chosen: list[str], kind: str | None, only: str | None, each: int, profile: str, fresh: bool
) -> "tuple[list[Score], dict[str, str]]":
    """Judge the mutants of the models; return the scores, and the recorded reasons of the survivors."""
    from mqproof.spec.model_file import ModelFileError, load
    from mqproof.spec.mutation import score
    from mqproof.spec.syntax import SyntaxProblemError
    from mqproof.spec.tlc.errors import TlcError

    try:
        models = load()
        with terminable():
            scores = [_score(models, name, kind, only, each, profile, fresh) for name in chosen]
        reasons = score.survivors()
    except (ModelFileError, SyntaxProblemError, score.SurvivorsError) as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), error.exit_code)
    return scores, {mutant: why for mutant, why in reasons.items() if mutant.split(".")[0] in chosen}


def _applicable(
    reasons: dict[str, str], scores: "list[Score]", *, all_judged: bool, profile: str
) -> dict[str, str]:
    """Return the reasons that this campaign can confirm."""
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
    from mqproof.reference.models import MODELS
    from mqproof.reference.mutate import roots, subject
    from mqproof.spec.mutation.operators import mutants
    from mqproof.spec.mutation.score import Score, campaign

    asked = subject(models, MODELS[name], _PROFILES[profile])
    made = [
        mutant
        for mutant in mutants(asked.text, *roots(models, name))
        if kind in (None, mutant.kind.value)
        and (only or "") in mutant.id
        and (not each or mutant.number <= each)
    ]
    with stages(f"mutate {name}") as told:
        judgements = campaign(
            asked,
            made,
            fresh=fresh,
            on_judged=lambda number, judgement: told(
                f"{number}/{len(made)} {judgement.mutant} {judgement.noticed} {judgement.by}"
            ),
        )
    return Score(name, judgements)


def _result(score: "Score", reasons: dict[str, str]) -> Result:
    from mqproof.spec.mutation.score import unexplained

    mine = {mutant: why for mutant, why in reasons.items() if mutant.startswith(f"{score.model}.")}
    wrong = unexplained(score.judgements, mine)
    return Result(
        id="SPEC-2",
        name=f"{score.model}: every mutant is noticed or explained",
        layer="tla",
        verdict=Verdict.VIOLATED if wrong else Verdict.HELD,
        counts={"mutants": len(score.judgements), "behave otherwise": score.different},
        detail="; ".join(wrong),
        replay=f"mqproof mutate {score.model}",
    )


def _tables(scores: "list[Score]") -> Iterator[Table]:
    from mqproof.spec.mutation.judge import Noticed
    from mqproof.spec.mutation.score import kinds, table

    yield table(scores)
    yield kinds(scores)
    broken = (Noticed.PROPERTY, Noticed.EVALUATION)
    rows = tuple(
        (judgement.mutant, judgement.noticed.value, judgement.by, judgement.run)
        for score in scores
        for judgement in score.judgements
        if judgement.noticed not in broken
    )
    yield Table("What no property notices", ("mutant", "noticed by", "how", "in"), rows)
