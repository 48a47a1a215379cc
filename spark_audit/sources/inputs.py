"""Finds the input files of the audit: each once, even if it is given several times or under several names."""

import glob
import hashlib
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUFFIXES: Final = (".ndjson", ".ndjson.gz", ".ndjson.zst", ".parquet")

_SAMPLE_BYTES: Final = 1 << 16


class InputError(ValueError):
    """The input cannot be audited. The message is one line: the file, what was expected, what was found."""


@dataclass(frozen=True, slots=True)
class Inputs:
    files: tuple[Path, ...]
    """Files to read: sorted, each once."""
    repeats: tuple[tuple[Path, Path], ...] = ()
    """Files that are not read, each with the one of `files` of which it is a copy or another name."""
    origins: tuple[str, ...] = ()
    """For each table that was converted into one of `files`: its name, and what became of its rows."""

    def repeat_messages(self) -> Iterator[str]:
        """Yield a message to the user for each repeated file."""
        for repeat, original in self.repeats:
            again = "given again" if repeat == original else f"{original} again"
            yield f"{repeat} is {again}: counted once"


def find_files(paths: Sequence[str]) -> Inputs:
    """Return the event logs under files, folders (searched recursively) and glob patterns.

    Names that begin with a dot or an underscore are ignored unless they are given explicitly.

    Raises:
        InputError: a path does not exist, matches nothing, or has no event log in it; a file cannot be read.
    """
    found: dict[Path, Path] = {}
    repeats: dict[Path, Path] = {}
    for path in paths:
        # Path.glob does not accept an absolute pattern.
        matches = [Path(path)] if Path(path).exists() else sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207
        if not matches:
            raise InputError(f"{path}: no such file or folder")
        for match in matches:
            for file in _files_of(match, named=str(match) == path):
                real = file.resolve()
                if real in found:
                    repeats[file] = found[real]
                else:
                    found[real] = _named(file)
    if not found:
        raise InputError(f"{', '.join(paths)}: no event log matches (expected {', '.join(SUFFIXES)})")
    try:
        copies = dict(_copies(sorted(found.values())))
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    files = tuple(sorted(file for file in found.values() if file not in copies))
    return Inputs(files, tuple(sorted({**repeats, **copies}.items())))


def partition_values(file: Path) -> tuple[tuple[str, str], ...]:
    """Return the values in a file's folder names, as in `topic=orders/date=2026-11-01/part-0.parquet`."""
    values: list[tuple[str, str]] = []
    for folder in file.absolute().parents:
        name, separator, value = folder.name.partition("=")
        if not separator:
            break
        values.append((name, value))
    return tuple(reversed(values))


def partition_root(file: Path) -> Path:
    """Return the folder that contains the folders of `partition_values`."""
    return file.absolute().parents[len(partition_values(file))]


def literal(path: Path) -> str:
    """Escape a path for Spark, which treats brackets and stars as a pattern even if the file exists."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))


def _named(file: Path) -> Path:
    """Return the file.

    Raises:
        InputError: its name is not text, so Spark cannot open it.
    """
    try:
        str(file.absolute()).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(file)!a}: its name is not UTF-8, which Spark needs: rename it") from None
    return file


def _files_of(path: Path, named: bool) -> set[Path]:
    if path.is_file():
        if not path.name.endswith(SUFFIXES) or (not named and path.name.startswith((".", "_"))):
            if not named:
                return set()
            raise InputError(f"{path}: not an event log by its name, expected {', '.join(SUFFIXES)}")
        return {path}
    try:
        inside = set(logs_inside(path))
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    if not inside:
        raise InputError(f"{path}: no event log in this folder (expected {', '.join(SUFFIXES)})")
    return inside


def logs_inside(folder: Path) -> Iterator[Path]:
    """Yield the event logs in a folder. Links are followed, and each folder is visited once.

    Raises:
        OSError: a folder cannot be read (`Path.rglob` would silently skip it), or a link is broken.
    """

    def refuse(error: OSError) -> None:
        raise error

    seen: set[Path] = set()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        real = Path(place).resolve()
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        files = (Path(place, name) for name in names if not name.startswith((".", "_")))
        for file in files:
            if file.name.endswith(SUFFIXES) and stat.S_ISREG(file.stat().st_mode):
                yield file


def _copies(files: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each file with the same bytes as an earlier one. Only files of equal size are compared."""
    candidates: dict[object, list[Path]] = defaultdict(list)
    for file in files:
        size = file.stat().st_size
        # With equal bytes but different folder columns, the rows differ; an empty file has no rows.
        if size:
            candidates[(size, partition_values(file))].append(file)
    for same_size in candidates.values():
        for same_ends in _by(_ends, same_size):
            for original, *others in _by(_digest, same_ends):
                yield from ((other, original) for other in others)


def _by(key_of: Callable[[Path], bytes], files: Sequence[Path]) -> list[list[Path]]:
    """Group files with equal results of `key_of`; a single file is not examined."""
    groups: dict[bytes, list[Path]] = defaultdict(list)
    for file in files:
        groups[key_of(file) if len(files) > 1 else b""].append(file)
    return list(groups.values())


def _ends(file: Path) -> bytes:
    """Return the first and last bytes, which distinguish nearly all logs of equal size."""
    with file.open("rb") as log:
        first = log.read(_SAMPLE_BYTES)
        log.seek(max(0, file.stat().st_size - _SAMPLE_BYTES))
        return first + log.read()


def _digest(file: Path) -> bytes:
    with file.open("rb") as log:
        return hashlib.file_digest(log, "blake2b").digest()
