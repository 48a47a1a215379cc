"""The formats from and to which `mqproof convert-history` converts."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from mqproof.conformance.history.exchange import read_jepsen, read_openchaos, write_elle, write_jepsen
from mqproof.conformance.history.lines import Line, decode_lines, encode


def _read_jsonl(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        yield from decode_lines(file, str(path))


def _read_columns(path: Path) -> Iterable[Line]:
    from mqproof.conformance.history.columns.conversion import read_columns  # needs numpy

    return read_columns(path)


def _write_columns(history: Iterable[Line], source: Path, target: Path) -> None:
    from mqproof.conformance.history.columns.conversion import write_columns  # needs numpy

    write_columns(history, str(source), target)


def _write_jsonl(history: Iterable[Line], _: Path, target: Path) -> None:
    lines = list(history)
    with target.open("wb") as file:
        file.writelines(map(encode, lines))


READERS: Final[dict[str, Callable[[Path], Iterable[Line]]]] = {
    "jsonl": _read_jsonl,
    "columns": _read_columns,
    "jepsen": read_jepsen,
    "openchaos": read_openchaos,
}
WRITERS: Final[dict[str, Callable[[Iterable[Line], Path, Path], object]]] = {
    "jsonl": _write_jsonl,
    "columns": _write_columns,
    "jepsen": lambda history, _, target: target.write_bytes(write_jepsen(history)),
    "elle": lambda history, _, target: target.write_bytes(write_elle(history)),
}
"""Each takes the lines, the file that they come from, for messages, and the file to write."""
