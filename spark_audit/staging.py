"""Folders that appear whole or not at all: written beside their place, and moved there when they are done."""

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder`, into which moves what is in it at the end.

    Entries of the same name are replaced, others stay. After an exception `folder` is as it was. Moving needs
    no room, so that a full disk shows before anything is replaced.

    Raises:
        OSError: it cannot be written.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name[:100]}.{secrets.token_hex(8)}.tmp")
    beside.mkdir()
    try:
        yield beside
        with contextlib.suppress(OSError):
            folder.rmdir()  # where it is empty
        if not folder.exists():
            beside.rename(folder)
            return
        for entry in sorted(beside.iterdir()):
            _replace(entry, folder / entry.name, beside)
    except OSError as error:
        if str(error.filename).startswith(str(beside)):
            error.filename = str(folder)  # which the user knows
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _replace(entry: Path, place: Path, beside: Path) -> None:
    # A folder cannot be renamed onto one that has something in it.
    if place.is_dir() and not place.is_symlink():
        place.rename(beside / f"{entry.name}.replaced")
    entry.replace(place)
