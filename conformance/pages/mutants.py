"""Writes docs/reference/conformance/mutants.md: the result for each mutant of the implementation, by suite.

`python -m mqproof.conformance.pages.mutants [NAME...]` runs all mutants, or the named ones. It writes the
page and its data, mutants.json. The seconds are those of the machine on which the mutants ran.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqproof.conformance.registry.mutant_judge import EXAMPLES_MAX, HUNTS, Hunt, names, run
from mqproof.report import json_file
from mqproof.report.model import Report, Result, Verdict
from mqproof.report.write import write_text
from mqproof.spec.catalogue import catalogue

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance" / "mutants.md"
DATA: Final = PAGE.with_suffix(".json")
_HEAD: Final = """\
# Mutants of the implementation

This page is for developers of mqproof: it lists the injected defects of the name server, the broker and the
client, and the invariants that detect them.

A mutant is mqproof's own code with one rule replaced by a wrong one. It names the invariant that must detect
it; if only another invariant detects it, the mutant is not caught. A mutant that is not caught within
{budget} examples survives, and the exit code of `mqproof mutants --layer impl` is 1.

An example is one of the following, depending on the suite:

- a random run of a suite of `mqproof conform`;
- a run of a master and its slave (replication);
- a history of clients of all kinds (workload);
- a behaviour of a model;
- a wire case. The mutant then names the case instead of an invariant;
- an attack of the suite hostile.

{summary}

```
python -m mqproof.conformance.pages.mutants   # run all mutants and write this page, with seed 0
mqproof mutants --layer impl --only NAME      # run one mutant
```

The number of examples is the same on every machine. The seconds are those of one run, with other work on the
machine.
"""
_COLUMNS: Final = """\
| mutant | defect | detected by | examples | seconds |
|---|---|---|---|---|
"""


def page(results: Sequence[Result]) -> str:
    """Return the page. The table of a suite contains the mutants that have a result."""
    by_name = {result.name: result for result in results}
    caught = [result for result in results if result.verdict is Verdict.HELD]
    most = max((result.counts["examples"] for result in caught), default=0)
    summary = f"{len(caught)} of {len(results)} mutants are caught, each within {most} examples."
    tables = [_table(hunt, by_name) for hunt in HUNTS if by_name.keys() & hunt.mutants.keys()]
    return "\n".join([_HEAD.format(budget=EXAMPLES_MAX, summary=summary), *tables])


def _table(hunt: Hunt, by_name: dict[str, Result]) -> str:
    rows = [_row(by_name[name]) for name in hunt.mutants if name in by_name]
    return f"## {hunt.suite}\n\n{_COLUMNS}{''.join(rows)}"


def _row(result: Result) -> str:
    caught = _noticed(result.id) if result.verdict is Verdict.HELD else "**survives**"
    examples = result.counts["examples"]
    return f"| {result.name} | {result.detail} | {caught} | {examples} | {result.seconds:.1f} |\n"


def _noticed(id_: str) -> str:
    """Return the id of the invariant with its name; a wire case has no name."""
    return f"{id_} {catalogue()[id_].name}" if id_ in catalogue() else id_


def recorded() -> tuple[Result, ...]:
    """Return the results of the last run of each mutant."""
    return json_file.from_json(DATA.read_text(encoding="utf-8"), str(DATA)).results


def record(judged: Iterable[Result]) -> None:
    """Write both files: these results, and the recorded ones of all other existing mutants."""
    by_name = {result.name: result for result in (*(recorded() if DATA.exists() else ()), *judged)}
    kept = (by_name[name] for name in names() if name in by_name)
    results = tuple(replace(result, witnesses=result.witnesses[:1]) for result in kept)
    write_text(DATA, json_file.render(Report("mqproof mutants --layer impl", results)))
    write_text(PAGE, page(results))


def main(chosen: Sequence[str]) -> None:
    """Print and record each result when it is known, so that an interrupted run keeps its results."""
    survived = 0
    for result in run(chosen):
        print(f"{result.name}: {result.verdict}, {result.counts['examples']} examples", flush=True)
        survived += result.verdict is not Verdict.HELD
        record([result])
    sys.exit(bool(survived))


if __name__ == "__main__":
    main(sys.argv[1:])
