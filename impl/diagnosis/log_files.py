"""Reads event logs for a diagnosis: in one pass, keeping only the events that may matter.

A line is decoded only if its bytes contain the message's id or the name of a kind that explains others.
"""

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from mqproof.impl.diagnosis.history import CONTEXT, History, HistoryBuilder
from mqproof.spec.events import Event, EventError, Kind, decode

SUFFIXES: Final = (".ndjson", ".ndjson.gz", ".ndjson.zst", ".parquet")
LINE_BYTES_MAX: Final = 1 << 20
"""The longest line that is read."""
FILES_MAX: Final = 100_000


class LogError(ValueError):
    """A log cannot be read. The message is one line: the file, and why."""


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """Return the event logs among files and under folders, each once, sorted.

    Raises:
        LogError: a path does not exist, or has no event log.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            inside = [each for each in sorted(path.rglob("*")) if _is_log(each) and each.is_file()]
            if not inside:
                raise LogError(f"{path}: no event log in this folder (expected {', '.join(SUFFIXES)})")
            found.update(inside[:FILES_MAX])
        elif path.is_file():
            found.add(path)
        else:
            raise LogError(f"{path}: no such file or folder")
    return sorted(found)


def read_histories(files: Sequence[Path], message_ids: Sequence[str]) -> dict[str, History]:
    """Return what the logs say about each message.

    Raises:
        LogError: a file cannot be read, or a line that may matter is not an event.
    """
    builders = {each: HistoryBuilder(each) for each in message_ids}
    for event in _events(files, [each.encode() for each in message_ids]):
        for builder in builders.values():
            builder.add(event)
    return {each: builder.build() for each, builder in builders.items()}


def ids_with_key(files: Sequence[Path], key: str, topic: str | None) -> list[str]:
    """Return the ids of the messages that have the key, newest first."""
    newest: dict[str, int] = {}
    for event in _events(files, [key.encode()], context=False):
        if event.msg_id and key in (event.keys or "").split() and topic in (None, event.topic):
            newest[event.msg_id] = max(event.ts, newest.get(event.msg_id, event.ts))
    return sorted(newest, key=lambda each: -newest[each])


_EXPLAINING: Final = re.compile(
    rb'"kind"\s*:\s*"(?:'
    + b"|".join(sorted(kind.encode() for kind in CONTEXT))
    + rb'|offset_commit|deliver)"'
)


def _events(files: Sequence[Path], wanted: Sequence[bytes], *, context: bool = True) -> Iterator[Event]:
    for file in files:
        if file.suffix == ".parquet":
            yield from _of_parquet(file, wanted, context=context)
            continue
        try:
            with _opened(file) as lines:
                yield from _of_lines(file, lines, wanted, context=context)
        except (OSError, EOFError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise LogError(f"{file}: {reason}") from None
        except Exception as error:
            if not type(error).__module__.endswith("zstd"):
                raise
            raise LogError(f"{file}: damaged: {error}") from None


def _of_lines(file: Path, lines: Any, wanted: Sequence[bytes], *, context: bool) -> Iterator[Event]:
    number = 0
    while line := lines.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise LogError(f"{file}:{number}: a line of more than {LINE_BYTES_MAX} bytes")
        is_wanted = any(each in line for each in wanted)
        # The first line shows whether the log is there from its beginning.
        if not is_wanted and not (context and (number == 1 or _EXPLAINING.search(line))):
            continue
        try:
            yield decode(line, f"{file}:{number}")
        except EventError as error:
            if line.endswith(b"\n"):
                raise LogError(str(error)) from None
            return  # an incomplete write at the end


def _opened(file: Path) -> Any:
    if file.name.endswith(".gz"):
        return gzip.open(file, "rb")
    if file.name.endswith(".zst"):
        return _zstd_opened(file)
    return file.open("rb")


def _zstd_opened(file: Path) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise LogError(f"{file}: to read it, pip install 'mqproof[zstd]'") from None
    return zstd.open(file, "rb")


def _is_log(file: Path) -> bool:
    return file.name.endswith(SUFFIXES) and not file.name.startswith((".", "_"))


def _of_parquet(file: Path, wanted: Sequence[bytes], *, context: bool) -> Iterator[Event]:
    """Yield the events of a Parquet file. Needs DuckDB, which the extra `audit-local` installs."""
    import duckdb

    texts = [each.decode() for each in wanted]
    kinds = [*CONTEXT, Kind.OFFSET_COMMIT, Kind.DELIVER] if context else []
    source = f"read_parquet('{_escaped(file)}', hive_partitioning = false)"
    try:
        with duckdb.connect() as database:
            given = {row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
            if lacking := [name for name in ("ts", "seq", "node", "kind") if name not in given]:
                raise LogError(f"{file}: not an event log: column {lacking[0]} is missing")
            present = [name for name in Event.__struct_fields__ if name in given]
            where = " OR ".join(
                [f'"{name}" IN (SELECT unnest($1::VARCHAR[]))' for name in ("msg_id",) if name in given]
                + ["list_has_any(string_split(\"keys\", ' '), $1::VARCHAR[])"] * ("keys" in given)
                + ['"kind" = ANY($2::VARCHAR[])', '"seq" = 0']
            )
            named = ", ".join(f'"{name}"' for name in present)
            rows = database.execute(
                f"SELECT {named} FROM {source} WHERE {where}", [texts, [str(kind) for kind in kinds]]
            )
            while found := rows.fetchmany(10_000):
                for row in found:
                    values = {
                        name: value for name, value in zip(present, row, strict=True) if value is not None
                    }
                    yield _event(file, values)
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise LogError(f"{file}: {reason}") from None


def _escaped(file: Path) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", str(file)).replace("'", "''")


def _event(file: Path, values: dict[str, object]) -> Event:
    import msgspec

    try:
        return msgspec.convert(values, Event)
    except msgspec.ValidationError as error:
        raise LogError(f"{file}: not an event: {error}") from None
