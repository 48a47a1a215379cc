"""Folders that are replaced atomically: written beside their place, and moved there when complete."""

import contextlib
import shutil
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from mqproof.report.staging import folder_beside


@contextmanager
def staged(folder: Path, replaces: Collection[str] = ()) -> Iterator[Path]:
    """Yield an empty folder beside `folder`, which replaces it at the end, as a whole.

    Entries of the same name are replaced, and those that `replaces` names are removed; others stay. After an
    exception `folder` is unchanged. If the process is killed during the move, the next call repairs it.
    Moving needs no space, so a full disk shows before anything is replaced.

    Raises:
        OSError: it cannot be written.
    """
    folder = folder.resolve()
    aside = folder.with_name(f".{folder.name[:100]}.replaced")
    _bring_back(aside, folder, replaces)
    with folder_beside(folder) as beside:
        try:
            yield beside
            with contextlib.suppress(OSError):
                folder.rmdir()  # if it is empty
            with _undisturbed():
                if folder.exists():
                    folder.rename(aside)
                try:
                    beside.rename(folder)
                finally:
                    _bring_back(aside, folder, replaces)
        except OSError as error:
            if str(error.filename).startswith(str(beside)):
                error.filename = str(folder)  # the path that the user knows
            raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM during short operations."""
    told_to_end = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, told_to_end)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _bring_back(aside: Path, folder: Path, replaces: Collection[str]) -> None:
    """Move entries back that were moved aside, unless there is a new one or `replaces` names them."""
    if not aside.is_dir():
        return
    if not folder.exists():
        aside.rename(folder)
        return
    for entry in aside.iterdir():
        if entry.name not in replaces and not (folder / entry.name).exists():
            entry.rename(folder / entry.name)
    shutil.rmtree(aside, ignore_errors=True)
