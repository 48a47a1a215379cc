"""Writes the report as JSON with stable keys, and reads it back.

docs/reference/report.md describes the keys.
"""

import json
from dataclasses import dataclass
from typing import Final

import msgspec

from mqproof.report.matrix import tally
from mqproof.report.model import Figure, Report, Result, Table, Verdict, exit_code, overall

SCHEMA_VERSION: Final = 1
"""`schema` of the document. It is incremented when a key changes its meaning, not when keys are added."""


class ReportFileError(ValueError):
    """The file is not a report; the message names the file and the place."""


@dataclass(frozen=True, slots=True)
class _Document:
    schema: int
    title: str
    verdict: Verdict
    exit_code: int
    tally: dict[Verdict, int]
    facts: dict[str, str]
    results: tuple[Result, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]


def render(report: Report) -> str:
    """Return the JSON document, ASCII only, ending with a newline. Equal reports give equal text."""
    document = _Document(
        schema=SCHEMA_VERSION,
        title=report.title,
        verdict=overall(report.results),
        exit_code=exit_code(report.results),
        tally=tally(report.results),
        facts=report.facts,
        results=report.results,
        tables=report.tables,
        figures=report.figures,
    )
    # json writes the text, not msgspec: witnesses may contain lone surrogates, which can only be written as
    # escapes.
    return json.dumps(msgspec.to_builtins(document), indent=1) + "\n"


def from_json(text: str, where: str = "report") -> Report:
    """Return the report that `render` wrote; `where` (a file name) is used in the error message.

    Raises:
        ReportFileError: not JSON, a key is missing or has the wrong type, or the schema is newer than ours.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ReportFileError(f"{where}: not JSON: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, int) or schema > SCHEMA_VERSION:
        raise ReportFileError(f"{where}: report schema {schema!r}, at most {SCHEMA_VERSION} expected")
    try:
        known = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise ReportFileError(f"{where}: not a report: {error}") from None
    return Report(known.title, known.results, known.facts, known.tables, known.figures)
