"""The tables of docs/explanation/conformance/suites.md and workload.md: how brokers fared, a column each.

python -m mqproof.conformance.pages.scoreboards "4.9.5=4.9.json,retry.json" "5.5.0=5.json" ours=ours.json

Reads reports of `mqproof conform --json` and updates both pages. Entries without a report stay unchanged: a
report of one suite changes one row, in the column of its broker.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.scoreboard import EVIDENCE, FAULTS
from mqproof.conformance.suites.workload import suite as workload
from mqproof.report.json_file import from_json
from mqproof.report.model import Report, Result, Verdict
from mqproof.report.model import Table as EvidenceTable
from mqproof.report.write import write_text

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "conformance"
SUITES: Final = FOLDER / "suites.md"
WORKLOAD: Final = FOLDER / "workload.md"
_NOT_RUN: Final = "not run"
_EVIDENCE: Final = ("examples", "operations", "attacks")

Table = list[list[str]]
"""Rows of cells; the first row names the brokers."""


def main(arguments: Sequence[str]) -> None:
    for argument in arguments:
        broker, _, files = argument.partition("=")
        for file in files.split(","):
            report = from_json(Path(file).read_text(encoding="utf-8"))
            for page, filled in ((SUITES, with_suites), (WORKLOAD, with_workload)):
                text = page.read_text(encoding="utf-8")
                write_text(page, replaced(text, filled(table_of(text), broker, report)))


def table_of(text: str) -> Table:
    """Return the page's first table whose columns are brokers."""
    lines = text.splitlines()
    first = _first(lines)
    last = next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), len(lines))
    return [_entries(line) for line in lines[first:last] if not line.startswith("|---")]


def replaced(text: str, table: Table) -> str:
    """Return the page with that table."""
    lines = text.splitlines(keepends=True)
    first = _first(lines)
    last = next((at for at in range(first, len(lines)) if not lines[at].startswith("|")), len(lines))
    head, *rows = [f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in table]
    return "".join([*lines[:first], head, "|---" * len(table[0]) + "|\n", *rows, *lines[last:]])


def with_suites(table: Table, broker: str, report: Report) -> Table:
    """Update the rows of suites: verdict and amount of evidence."""
    column = _column(table[0], broker)
    for row in table[1:]:
        row += [_NOT_RUN] * (column + 1 - len(row))
        if of_suite := [result for result in report.results if result.layer == row[0]]:
            row[column] = _verdict(of_suite, _rests_on(report, row[0]))
    return table


def with_workload(table: Table, broker: str, report: Report) -> Table:
    """Update the rows of history rules: the number of examined operations."""
    rules = {f"{each.id} {each.name}": each for each in report.results if each.layer == workload.NAME}
    if not rules:
        return table
    column = _column(table[0], broker)
    table[0][column] = f"{broker} ({_operations(report)} operations)"
    head, *rows = [[*row, *[""] * (column + 1 - len(row))] for row in table]
    known = {row[0]: row for row in rows}
    for name, rule in rules.items():
        row = known.setdefault(name, [name, *["not tested"] * (len(head) - 1)])
        row[column] = _looked_at(rule)
    tested = [row for row in known.values() if any(entry != "not tested" for entry in row[1:])]
    return [head, *sorted(tested, key=lambda row: row[0])]


def _verdict(results: Sequence[Result], rests_on: str) -> str:
    if all(each.verdict is Verdict.NOT_TESTED for each in results):
        return "not tested"
    ids = {each: [one.id for one in results if one.verdict is each] for each in Verdict}
    decided = not ids[Verdict.VIOLATED] and not ids[Verdict.UNKNOWN]
    parts = [f"held: {rests_on}"] if decided else []
    parts += [f"{each} {', '.join(of)}" for each, of in ids.items() if of and each is not Verdict.HELD]
    return "; ".join(parts)


def _rests_on(report: Report, suite: str) -> str:
    """Return the suite's row of the table Evidence, and the number of its faults."""
    evidence, met = _table(report, EVIDENCE), _table(report, FAULTS)
    own_row = next((zip(evidence.columns, row, strict=True) for row in evidence.rows if row[0] == suite), ())
    entries = [f"{entry} {what}" for what, entry in own_row if what in _EVIDENCE and entry]
    if suite in met.columns:
        at = met.columns.index(suite)
        entries.append(f"{sum(int(row[at].replace(',', '')) for row in met.rows):,} faults")
    return ", ".join(entries)


def _table(report: Report, title: str) -> EvidenceTable:
    empty = EvidenceTable(title, (), ())
    return next((table for table in report.tables if table.title == title), empty)


def _looked_at(rule: Result) -> str:
    counts = ", ".join(f"{count:,} {what}" for what, count in rule.counts.items())
    if rule.verdict is Verdict.NOT_TESTED:
        return "not tested"
    return counts if rule.verdict is Verdict.HELD else f"{rule.verdict}: {counts}"


def _operations(report: Report) -> str:
    table = _table(report, EVIDENCE)
    row = next(row for row in table.rows if row[0] == workload.NAME)
    return row[table.columns.index("operations")]


def _column(head: list[str], broker: str) -> int:
    """Return the index of the broker's column; a new column becomes the last one."""
    names = [entry.partition(" (")[0] for entry in head]
    if broker not in names:
        head.append(broker)
        return len(names)
    return names.index(broker)


def _first(lines: Sequence[str]) -> int:
    return next(at for at, line in enumerate(lines) if line.startswith("|") and "4.9.5" in line)


def _entries(line: str) -> list[str]:
    return [entry.strip() for entry in line.strip()[1:-1].split("|")]


if __name__ == "__main__":
    main(sys.argv[1:])
