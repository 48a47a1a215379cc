"""Writes docs/reference/conformance/mutation-score.md: what the suites detect of small changes of the code.

`python -m mqproof.conformance.pages.mutation_score` writes the page from mutation-score.json, which is the
report of `mqproof mutate-impl --json`.
"""

from pathlib import Path
from typing import Final

from mqproof.report import json_file
from mqproof.report.markdown import sections
from mqproof.report.model import Report
from mqproof.report.write import write_text

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance" / "mutation-score.md"
DATA: Final = PAGE.with_suffix(".json")
_HEAD: Final = """\
# Score of the suites on mutants of the implementation

This page is for developers of mqproof, and for readers who ask what the suites miss. It has the result of one
run of `mqproof mutate-impl`, which changes the code of `impl/` in small, systematic ways.
[Mutation of the implementation](../../explanation/conformance/mutation.md) explains how a mutant is judged.

| fact | value |
|---|---|
{facts}

- `score` is the share of detected mutants among those that a peer or a restart can show: mutants less
  `invisible`. Unreached and endless ones count as not detected.
- `by unit tests` is how many of the others the unit tests of the module detect, of those that they judged.
  `score with them` counts every mutant that is not equivalent.
- The last table has every mutant that no suite detects. The kind and the reason are those of
  `conformance/mutation/survivors.toml`; a mutant whose kind is not stated counts as visible.
"""


def page(report: Report) -> str:
    """Return the page of a report of `mqproof mutate-impl`."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in report.facts.items())
    return f"{_HEAD.format(facts=facts)}\n{sections(report.tables)}"


def recorded() -> Report:
    """Return the published report."""
    return json_file.from_json(DATA.read_text(encoding="utf-8"), str(DATA))


def main() -> None:
    """Write the page again."""
    write_text(PAGE, page(recorded()))


if __name__ == "__main__":
    main()
