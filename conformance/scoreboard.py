"""The scoreboard: what an examination found, as a report that every renderer of report/ can show."""

from collections.abc import Iterable

from conformance.suite import SCRIPT, Examination
from report.model import Report, Result, Table


def scoreboard(
    results: Iterable[Result], *, target: str, seed: int, examples: int, examination: Examination
) -> Report:
    """The results with what was run, the minimal script of each violation, and the model's actions used."""
    results = tuple(results)
    facts = {
        "target": target,
        "seed": str(seed),
        "examples": f"{examination.examples} of {examples}",
        "seconds": f"{examination.seconds:.1f}",
    }
    tables = (*_minimal_script(results), *_actions(examination))
    return Report(f"Conformance of {target}", results, facts, tables)


def _minimal_script(results: tuple[Result, ...]) -> Iterable[Table]:
    """The shortest script of all, with what it violates; the others are among the witnesses."""
    scripts = {
        result.id: tuple(witness.values.items())
        for result in results
        for witness in result.witnesses
        if witness.text == SCRIPT
    }
    if scripts:
        shortest = min(scripts.values(), key=len)
        violated = ", ".join(invariant for invariant, script in scripts.items() if script == shortest)
        yield Table(f"Minimal script that violates {violated}", ("step", "what"), shortest)


def _actions(examination: Examination) -> Iterable[Table]:
    """Nothing for a run that explained nothing."""
    if actions := examination.actions.most_common():
        rows = tuple((name, str(count)) for name, count in actions)
        title = f"Actions of {examination.suite.model} that explain what was seen"
        yield Table(title, ("action", "times"), rows)
