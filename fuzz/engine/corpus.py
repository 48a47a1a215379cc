"""The corpus: inputs worth keeping, in memory or in a folder whose files are named by their content."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mqproof.report.write import write_bytes


class Corpus:
    """A set of inputs. Files are named by their content, so that many writers can share a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """Opens the corpus in the folder, making the folder if need be; without one it lives in memory.

        Raises:
            OSError: the folder cannot be made or read.
        """
        self._folder = folder
        self._known: set[str] = set()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def __len__(self) -> int:
        return len(self._known)

    def unread(self) -> Iterator[bytes]:
        """Inputs in the folder that this corpus has not seen yet, in the order of their names.

        Any regular file is an input, so that people may put seeds there; half-written ones start with a dot.
        """
        if self._folder is None:
            return
        for path in sorted(self._folder.iterdir()):
            if path.name in self._known or path.name.startswith(".") or not path.is_file():
                continue
            data = path.read_bytes()
            self._known |= {path.name, name_of(data)}
            yield data

    def add(self, data: bytes) -> bool:
        """Keep the input; False when it was there already."""
        name = name_of(data)
        if name in self._known:
            return False
        self._known.add(name)
        if self._folder is not None:
            write_bytes(self._folder / name, data)
        return True


def name_of(data: bytes) -> str:
    """The file name of an input: 40 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:40]
