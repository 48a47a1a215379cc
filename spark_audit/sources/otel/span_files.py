"""Reads OpenTelemetry spans of messaging clients into one table of DuckDB: OTLP JSON lines, and Parquet.

Format: docs/how-to/audit-sources.md, "OpenTelemetry spans". The names of attributes are those of the semantic
conventions for messaging, and the older names that instrumentations of RocketMQ still use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.spark_audit.engine.sql_text import identifier, quoted
from mqproof.spark_audit.sources.inputs import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".parquet")
LINE_BYTES_MAX: Final = 64 << 20
"""The longest line: one export request of a collector."""

_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "system": ("messaging.system",),
    "operation": ("messaging.operation.type", "messaging.operation", "messaging.operation.name"),
    "operation_name": ("messaging.operation.name",),
    "topic": ("messaging.destination.name", "messaging.destination"),
    "message_id": ("messaging.message.id", "messaging.message_id"),
    "consumers": (
        *("messaging.consumer.group.name", "messaging.rocketmq.client_group"),
        "messaging.rocketmq.consumer_group",
    ),
    "tag": ("messaging.rocketmq.message.tag", "messaging.rocketmq.message_tag"),
    "due_ms": ("messaging.rocketmq.message.delivery_timestamp",),
    "error": ("error.type",),
}
"""Column of the table, to the attributes that give it; the first one that is present counts."""

_OPERATIONS: Final = {
    **dict.fromkeys(("publish", "send"), "publish"),
    **dict.fromkeys(("receive", "poll"), "receive"),
    **dict.fromkeys(("process", "deliver", "consume"), "process"),
    **dict.fromkeys(("settle", "ack", "nack", "reject"), "settle"),
}
"""The operations of both versions of the conventions, and ours."""

_VALUES: Final = ("stringValue", "intValue", "boolValue", "doubleValue")
_VALUE: Final = f"STRUCT({', '.join(f'{identifier(name)} VARCHAR' for name in _VALUES)})"
_KEYED: Final = f'STRUCT("key" VARCHAR, "value" {_VALUE})[]'
_SPAN: Final = (
    'STRUCT("traceId" VARCHAR, "traceState" VARCHAR, "name" VARCHAR, "startTimeUnixNano" VARCHAR,'
    f' "endTimeUnixNano" VARCHAR, "attributes" {_KEYED}, "status" STRUCT("code" VARCHAR),'
    f' "links" STRUCT("traceId" VARCHAR, "attributes" {_KEYED})[])'
)
_REQUEST: Final = (
    f'STRUCT("resource" STRUCT("attributes" {_KEYED}), "scopeSpans" STRUCT("spans" {_SPAN}[])[])[]'
)
_COLUMNS: Final = "trace_id, trace_state, start_us, end_us, failed, links, linked_ids"


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """What was read."""

    spans: int
    """Spans of RocketMQ clients with a known operation and a message id; one for each message of a batch."""
    without_id: int
    """Spans of RocketMQ clients without a message id, which say nothing about a message."""
    other: int
    """Spans of other systems and operations."""
    unreadable_lines: int


def find_spans(paths: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of spans among the paths, and in folders, each once.

    Raises:
        InputError: a path does not exist, or has no such file.
    """
    found: set[Path] = set()
    for path in map(Path, paths):
        if path.is_dir():
            inside = [file for file in path.rglob("*") if file.is_file() and file.name.endswith(SUFFIXES)]
            if not inside:
                raise InputError(f"{path}: no file of spans in this folder (expected {', '.join(SUFFIXES)})")
            found.update(inside)
        elif not path.is_file():
            raise InputError(f"{path}: no such file or folder")
        elif not path.name.endswith(SUFFIXES):
            raise InputError(f"{path}: not a file of spans by its name, expected {', '.join(SUFFIXES)}")
        else:
            found.add(path)
    return tuple(sorted({file.resolve(): file for file in found}.values()))


