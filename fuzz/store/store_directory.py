"""The files of a real store directory, for single faults. Only the written part of a file has blocks."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Final

from mqproof.fuzz.store.single_fault import BLOCK_BYTES, kind_of

_LOCKS: Final = frozenset({"lock", "LOCK"})


class StoreDirectory:
    """The files below one directory, and what they contained earlier. Paths are relative to it."""

    def __init__(self, directory: Path, older: Path) -> None:
        self._directory = directory
        self._older = older

    @property
    def before(self) -> Mapping[str, bytes]:
        return {path: _used(self._older / path, self.content(path)) for path in _paths(self._older)}

    def paths(self) -> list[str]:
        """Return the paths so that each type of file is as frequent as any other."""
        by_kind: dict[str, list[str]] = defaultdict(list)
        for path in _paths(self._directory):
            by_kind[kind_of(path)].append(path)
        most = max(map(len, by_kind.values()), default=0)
        repeated = [[files[at % len(files)] for at in range(most)] for _, files in sorted(by_kind.items())]
        return [path for row in zip_longest(*repeated) for path in row]

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
    """Return the content up to the last block with data, and at least as much as `like` has."""
    content = path.read_bytes() if path.exists() else b""
    used = len(content.rstrip(b"\0"))
    return content[: max(-(-used // BLOCK_BYTES) * BLOCK_BYTES, len(like))]
