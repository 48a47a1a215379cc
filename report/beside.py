"""What is in the making stands beside its place, and what a killed process left there is taken over."""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_beside(place: Path) -> Iterator[Path]:
    """An empty file beside `place`, to be moved there; gone at the end if it was not."""
    with _beside(place, is_folder=False) as made:
        yield made


@contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """As `file_beside`: an empty folder."""
    with _beside(place, is_folder=True) as made:
        yield made


def try_place(place: Path) -> None:
    """Tries whether something can be made beside `place`; nothing is left of it, no missing folder is made.

    Raises:
        OSError: it cannot, and why; its file is `place`.
    """
    with _named(place):
        folder = place.resolve().parent
        while not folder.exists():
            folder = folder.parent
        Path(tempfile.mkdtemp(".tmp", ".", folder)).rmdir()


@contextmanager
def _beside(place: Path, *, is_folder: bool) -> Iterator[Path]:
    """`.NAME.tmp`, which is locked as long as this process lives: another one that lives has another name."""
    with _named(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        made = place.with_name(f".{place.name[:100]}.tmp")
        _make(made, is_folder)
        held = _lock(made)
        if held is None:
            made = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}.tmp")
            _make(made, is_folder)
    try:
        if is_folder:
            for entry in made.iterdir():
                _remove(entry)
        yield made
    finally:
        _remove(made)
        if held is not None:
            os.close(held)


@contextmanager
def _named(place: Path) -> Iterator[None]:
    """Errors name what the user knows."""
    try:
        yield
    except OSError as error:
        error.filename = str(place)
        raise


def _make(path: Path, is_folder: bool) -> None:
    if is_folder:
        path.mkdir(exist_ok=True)
    else:
        path.touch()


def _lock(path: Path) -> int | None:
    """The lock, or None where somebody else has it or its file system knows none."""
    held = os.open(path, os.O_RDONLY)
    with contextlib.suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Not what another process has moved to its place meanwhile.
        if os.path.samestat(os.fstat(held), path.stat()):
            return held
    os.close(held)
    return None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
