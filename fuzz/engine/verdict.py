"""Turns a campaign's outcome into a report with one result per invariant of the target."""

from collections.abc import Iterator
from pathlib import Path

from mqproof.fuzz import targets
from mqproof.fuzz.engine import findings
from mqproof.fuzz.engine.campaign import Campaign, Outcome
from mqproof.fuzz.target import ENDS_IN_TIME, ONLY_DOCUMENTED_ERRORS
from mqproof.report.model import Report, Result, Verdict, Witness
from mqproof.spec import catalogue

_EVERYWHERE = {
    ONLY_DOCUMENTED_ERRORS: "no input causes an error that the interface does not document",
    ENDS_IN_TIME: "no input keeps a processor busy for seconds",
}


def report(campaign: Campaign, outcome: Outcome) -> Report:
    """Return the report of a campaign."""
    facts = {
        "target": campaign.target,
        "seed": str(campaign.seed),
        "engine": campaign.engine,
        "workers": str(campaign.workers),
        "seconds": f"{outcome.seconds:.1f}",
        "executions": str(outcome.executions),
        "features": str(outcome.features),
        "inputs": str(outcome.inputs),
        "corpus": str(campaign.corpus or "not kept"),
        "version": findings.project_version(),
    }
    return Report(f"mqproof fuzz run {campaign.target}", tuple(results(campaign, outcome)), facts)


def results(campaign: Campaign, outcome: Outcome) -> Iterator[Result]:
    """Yield one result per invariant. The result is unknown if no input tested the invariant."""
    statements = {**targets.load(campaign.target).invariants, **_EVERYWHERE}
    for name, statement in statements.items():
        tested = outcome.executions if name in _EVERYWHERE else outcome.checked[name]
        found = [(saved, path) for saved, path in outcome.found.values() if saved.invariant == name]
        verdict = Verdict.VIOLATED if found else Verdict.HELD if tested else Verdict.UNKNOWN
        yield Result(
            id=catalogue_id(name, campaign.target),
            name=name,
            layer="fuzz",
            verdict=verdict,
            counts={"inputs judged": tested},
            witnesses=tuple(
                Witness(f"{saved.message} ({len(saved.input)} bytes)", _values(saved, path))
                for saved, path in found
            ),
            detail=_detail(verdict, statement),
            replay=findings.replay_command(found[0][1]) if found else "",
            seconds=outcome.seconds,
        )


def catalogue_id(name: str, target: str) -> str:
    """Return the catalogue's id of an invariant.

    An invariant that only this target has uses the target's name.
    """
    try:
        return catalogue.by_name(name).id
    except KeyError:
        return target


def _values(saved: findings.SavedFinding, path: Path) -> dict[str, str]:
    replay = findings.replay_command(path)
    return {"signature": saved.signature, "input": saved.input.hex()[:200], "replay": replay}


def _detail(verdict: Verdict, statement: str) -> str:
    match verdict:
        case Verdict.VIOLATED:
            return f"broken: {statement}"
        case Verdict.UNKNOWN:
            return f"no input tested it: {statement}"
        case _:
            return statement
