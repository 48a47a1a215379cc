"""The temporary folder of a run: removed at its end, or, if the run was killed, when the next one begins."""

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
    """Yield an empty folder in `base`, locked as long as this process runs. `base` is created if needed.

    Raises:
        OSError: it cannot be created.
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
            # Another run may have removed the folder before it was locked, taking it for a dead run's: then
            # try again.
            held = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # for a file system without locks, where no folder is swept
                fcntl.flock(held, fcntl.LOCK_EX)
            if folder.exists():
                return folder, held
            os.close(held)


def _sweep(base: Path) -> None:
    """Remove the folders of dead runs on this machine."""
    for folder in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's folder
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
