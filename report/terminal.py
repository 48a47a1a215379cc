"""The report on a terminal: tables that are readable without colour and in a narrow window."""

import io
import os
import re
import shutil
import sys
from typing import Final, Literal, TextIO

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from mqproof.report.matrix import SYMBOLS, counts_text, label, matrix, tally, titled, unheld
from mqproof.report.model import Report, Result, Table, Verdict, overall
from mqproof.report.printable import one_line

WITNESSES_MAX: Final = 3
"""The number of witnesses shown per result; the files have more."""
_NAMES_WIDTH: Final = 76
_SECONDS_WIDTH: Final = 96
_STYLES: Final = {
    Verdict.HELD: "green",
    Verdict.VIOLATED: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.NOT_TESTED: "dim",
}
_VERDICTS: Final = {verdict.value: style for verdict, style in _STYLES.items()}
_NUMBER: Final = re.compile(r"-|[\d,]+(\.\d+)?")
_ASCII: Final = str.maketrans({"✓": "+", "✗": "x", "–": "-", "·": ".", "…": "~", "─": "-"})


def show(report: Report, stream: TextIO | None = None, *, rows: bool = True) -> None:
    """Print the report to the stream (standard output when None), in the width and colour that it allows.

    Without `rows` only the results that are not held are shown, each with its reason.
    """
    stream = stream or sys.stdout
    terminal = stream.isatty()
    text = render(
        report,
        width=shutil.get_terminal_size().columns if terminal else 120,
        colour=terminal and not os.environ.get("NO_COLOR"),
        ascii_only=not _shows_unicode(stream),
        rows=rows,
    )
    stream.write(text)
    stream.flush()


def write(text: str) -> None:
    """Print our own text to standard output, with its symbols in ASCII if the stream needs it."""
    sys.stdout.write(text if _shows_unicode(sys.stdout) else _ascii(text))
    sys.stdout.flush()


def _shows_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "ascii").lower().startswith("utf")


def _ascii(text: str) -> str:
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


def render(
    report: Report, *, width: int = 100, colour: bool = False, ascii_only: bool = False, rows: bool = True
) -> str:
    """Return the whole report as text: facts, one row per result, violations and their replay commands.

    Args:
        width: columns of the terminal; replay commands are never wrapped, so that they can be copied.
        colour: add ANSI colours. Words and symbols have the same meaning without them.
        ascii_only: use only ASCII, for terminals that cannot show more.
        rows: show one row for each result.
    """
    console = _console(width, colour)
    console.print(Text(one_line(report.title), style="bold"))
    for fact, value in report.facts.items():
        console.print(Text(f"  {one_line(fact)}: {one_line(value)}"))
    if report.results and rows:
        console.print()
        console.print(_results_table(report.results, width))
    for table in report.tables:
        console.print()
        console.print(Text(one_line(table.title), style="italic"))
        console.print(_plain_table(table))
    console.print()
    # The most urgent line comes last: nearest to where the next command is typed.
    for alike in sorted(unheld(report.results), key=lambda alike: alike[0].verdict is Verdict.VIOLATED):
        _explain(console, alike)
    console.print(_summary(report), soft_wrap=True)
    return _text(console, ascii_only)


def render_matrix(report: Report, *, width: int = 100, colour: bool = False, ascii_only: bool = False) -> str:
    """Return only the verdict matrix: rows are invariants, columns are layers. Options as in `render`."""
    verdicts = matrix(report.results)
    # Without the word a cell still has its symbol. The words need about 13 columns per layer.
    words = width >= 24 + 13 * len(verdicts.layers)
    table = _table(one_line(report.title))
    table.add_column("invariant", no_wrap=not words, overflow="fold")
    for layer in verdicts.layers:
        table.add_column(one_line(layer), no_wrap=words, overflow="fold")
    for row in verdicts.rows:
        cells = [Text(_cell(cell, words), style=_STYLES[cell] if cell else "dim") for cell in row.cells]
        table.add_row(Text(one_line(f"{row.id} {row.name}" if words else row.id)), *cells)
    console = _console(width, colour)
    console.print(table)
    console.print()
    if not words:
        console.print(Text("  ".join(label(verdict) for verdict in Verdict)), soft_wrap=True)
    console.print(_summary(report), soft_wrap=True)
    return _text(console, ascii_only)


def _cell(verdict: Verdict | None, words: bool) -> str:
    if verdict is None:
        return "·"
    return label(verdict) if words else SYMBOLS[verdict]


def _results_table(results: tuple[Result, ...], width: int) -> RichTable:
    """Return one row per result. A narrow window shows ids and verdicts without names and seconds."""
    names, seconds = width >= _NAMES_WIDTH, width >= _SECONDS_WIDTH
    table = _table()
    table.add_column("invariant", no_wrap=not names, overflow="fold")
    table.add_column("layer", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("looked at", overflow="fold")
    if seconds:
        table.add_column("seconds", justify="right", no_wrap=True)
    for result in results:
        cells = [
            Text(one_line(f"{result.id} {result.name}" if names else result.id)),
            Text(one_line(result.layer)),
            Text(label(result.verdict), style=_STYLES[result.verdict]),
            Text(one_line(counts_text(result))),
        ]
        table.add_row(*cells, *([Text(f"{result.seconds:.1f}")] if seconds else []))
    return table


def _plain_table(source: Table) -> RichTable:
    table = _table()
    for place, column in enumerate(source.columns):
        cells = [row[place] for row in source.rows]
        justify: Literal["left", "right"] = "right" if all(map(_NUMBER.fullmatch, cells)) else "left"
        table.add_column(one_line(column), overflow="fold", justify=justify)
    for row in source.rows:
        table.add_row(*(Text(one_line(cell), style=_VERDICTS.get(cell, "")) for cell in row))
    return table


def _explain(console: Console, alike: tuple[Result, ...]) -> None:
    """Print why the results are not held. A violation's line ends with the command that reproduces it."""
    result = alike[0]
    line = f"{label(result.verdict)} {titled(alike)} ({result.layer})"
    line += f": {result.detail}" if result.detail else ""
    line += f"; replay: {result.replay}" if result.replay else ""
    for witness in result.witnesses[:WITNESSES_MAX]:
        console.print(Text(f"    {one_line(witness.text)}"), soft_wrap=True)
    if more := result.more_than(min(len(result.witnesses), WITNESSES_MAX)):
        console.print(Text(f"    … {more}"))
    console.print(Text(one_line(line), style=_STYLES[result.verdict]), soft_wrap=True)


def _summary(report: Report) -> Text:
    verdict = overall(report.results)
    counts = ", ".join(f"{count} {name}" for name, count in tally(report.results).items() if count)
    return Text(f"{label(verdict)}: {counts or 'no results'}", style=_STYLES[verdict])


def _table(title: str | None = None) -> RichTable:
    return RichTable(
        title=Text(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )


def _console(width: int, colour: bool) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        legacy_windows=False,
        _environ={},  # this is a pure function: the caller handles COLUMNS, NO_COLOR and the like
    )


def _text(console: Console, ascii_only: bool) -> str:
    assert isinstance(console.file, io.StringIO)
    lines = (line.rstrip() for line in console.file.getvalue().splitlines())
    text = "\n".join(lines).strip("\n") + "\n"
    return _ascii(text) if ascii_only else text