def load_spans(database: "DuckDBPyConnection", files: Sequence[Path]) -> SpanCounts:
    """Create the table `spans`, one row for each message of each span of a RocketMQ client.

    Columns: trace_id, trace_state, start_us, end_us, failed, links (trace ids), operation, operation_name,
    topic, consumers, tag, due_ms, message_id.

    Raises:
        InputError: a file is damaged, or has no spans in a known form.
    """
    import duckdb

    names = ", ".join(_ATTRIBUTES)
    kinds = ", ".join(f"{name} VARCHAR" for name in _ATTRIBUTES)
    database.execute(
        "CREATE TABLE raw (trace_id VARCHAR, trace_state VARCHAR, start_us BIGINT, end_us BIGINT,"
        f" failed BOOLEAN, links VARCHAR[], linked_ids VARCHAR[], {kinds})"
    )
    unreadable = 0
    for file in files:
        try:
            source = _of_parquet(database, file) if file.suffix == ".parquet" else _of_lines(file)
            if file.suffix != ".parquet":
                unreadable += _unreadable(database, file)
            database.execute(f"INSERT INTO raw SELECT {_COLUMNS}, {names} FROM ({source})")
        except duckdb.Error as error:
            first = str(error).partition("\n")[0]
            raise InputError(f"{file}: damaged, or not spans: {first}") from None
    return _select_messages(database, unreadable)


def _unreadable(database: "DuckDBPyConnection", file: Path) -> int:
    """Return the number of lines that are no export requests. Raises InputError if none is one."""
    counted = f'SELECT count(*), count("resourceSpans") FROM {_lines(file)}'
    lines, requests = database.execute(counted).fetchall()[0]
    if lines and not requests:
        raise InputError(f"{file}: none of {lines} lines is an export request of OTLP (resourceSpans)")
    return int(lines - requests)


def _select_messages(database: "DuckDBPyConnection", unreadable: int) -> SpanCounts:
    known = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in _OPERATIONS.items())
    database.execute(
        "CREATE TABLE named AS SELECT * REPLACE ("
        f"map {{{known}}}[lower(operation)] AS operation,"
        " coalesce(failed, false) OR error IS NOT NULL AS failed,"
        " TRY_CAST(due_ms AS BIGINT) AS due_ms)"
        " FROM raw WHERE lower(system) = 'rocketmq'"
    )
    # A span of a batch has no message id of its own; its links name the messages.
    database.execute(
        "CREATE TABLE spans AS SELECT * EXCLUDE (message_id, linked_ids, system, error),"
        " unnest(CASE WHEN message_id IS NULL THEN list_distinct(linked_ids)"
        " ELSE string_split(message_id, ',') END) AS message_id"
        " FROM named WHERE operation IS NOT NULL AND start_us IS NOT NULL"
    )
    all_, named, nameless = database.execute(
        "SELECT (SELECT count(*) FROM raw), (SELECT count(*) FROM named WHERE operation IS NOT NULL),"
        " (SELECT count(*) FROM named WHERE operation IS NOT NULL"
        "  AND message_id IS NULL AND coalesce(len(linked_ids), 0) = 0)"
    ).fetchall()[0]
    (spans,) = database.execute("SELECT count(*) FROM spans").fetchall()[0]
    return SpanCounts(spans, nameless, all_ - named, unreadable)


# --- OTLP JSON lines


def _lines(file: Path) -> str:
    # Without `records`, one line that is not an object would make all others NULL.
    return (
        f"read_json({quoted(escape(str(file)))}, format = 'newline_delimited', records = true,"
        f" ignore_errors = true, maximum_object_size = {LINE_BYTES_MAX},"
        f" columns = {{'resourceSpans': {quoted(_REQUEST)}}})"
    )


def _of_lines(file: Path) -> str:
    return _of_requests(_lines(file))


def _of_requests(source: str) -> str:
    """Return a query on export requests: one row for each span."""
    spans = (
        'SELECT unnest(scope."spans") AS span FROM ('
        'SELECT unnest(request."scopeSpans") AS scope FROM ('
        f'SELECT unnest("resourceSpans") AS request FROM {source}))'
    )
    named = ", ".join(
        f"coalesce({', '.join(_keyed('span.attributes', name) for name in names)}) AS {column}"
        for column, names in _ATTRIBUTES.items()
    )
    ids = " , ".join(_keyed("link.attributes", name) for name in _ATTRIBUTES["message_id"])
    return (
        'SELECT span."traceId" AS trace_id, span."traceState" AS trace_state,'
        ' TRY_CAST(span."startTimeUnixNano" AS BIGINT) // 1000 AS start_us,'
        ' TRY_CAST(span."endTimeUnixNano" AS BIGINT) // 1000 AS end_us,'
        " span.\"status\".\"code\" IN ('2', 'STATUS_CODE_ERROR') AS failed,"
        ' list_transform(span."links", lambda link: link."traceId") AS links,'
        f' list_filter(list_transform(span."links", lambda link: coalesce({ids})),'
        " lambda id: id IS NOT NULL) AS linked_ids,"
        f" {named} FROM ({spans})"
    )


