"""Folders that appear whole or not at all: written beside their place, and moved there when they are done."""

import contextlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from report.beside import folder_beside


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder`, into which moves what is in it at the end.

    Entries of the same name are replaced, others stay. After an exception `folder` is as it was. Moving needs
    no room, so that a full disk shows before anything is replaced.

    Raises:
        OSError: it cannot be written.
    """
    folder = folder.resolve()
    with folder_beside(folder) as beside:
        try:
            yield beside
            with contextlib.suppress(OSError):
                folder.rmdir()  # where it is empty
            if not folder.exists():
                beside.rename(folder)
                return
            with _undisturbed():
                for entry in sorted(beside.iterdir()):
                    _replace(entry, folder / entry.name, beside)
        except OSError as error:
            if str(error.filename).startswith(str(beside)):
                error.filename = str(folder)  # which the user knows
            raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait for what takes no time."""
    told_to_end = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, told_to_end)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _replace(entry: Path, place: Path, beside: Path) -> None:
    # A folder cannot be renamed onto one that has something in it.
    if place.is_dir() and not place.is_symlink():
        place.rename(beside / f"{entry.name}.replaced")
    entry.replace(place)
