"""The scoreboard: what an examination found, as a report that every renderer of report/ can show."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from conformance.suite import SCRIPT, Examination
from report.model import Report, Result, Table

_STEPS_SHOWN: Final = 200


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
    scripts = [table for result in results for table in _scripts(result)]
    return Report(f"Conformance of {target}", results, facts, (*scripts, *_actions(examination.actions)))


def _scripts(result: Result) -> Iterable[Table]:
    for witness in result.witnesses:
        if witness.text == SCRIPT:
            rows = tuple(witness.values.items())[-_STEPS_SHOWN:]
            yield Table(f"{result.id} {result.name}: {SCRIPT}", ("step", "what"), rows)


def _actions(actions: Counter[str]) -> Iterable[Table]:
    """Nothing for a run that explained nothing."""
    if actions:
        rows = tuple((name, str(count)) for name, count in actions.most_common())
        yield Table("Actions of Flush.tla that explain what was seen", ("action", "times"), rows)
