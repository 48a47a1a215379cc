"""Renders the view of the matrix as terminal text, Markdown, one HTML page and JSON."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from rich.console import Console
from rich.text import Text

from mqproof.report.markdown import anchor
from mqproof.spec.guarantee.matrix import Matrix, Outcome, Verdicts
from mqproof.spec.guarantee.view import LEGEND, LETTERS, WORDS, ShownCell, ShownDifference, View

_STYLES: Final = {
    Outcome.SAFE: "green",
    Outcome.ERROR: "cyan",
    Outcome.SILENT: "yellow",
    Outcome.SLAVE: "bold magenta",
    Outcome.GONE: "bold red",
    Outcome.NEVER: "dim",
}
_CELL: Final = 11
_WIDTH_MAX: Final = 110


def html(view: View) -> str:
    """Return one page; apart from the pictures it links to, it is self-contained."""
    words = {str(outcome): word for outcome, word in WORDS.items()}
    letters = {str(outcome): letter for outcome, letter in LETTERS.items()}
    legend = [(str(outcome), text) for outcome, text in LEGEND.items()]
    return _template().render(view=view, words=words, letters=letters, legend=legend)


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def markdown(view: View) -> str:
    """Return the tables; verdicts link to their pictures."""
    return "\n".join(_markdown(view)).rstrip("\n") + "\n"


def _markdown(view: View) -> Iterator[str]:
    anchors = {each.number: f"[≠{each.number}](#{anchor(_heading(each))})" for each in view.differences}
    yield from ("| verdict | meaning |", "|---|---|")
    yield from (f"| {WORDS[outcome]} {LETTERS[outcome]} | {text} |" for outcome, text in LEGEND.items())
    heads = [f"{column.name} {column.fault}" for column in view.single_columns]
    yield from ("", "## One fault", "")
    yield from _table("flush", "replication", "producer", *heads, "the book: nothing lost in")
    for row in view.singles:
        setup = row.setup
        cells = [
            " ".join((_linked(cell, WORDS[cell.outcome]), *(anchors[number] for number in cell.differences)))
            for cell in row.cells
        ]
        yield _line(setup.flush, setup.replication, setup.producer, *cells, row.book)
    yield from ("", "## Two faults", "")
    yield "Two faults happen in any order, on one node or on both. The head of a column is their numbers."
    yield "The book claims nothing about two faults."
    yield ""
    yield from _table("flush", "replication", "producer", *(column.name for column in view.double_columns))
    for row in view.doubles:
        setup = row.setup
        cells = [_linked(cell, LETTERS[cell.outcome]) for cell in row.cells]
        yield _line(setup.flush, setup.replication, setup.producer, *cells)
    if view.damaged:
        yield from ("", "## A damaged disk", "")
        yield "One durable record in one node is altered (flip), or its write never reached the disk (lost)."
        yield "The node leaves the record out and reports it, or repairs it from the other node."
        yield ""
        heads = [f"{column.name} {column.fault}" for column in view.damage_columns]
        yield from _table("flush", "replication", "producer", *heads)
        for row in view.damaged:
            setup = row.setup
            cells = [_linked(cell, WORDS[cell.outcome]) for cell in row.cells]
            yield _line(setup.flush, setup.replication, setup.producer, *cells)
    yield from ("", "## Claims of the book", "")
    yield from _table("where", "claim", "cells", "TLC agrees", "differs")
    for claim in view.claims:
        numbers = " ".join(anchors[number] for number in claim.differences)
        yield _line(claim.source, claim.statement, str(claim.cells), str(claim.agree), numbers)
    yield from ("", "## Differences between TLC and the book", "")
    for difference in view.differences:
        yield from (f"### {_heading(difference)}", "")
        yield from (*wrap(difference.explanation, 120), "")
        yield from (f"Cells: {'; '.join(difference.cells)}.", "")
        if difference.picture:
            yield from (f"![{difference.example}]({difference.picture})", "")


def _heading(difference: ShownDifference) -> str:
    return f"{difference.number}. {difference.title}: {WORDS[difference.outcome]}"


def _table(*heads: str) -> Iterator[str]:
    yield _line(*heads)
    yield "|" + "---|" * len(heads)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _linked(cell: ShownCell, text: str) -> str:
    return f"[{text}]({cell.picture})" if cell.picture else text


def _marks(cell: ShownCell) -> str:
    return "".join(f" ≠{number}" for number in cell.differences)


def terminal(view: View, console: Console) -> None:
    """Print the tables as text, at most 120 columns wide."""
    _print_singles(view, console)
    _print_doubles(view, console)
    _print_damaged(view, console)
    legend = Text()
    for outcome, text in LEGEND.items():
        legend.append(f"{WORDS[outcome]:>7} {LETTERS[outcome]}", _STYLES[outcome]).append(f"  {text}\n")
    console.print(legend)
    if view.differences:
        console.print("Differences between TLC and the book", style="bold")
    width = min(console.width, _WIDTH_MAX) - 5
    for difference in view.differences:
        head = Text(f"{difference.number:>3}  {difference.title}: ")
        head.append(WORDS[difference.outcome], _STYLES[difference.outcome])
        console.print(head)
        console.print("\n".join(f"     {line}" for line in wrap(difference.explanation, width)))


def _print_singles(view: View, console: Console) -> None:
    heads = "".join(f"{column.name + ' ' + column.fault:{_CELL}}" for column in view.single_columns)
    console.print(Text(f"{'one fault':34}{heads}book: safe in", "bold"), soft_wrap=True)
    for row in view.singles:
        line = _setup(row.setup.flush, row.setup.replication, row.setup.producer, row.first)
        for cell in row.cells:
            line.append(WORDS[cell.outcome], _STYLES[cell.outcome])
            marks = _marks(cell)
            line.append(f"{marks:{_CELL - len(WORDS[cell.outcome])}}", "dim")
        console.print(line.append(row.book), soft_wrap=True)
    console.print()


def _print_damaged(view: View, console: Console) -> None:
    if not view.damaged:
        return
    heads = "".join(f"{column.name + ' ' + column.fault:{_CELL}}" for column in view.damage_columns)
    console.print(Text(f"{'a damaged disk':34}{heads}", "bold"), soft_wrap=True)
    for row in view.damaged:
        line = _setup(row.setup.flush, row.setup.replication, row.setup.producer, row.first)
        for cell in row.cells:
            line.append(f"{WORDS[cell.outcome]:{_CELL}}", _STYLES[cell.outcome])
        console.print(line, soft_wrap=True)
    console.print()


def _print_doubles(view: View, console: Console) -> None:
    heads = " ".join(column.name for column in view.double_columns)
    console.print(Text(f"{'two faults, by their numbers':34}{heads}", "bold"), soft_wrap=True)
    for row in view.doubles:
        line = _setup(row.setup.flush, row.setup.replication, row.setup.producer, row.first)
        for cell in row.cells:
            line.append(f"{LETTERS[cell.outcome]:3}", _STYLES[cell.outcome])
        line.rstrip()
        console.print(line, soft_wrap=True)
    console.print()


def _setup(flush: str, replication: str, producer: str, first: bool) -> Text:
    """Return the modes of a row; modes equal to those of the row above are not repeated."""
    modes = f"{flush:12}{replication:15}" if first else " " * 27
    return Text(f"{modes}{producer:7}")


def as_json(matrix: Matrix, view: View, recorded: Verdicts) -> str:
    """Return every cell with its verdict, recorded verdict and picture; then claims and differences."""
    cells: list[dict[str, Any]] = []
    for row in (*view.singles, *view.doubles, *view.damaged):
        for shown in row.cells:
            setup = shown.cell.setup
            cells.append(
                {
                    "flush": setup.flush,
                    "replication": setup.replication,
                    "producer": setup.producer,
                    "faults": list(shown.cell.faults),
                    "verdict": str(shown.outcome),
                    "recorded": str(recorded[shown.cell]) if shown.cell in recorded else None,
                    "differences": list(shown.differences),
                    "counterexample": shown.picture or None,
                }
            )
    document = {
        "schema": "mqproof.matrix/1",
        "states": matrix.states,
        "seconds": round(matrix.seconds, 1),
        "cells": cells,
        "claims": [
            {
                "source": claim.source,
                "statement": claim.statement,
                "cells": claim.cells,
                "agree": claim.agree,
                "differences": list(claim.differences),
            }
            for claim in view.claims
        ],
        "differences": [
            {
                "number": difference.number,
                "title": difference.title,
                "verdict": str(difference.outcome),
                "explanation": difference.explanation,
                "cells": list(difference.cells),
                "counterexample": difference.picture or None,
            }
            for difference in view.differences
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
