"""Reads a mapping file: how the rows of any table become events, by SQL expressions.

Format: docs/how-to/audit-sources.md, "Mapping files".
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spec.events import COLUMNS, Kind

BY_DUCKDB: Final = ("json", "csv", "parquet")
BY_SPARK: Final = ("orc", "delta", "iceberg", "jdbc")
"""The formats that only Spark reads. The expressions of such a source are in Spark's SQL."""

_OF_MESSAGES: Final = (
    *(Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL, Kind.APPEND, Kind.DELIVER, Kind.CONSUME_OK),
)
_NEEDED: Final[dict[Kind, tuple[str, ...]]] = {
    **dict.fromkeys(_OF_MESSAGES, ("msg_id", "topic")),
    Kind.DELIVER: ("msg_id", "topic", "queue_id", "queue_offset", "group"),
    Kind.OFFSET_COMMIT: ("topic", "queue_id", "queue_offset", "group"),
}
"""The columns without which an event of the kind says nothing."""
_ATTR: Final = re.compile(r"attrs\.([a-z_]{1,64})")
_OPTION: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_FILE_BYTES_MAX: Final = 1 << 20
_SOURCES_MAX: Final = 64
EVENTS_MAX: Final = 64


class MappingError(InputError):
    """A mapping file that does not fit its tables. There is one line for each error."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines[0] if len(lines) == 1 else f"{lines[0]} (and {len(lines) - 1} more)")
        self.lines = lines


@dataclass(frozen=True, slots=True)
class MappedEvent:
    """One event that a row may give."""

    kind: Kind
    where: str
    """The condition under which a row gives this event; empty for every row."""
    columns: Mapping[str, str]
    """Column of the event log, to its expression."""
    attrs: Mapping[str, str]
    """Name of an attribute, to its expression."""


@dataclass(frozen=True, slots=True)
class MappedSource:
    """A table, and the events of its rows."""

    name: str
    """The mapping file and the number of the source, for messages."""
    format: str
    path: str
    """Path or pattern of files, or the name of a table for Spark."""
    events: tuple[MappedEvent, ...]
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MappingFile:
    """A mapping file."""

    file: Path
    sources: tuple[MappedSource, ...]
    complete: bool
    """Whether the tables have all events of their nodes, from the beginning."""

    @property
    def is_numbered(self) -> bool:
        """Whether the tables have the numbers of the events."""
        return all("seq" in event.columns for source in self.sources for event in source.events)

    @property
    def needs_spark(self) -> bool:
        return any(source.format in BY_SPARK for source in self.sources)


def read_mapping(file: Path) -> MappingFile:
    """Read a mapping file.

    Raises:
        MappingError: the file cannot be read, or is not a mapping.
    """
    try:
        if file.stat().st_size > _FILE_BYTES_MAX:
            raise MappingError([f"{file}: more than {_FILE_BYTES_MAX} bytes, a mapping file expected"])
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise MappingError([f"{file}: {error.strerror}"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MappingError([f"{file}: not TOML: {error}"]) from None
    complete = document.get("complete", False)
    errors = [f"{file}: unknown key {key!r}" for key in sorted(document.keys() - {"source", "complete"})]
    if not isinstance(complete, bool):
        errors += [f"{file}: complete {complete!r}, expected true or false"]
    given = document.get("source")
    if not isinstance(given, list) or not 1 <= len(given) <= _SOURCES_MAX:
        raise MappingError([*errors, f"{file}: expected 1 to {_SOURCES_MAX} tables [[source]]"])
    sources = [_source(file, number, each, errors) for number, each in enumerate(given, start=1)]
    mapped = tuple(source for source in sources if source is not None)
    numbered = ["seq" in event.columns for source in mapped for event in source.events]
    if any(numbered) and not all(numbered):
        errors.append(f"{file}: some events have the column seq, expected all or none")
    if len({source.format in BY_SPARK for source in mapped}) > 1:
        errors.append(f"{file}: {', '.join(BY_SPARK)} are read by Spark: use a mapping file of their own")
    if errors:
        raise MappingError(errors)
    return MappingFile(file, mapped, bool(complete))


def _source(file: Path, number: int, given: Any, errors: list[str]) -> MappedSource | None:
    name = f"{file}: source {number}"
    if not isinstance(given, dict):
        errors.append(f"{name}: not a table")
        return None
    known = {"path", "format", "options", "columns", "event"}
    errors += [f"{name}: unknown key {key!r}" for key in sorted(given.keys() - known)]
    kind, path = given.get("format"), given.get("path")
    if kind not in (*BY_DUCKDB, *BY_SPARK):
        errors.append(f"{name}: format {kind!r}, expected one of {', '.join((*BY_DUCKDB, *BY_SPARK))}")
    if not isinstance(path, str) or not path:
        errors.append(f"{name}: path {path!r}, expected a text")
    options = given.get("options", {})
    if not isinstance(options, dict) or not all(
        _OPTION.fullmatch(key) and isinstance(value, str | int | float | bool)
        for key, value in options.items()
    ):
        errors.append(f"{name}: options: expected names and plain values")
        options = {}
    common = _expressions(f"{name}, columns", given.get("columns", {}), errors)
    events = given.get("event")
    if not isinstance(events, list) or not 1 <= len(events) <= EVENTS_MAX:
        errors.append(f"{name}: expected 1 to {EVENTS_MAX} tables [[source.event]]")
        return None
    mapped = [_event(f"{name}, event {n}", each, common, errors) for n, each in enumerate(events, start=1)]
    is_remote = "://" in str(path)
    if is_remote and kind in BY_DUCKDB:
        errors.append(
            f"{name}: path {path!r}: {kind} is read from local files; Spark's formats may have a URI"
        )
    is_file = (kind in BY_DUCKDB or kind == "orc") and not is_remote
    where = str(file.parent / str(path)) if is_file else str(path)
    kept = tuple(event for event in mapped if event is not None)
    return MappedSource(name, str(kind), where, kept, options)


def _event(name: str, given: Any, common: Mapping[str, str], errors: list[str]) -> MappedEvent | None:
    if not isinstance(given, dict):
        errors.append(f"{name}: not a table")
        return None
    errors += [f"{name}: unknown key {key!r}" for key in sorted(given.keys() - {"kind", "where", "columns"})]
    where = given.get("where", "")
    if not isinstance(where, str):
        errors.append(f"{name}: where {where!r}, expected a condition in SQL")
        where = ""
    expressions = {**common, **_expressions(f"{name}, columns", given.get("columns", {}), errors)}
    if given.get("kind") not in set(Kind):
        errors.append(f"{name}: kind {given.get('kind')!r}, expected one of the kinds of the event log")
        return None
    kind = Kind(given["kind"])
    errors += [
        f"{name}: a {kind} needs the column {column}"
        for column in ("ts", "node", *_NEEDED.get(kind, ()))
        if column not in expressions
    ]
    columns = {key: text for key, text in expressions.items() if not _ATTR.fullmatch(key)}
    attrs = {found[1]: text for key, text in expressions.items() if (found := _ATTR.fullmatch(key))}
    return MappedEvent(kind, where, columns, attrs)


def _expressions(name: str, given: Any, errors: list[str]) -> dict[str, str]:
    """Return column to expression. A TOML key `attrs.broker` may be quoted, or a table of its own."""
    if not isinstance(given, dict):
        errors.append(f'{name}: expected column = "expression"')
        return {}
    found: dict[str, str] = {}
    nested = given.get("attrs")
    flat = {key: value for key, value in given.items() if key != "attrs" or not isinstance(nested, dict)}
    if isinstance(nested, dict):
        flat |= {f"attrs.{key}": value for key, value in nested.items()}
    for key, value in flat.items():
        if not isinstance(value, str) or not value.strip():
            errors.append(f"{name}: {key} = {value!r}, expected an expression in SQL, as a text")
        elif key in ("kind", "attrs") or not (key in COLUMNS or _ATTR.fullmatch(key)):
            errors.append(f"{name}: {key} is no column of the event log")
        else:
            found[key] = value
    return found
