"""Creates files and folders under a temporary name next to their final path, so that they appear complete.

The temporary name is fixed, so that the next run reuses and removes what a killed process left behind.
"""

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
    """Yield an empty file next to `place`, to be moved there.

    A file that was not moved is removed at the end.
    """
    with _beside(place, is_folder=False) as made:
        yield made


@contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """Yield an empty folder, as `file_beside` yields a file."""
    with _beside(place, is_folder=True) as made:
        yield made


def try_place(place: Path) -> None:
    """Check that a file can be created next to `place`.

    It leaves nothing behind and creates no missing folder.

    Raises:
        OSError: a file cannot be created there; the error's file name is `place`.
    """
    with _named(place):
        folder = place.resolve().parent
        while not folder.exists():
            folder = folder.parent
        Path(tempfile.mkdtemp(".tmp", ".", folder)).rmdir()


@contextmanager
def _beside(place: Path, *, is_folder: bool) -> Iterator[Path]:
    """Yield `.NAME.tmp`, locked while this process lives. Another live process uses another name."""
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
    """Let errors name the path that the user gave."""
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
    """Return the lock, or None if another process has it or the file system has no locks."""
    held = os.open(path, os.O_RDONLY)
    with contextlib.suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have moved the file away and created a new one meanwhile.
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
