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
    replaced = folder.with_name(f".{folder.name[:100]}.replaced")
    _restore(replaced, folder, replaces)
    with folder_beside(folder) as new_folder:
        try:
            yield new_folder
            with contextlib.suppress(OSError):
                folder.rmdir()  # if it is empty
            with _signals_blocked():
                if folder.exists():
                    folder.rename(replaced)
                try:
                    new_folder.rename(folder)
                finally:
                    _restore(replaced, folder, replaces)
        except OSError as error:
            if str(error.filename).startswith(str(new_folder)):
                error.filename = str(folder)  # the path that the user knows
            raise


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM during short operations."""
    signals = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _restore(replaced: Path, folder: Path, replaces: Collection[str]) -> None:
    """Move entries back that were moved aside, unless there is a new one or `replaces` names them."""
    if not replaced.is_dir():
        return
    if not folder.exists():
        replaced.rename(folder)
        return
    for entry in replaced.iterdir():
        if entry.name not in replaces and not (folder / entry.name).exists():
            entry.rename(folder / entry.name)
    shutil.rmtree(replaced, ignore_errors=True)
