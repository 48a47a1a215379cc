"""The report as GitHub-flavoured Markdown, for step summaries and pull requests."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mqproof.report.matrix import counts_text, label, matrix, titled, unheld
from mqproof.report.model import Report, Result, Table, overall
from mqproof.report.printable import one_line, printable

WITNESSES_MAX: Final = 10
"""The number of witnesses shown per result; the JSON file has all of them."""
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def render(report: Report) -> str:
    """Return the document: verdict, facts, matrix, one row per result, and evidence for results not held."""
    return "\n".join(_lines(report)).rstrip("\n") + "\n"


def of_tables(title: str, introduction: str, tables: Iterable[Table]) -> str:
    """Return a document of tables alone, without a verdict, after an introduction in Markdown."""
    return f"# {_escape(title)}\n\n{introduction}\n\n{sections(tables)}"


def sections(tables: Iterable[Table]) -> str:
    """Return a section for each table."""
    return "\n".join(_tables(tables)).rstrip("\n") + "\n"


def anchor(heading: str) -> str:
    """Return the anchor that GitHub and the documentation site generate for a heading."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def _lines(report: Report) -> Iterator[str]:
    yield from (f"# {_escape(report.title)}", "", f"**{label(overall(report.results))}**", "")
    if report.facts:
        yield from _table(("fact", "value"), report.facts.items())
    verdicts = matrix(report.results)
    if len(verdicts.layers) > 1:
        rows = ((f"{row.id} {row.name}", *map(label, row.cells)) for row in verdicts.rows)
        yield from _table(("invariant", *verdicts.layers), rows)
    yield from _table(
        ("invariant", "layer", "verdict", "looked at", "seconds"),
        (
            (f"{r.id} {r.name}", r.layer, label(r.verdict), counts_text(r), f"{r.seconds:.1f}")
            for r in report.results
        ),
    )
    for alike in unheld(report.results):
        yield from _explain(alike)
    yield from _tables(report.tables)


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        yield from (f"## {_escape(table.title)}", "")
        yield from _table(table.columns, table.rows)


def _explain(alike: tuple[Result, ...]) -> Iterator[str]:
    result = alike[0]
    yield from (f"### {label(result.verdict)}: {_escape(f'{titled(alike)} ({result.layer})')}", "")
    if result.detail:
        yield from (_escape(result.detail), "")
    for witness in result.witnesses[:WITNESSES_MAX]:
        yield f"- {_escape(witness.text)}"
        for moment in witness.timeline:
            yield f"  - {_escape(str(moment))}"
    if more := result.more_than(min(len(result.witnesses), WITNESSES_MAX)):
        yield f"- … {_escape(more)}"
    if result.witnesses:
        yield ""
    if result.replay:
        yield from ("Replay:", "", *_code(result.replay), "")


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    columns = tuple(columns)
    yield _row(map(_escape, columns))
    yield _row("---" for _ in columns)
    for row in rows:
        yield _row(map(_escape, row))
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _code(text: str) -> tuple[str, ...]:
    """Return a fenced block; the fence is longer than any run of backticks in the text."""
    text = printable(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return (fence, text, fence)
