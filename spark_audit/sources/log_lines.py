"""The lines of an NDJSON event log: which are events, and the checks of a file's first and last line."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Final, cast

import msgspec

from mqproof.spark_audit.sources.inputs import InputError, partition_values
from mqproof.spec.events import NUMBER_MAX, REQUIRED, SCHEMA_VERSION, Kind

TAIL_BYTES_MAX: Final = 1 << 20
"""A torn last line longer than this is reported as corrupt instead of being skipped."""
LINE_BYTES_MAX: Final = 64 << 20
"""The longest line that is held in memory."""
_CHUNK_BYTES: Final = 4 << 20

_Number = Annotated[int, msgspec.Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]
_Small = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class _Line(msgspec.Struct, gc=False):
    """The columns of an event with their types; all others are ignored."""

    ts: _Number
    seq: _Number
    node: str
    kind: Kind
    msg_id: str | None = None
    topic: str | None = None
    queue_id: _Small | None = None
    queue_offset: _Number | None = None
    commit_offset: _Number | None = None
    group: str | None = None
    client: str | None = None
    term: _Number | None = None
    status: str | None = None
    attempt: _Small | None = None
    keys: str | None = None
    born_ts: _Number | None = None
    attrs: dict[str, str | None] | None = None


_TEXTS: Final = ("node", "kind", "msg_id", "topic", "group", "client", "status", "keys")
_decoder: Final = msgspec.json.Decoder(_Line)


class UnusualLineError(ValueError):
    """Spark may read the line as an event; its rules are not repeated here."""


def opened(file: Path) -> IO[bytes]:
    """Open a log for reading; it is decompressed according to its suffix."""
    if file.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(file))
    if file.suffix == ".zst":
        return _zstd_opened(file)
    return file.open("rb")


def _zstd_opened(file: Path) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14
    except ImportError:
        from backports import zstd
    return cast("IO[bytes]", zstd.open(file))


DAMAGED: Final = (zlib.error, EOFError)
"""What a reader raises for a damaged file, in addition to OSError and the errors of zstd."""


def examined(lines: Iterator[bytes], *, as_spark: bool = True) -> Iterator[tuple[bytes, int]]:
    """Yield chunks of lines with their number of events; a line that is not an event comes alone, with 0.

    Empty lines are left out. Without `as_spark`, a line that only Spark's rules decide is not an event.

    Raises:
        UnusualLineError: it is not certain how Spark reads a line.
    """
    for chunk in lines:
        if events := _events(chunk):
            yield chunk, events
            continue
        for line in chunk.splitlines(keepends=True):
            if line.strip():
                yield line, _events(line.lstrip(b" \t\r")) or (_no_event(line) if as_spark else 0)


def chunks(log: IO[bytes]) -> Iterator[bytes]:
    """Yield the whole lines of a log, many at a time; the last one may lack its end.

    Raises:
        UnusualLineError: a line is longer than LINE_BYTES_MAX.
    """
    rest = bytearray()
    while some := log.read(_CHUNK_BYTES):
        whole, newline, tail = some.rpartition(b"\n")
        if newline:
            yield bytes(rest) + whole + newline
            rest.clear()
        rest += tail
        if len(rest) > LINE_BYTES_MAX:
            shown = rest[:80].decode(errors="replace")
            raise UnusualLineError(f"longer than {LINE_BYTES_MAX} bytes: {shown}")
    if rest:
        yield bytes(rest)


def _events(lines: bytes) -> int:
    """Return the number of events; 0 if one of the lines is none."""
    try:
        rows = _decoder.decode_lines(lines)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 0
    # The decoder also accepts two objects in one line, one in two lines, and empty lines.
    ends = lines.count(b"\n") + (not lines.endswith(b"\n"))
    begins = lines.count(b"\n{") + lines.startswith(b"{")
    if not len(rows) == ends == begins:
        return 0
    are_readable = b'"schema"' not in lines or all(_is_readable(row.attrs) for row in rows)
    return len(rows) if are_readable else 0


def _is_readable(attrs: dict[str, str | None] | None) -> bool:
    schema = (attrs or {}).get("schema")
    if schema is None:
        return True
    try:
        return int(schema) <= SCHEMA_VERSION
    except ValueError:
        return False


def _no_event(line: bytes) -> int:
    """Return 0 for a line that is not an event to Spark either.

    Raises:
        UnusualLineError: that is not certain.
    """
    shown = line[:80].decode(errors="replace")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise UnusualLineError(f"not UTF-8: {shown}") from None
    try:
        row = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if "\\u" in text.lower():
            raise UnusualLineError(f"half a character: {shown}") from None
        return 0
    if isinstance(row, list):
        raise UnusualLineError(f"a list: {shown}")
    if not isinstance(row, dict):
        return 0
    attrs = row.get("attrs")
    texts = [row.get(name) for name in _TEXTS]
    texts += attrs.values() if isinstance(attrs, dict) else []
    if not all(value is None or isinstance(value, str) for value in texts):
        raise UnusualLineError(f"a text is not in quotes: {shown}")
    return 0


def torn_tail(file: Path) -> bytes:
    """Return the bytes after the last newline of an NDJSON file if they are not a whole object.

    A writer may omit the newline after the last object; the result is then empty.
    """
    tail = b""
    with opened(file) as log:
        if file.suffix == ".ndjson":
            log.seek(max(0, file.stat().st_size - 2 * TAIL_BYTES_MAX))
        while some := log.read(TAIL_BYTES_MAX):
            tail = (tail[-TAIL_BYTES_MAX:] + some).rpartition(b"\n")[2]
    is_torn = tail.strip() and len(tail) <= TAIL_BYTES_MAX and object_in(tail) is None
    return tail if is_torn else b""


def object_in(line: bytes) -> dict[str, object] | None:
    """Return the JSON object in the line; None if it is not one."""
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except (ValueError, RecursionError):  # includes msgspec's own errors
        return None


def is_empty(file: Path) -> bool:
    """Return whether the file is a log without lines.

    Raises:
        InputError: the file has no bytes, and its format does not allow that.
    """
    if file.stat().st_size:
        return False
    if file.suffix != ".ndjson":
        raise InputError(f"{file}: is empty, expected a complete {file.suffix} file")
    return True


def check_columns(where: str, file: Path, own: Sequence[str]) -> None:
    """Refuse a log that lacks a required column.

    Raises:
        InputError: it does.
    """
    names = [*own, *(name for name, _ in partition_values(file))]
    if missing := [name for name in REQUIRED if name not in names]:
        raise InputError(
            f"{where}: missing column {', '.join(missing)}: an event log needs {', '.join(REQUIRED)}; "
            f"this one has {', '.join(names) or 'none'}"
        )
