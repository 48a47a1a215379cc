"""The corpus: the inputs to keep, in memory or in a folder whose files are named by their content."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mqproof.report.write import write_bytes


class Corpus:
    """A set of inputs.

    Files are named by their content, so that several processes can write to one folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Open the corpus in the folder, which is created if it is missing.

        Without a folder the corpus is in memory.

        Raises:
            OSError: the folder cannot be created or read.
        """
        self._folder = folder
        self._known: set[str] = set()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def __len__(self) -> int:
        return len(self._known)

    def unread(self) -> Iterator[bytes]:
        """Yield the inputs in the folder that this corpus has not read yet, in the order of their names.

        Every regular file is an input, so that users may put seeds there. Names of partly written files start
        with a dot and are skipped.
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
        """Keep the input. Return False if the corpus already had it."""
        name = name_of(data)
        if name in self._known:
            return False
        self._known.add(name)
        if self._folder is not None:
            write_bytes(self._folder / name, data)
        return True


def name_of(data: bytes) -> str:
    """Return the file name of an input: the first 40 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:40]
