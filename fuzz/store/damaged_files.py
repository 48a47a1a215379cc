"""The files of a store whose bytes change without its knowledge: on a simulated or a real disk."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from mqproof.fuzz.store.simulated_store import DIRECTORY
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

_LOCKS: Final = frozenset({"lock", "LOCK"})
BLOCK_BYTES: Final = 64
"""The size of a block. A real one has 4096 bytes; the files of this store are as much smaller."""


class Files(Protocol):
    """The files of a store, which a fault alters without the knowledge of the store."""

    @property
    def before(self) -> Mapping[str, bytes]:
        """What the files contained before the last part of the store was written."""
        ...

    def paths(self) -> list[str]:
        """Return the paths of all files; a fault is as likely in a file as it occurs here."""
        ...

    def content(self, path: str) -> bytes: ...
    def damage(self, path: str, at: int, data: bytes) -> None: ...
    def truncate(self, path: str, size: int) -> None: ...
    def replace(self, path: str, content: bytes) -> None: ...
    def lose(self, path: str) -> None: ...


def kind_of(path: str) -> str:
    """Return the type of a file of the store."""
    folder, *rest = path.removeprefix("/").removeprefix(f"{DIRECTORY}/").split("/")
    if folder.startswith("dledger-"):
        return {"data": "ledger", "index": "ledger index"}.get(rest[0], "ballot")
    return {"commitlog": "commit log", "consumequeue": "consume queue", "index": "key index"}.get(
        folder, folder
    )


@dataclass(frozen=True, slots=True)
class DiskFiles:
    """The files below one directory of a simulated disk, and what they contained on an older copy of it.

    `is_sparse`: only the written part of a file has blocks, and all types of files are equally frequent.
    """

    disk: SimulatedDisk
    older: SimulatedDisk
    directory: str
    is_sparse: bool = False

    @property
    def before(self) -> Mapping[str, bytes]:
        now = self.paths()
        return {
            path: self._read(self.older, path, len(self.content(path)) if path in now else 0)
            for path in self.older.files(self.directory)
        }

    def paths(self) -> list[str]:
        paths = self.disk.files(self.directory)
        return _evenly(paths) if self.is_sparse else paths

    def content(self, path: str) -> bytes:
        return self._read(self.disk, path)

    def damage(self, path: str, at: int, data: bytes) -> None:
        self.disk.damage(path, at, data)

    def truncate(self, path: str, size: int) -> None:
        self.disk.truncate(path, size)

    def replace(self, path: str, content: bytes) -> None:
        self.disk.resize(path, content)

    def lose(self, path: str) -> None:
        self.disk.lose(path)

    def _read(self, disk: SimulatedDisk, path: str, bytes_min: int = 0) -> bytes:
        file = disk.open(path)
        size = _used_bytes(disk.written(path), bytes_min) if self.is_sparse else file.size()
        return file.read(0, size)


class StoreDirectory:
    """The files below one directory, and what they contained earlier. Paths are relative to it."""

    def __init__(self, directory: Path, older: Path) -> None:
        self._directory = directory
        self._older = older

    @property
    def before(self) -> Mapping[str, bytes]:
        return {path: _used(self._older / path, self.content(path)) for path in _paths(self._older)}

    def paths(self) -> list[str]:
        return _evenly(_paths(self._directory))

    def content(self, path: str) -> bytes:
        return _used(self._directory / path)

    def damage(self, path: str, at: int, data: bytes) -> None:
        with (self._directory / path).open("r+b") as file:
            file.seek(at)
            file.write(data)

    def truncate(self, path: str, size: int) -> None:
        with (self._directory / path).open("r+b") as file:
            file.truncate(size)

    def replace(self, path: str, content: bytes) -> None:
        (self._directory / path).write_bytes(content)

    def lose(self, path: str) -> None:
        (self._directory / path).unlink()


def _paths(directory: Path) -> list[str]:
    found = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if path.name not in _LOCKS)


def _used(path: Path, like: bytes = b"") -> bytes:
    content = path.read_bytes() if path.exists() else b""
    return content[: _used_bytes(content, len(like))]


def _used_bytes(content: bytes, bytes_min: int) -> int:
    """Return the size up to the last block with data, and at least `bytes_min`."""
    return max(-(-len(content.rstrip(b"\0")) // BLOCK_BYTES) * BLOCK_BYTES, bytes_min)


def _evenly(paths: Iterable[str]) -> list[str]:
    """Return the paths so that each type of file is as frequent as any other."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        by_kind[kind_of(path)].append(path)
    most = max(map(len, by_kind.values()), default=0)
    repeated = [[files[at % len(files)] for at in range(most)] for _, files in sorted(by_kind.items())]
    return [path for row in zip(*repeated, strict=True) for path in row]
