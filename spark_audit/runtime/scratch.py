"""A run's folder of what is temporary: gone at its end, or, of a killed run, when the next one begins."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREFIX: Final = "mqproof-audit-"


@contextmanager
def scratch(base: Path) -> Iterator[Path]:
    """An empty folder in `base`, which is made where it is missing, locked as long as this process lives.

    Raises:
        OSError: it cannot be made.
    """
    base.mkdir(parents=True, exist_ok=True)
    _sweep(base)
    folder, held = _make(base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _make(base: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        with contextlib.suppress(FileNotFoundError):
            # Another run may have taken it for a dead one's before it was locked: then there is a next.
            held = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # of a file system without locks, where none is swept
                fcntl.flock(held, fcntl.LOCK_EX)
            if folder.exists():
                return folder, held
            os.close(held)


def _sweep(base: Path) -> None:
    """Remove what dead runs of this machine left."""
    for folder in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