def _keyed(attributes: str, name: str) -> str:
    """Return the value of an attribute in a list of keys and values."""
    found = f'list_filter({attributes}, lambda each: each."key" = {quoted(name)})'
    value = f'list_extract({found}, 1)."value"'
    return f"coalesce({', '.join(f'({value}).{identifier(kind)}' for kind in _VALUES)})"


# --- Parquet

_PARQUET: Final[Mapping[str, tuple[str, ...]]] = {
    "trace_id": ("traceid",),
    "trace_state": ("tracestate",),
    "start": ("starttimeunixnano", "startunixnano", "starttime", "timestamp"),
    "end": ("endtimeunixnano", "endunixnano", "endtime"),
    "duration": ("duration", "durationnano", "durationns"),
    "status": ("statuscode", "status"),
    "attributes": ("spanattributes", "attributes"),
}
"""What is read, to the names of columns that give it, in lower case and without separators."""


def _of_parquet(database: "DuckDBPyConnection", file: Path) -> str:
    source = f"read_parquet({quoted(escape(str(file)))})"
    described = database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    if "resourceSpans" in types:
        return _of_requests(f'(SELECT CAST("resourceSpans" AS {_REQUEST}) AS "resourceSpans" FROM {source})')
    plain = {"".join(c for c in name.lower() if c.isalnum()): name for name in reversed(types)}
    named = {
        wanted: next((plain[each] for each in names if each in plain), None)
        for wanted, names in _PARQUET.items()
    }
    if lacking := [name for name in ("trace_id", "start", "attributes") if named[name] is None]:
        raise InputError(
            f"{file}: no column for {lacking[0]} of spans, expected one of {', '.join(_PARQUET[lacking[0]])}"
        )
    columns = {name: identifier(column) for name, column in named.items() if column}
    kinds = {name: types[column] for name, column in named.items() if column}
    start = _time(columns["start"], kinds["start"])
    end = _time(columns["end"], kinds["end"]) if "end" in columns else "NULL"
    if "duration" in columns:
        end = f"coalesce({end}, {start} + CAST({columns['duration']} AS BIGINT) // 1000)"
    attributes = ", ".join(
        f"coalesce({', '.join(_flat(file, columns['attributes'], kinds['attributes'], n) for n in names)})"
        f" AS {column}"
        for column, names in _ATTRIBUTES.items()
    )
    status = f"lower(CAST({columns['status']} AS VARCHAR))" if "status" in columns else "NULL"
    return (
        f"SELECT CAST({columns['trace_id']} AS VARCHAR) AS trace_id,"
        f" {columns.get('trace_state', 'NULL')} AS trace_state, {start} AS start_us, {end} AS end_us,"
        f" {status} IN ('2', 'error', 'status_code_error') AS failed,"
        f" []::VARCHAR[] AS links, []::VARCHAR[] AS linked_ids, {attributes} FROM {source}"
    )


def _time(column: str, kind: str) -> str:
    """Return microseconds: of a timestamp, or of a number of nanoseconds."""
    return f"epoch_us({column})" if kind.startswith("TIMESTAMP") else f"CAST({column} AS BIGINT) // 1000"


def _flat(file: Path, column: str, kind: str, name: str) -> str:
    if kind.startswith("MAP("):
        return f"CAST({column}[{quoted(name)}] AS VARCHAR)"
    if kind in ("VARCHAR", "JSON"):
        path = '$."' + name + '"'
        return f"json_extract_string({column}, {quoted(path)})"
    if "key" in kind and "value" in kind and kind.endswith("[]"):
        return _keyed(f"CAST({column} AS {_KEYED})", name)
    raise InputError(f"{file}: attributes are {kind[:60]}, expected a map of texts, or JSON")
