"""Java's archive of TLC's loaded classes, which takes an eighth off the processor time of brief runs.

The first run writes the archive into the user's cache, later runs load it. Java itself refuses an archive
that was made by another Java or for another jar, and runs without it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from mqproof.spec.tlc.toolbox import Toolbox

_JAVA_MIN: Final = 13
"""Earlier versions cannot archive the classes of a jar when a program ends."""
_QUIET: Final = "-Xlog:disable"
"""Without it, Java's remarks about the archive would be lines of TLC's output."""


@contextmanager
def archive_options(tools: Toolbox) -> Iterator[list[str]]:
    """Yield Java's options for one run: they load the archive, or write it if there is none yet.

    They are empty if the archive cannot be kept.
    """
    archive = _place(tools) if tools.java.major >= _JAVA_MIN else None
    if archive is None:
        yield []
        return
    if archive.exists():
        yield [f"-XX:SharedArchiveFile={archive}", _QUIET]
        return
    with tempfile.TemporaryDirectory(dir=archive.parent) as place:
        # Runs may write it at the same time: each writes its own file, and the last one stays.
        written = Path(place) / archive.name
        yield [f"-XX:ArchiveClassesAtExit={written}", _QUIET]
        with suppress(FileNotFoundError):  # Java was killed, or has no archive of its own classes
            written.replace(archive)


def _place(tools: Toolbox) -> Path | None:
    """Return the archive for this Java and this jar, in a folder to which only the user writes.

    Without such a folder, or without the two files, there is none.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mqproof"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = folder.stat()
        files = [(str(file), file.stat()) for file in (tools.java.executable, tools.jar)]
    except OSError:
        return None
    if known.st_uid != os.getuid() or known.st_mode & 0o022 or not os.access(folder, os.W_OK):
        return None
    described = repr([(name, file.st_size, file.st_mtime_ns) for name, file in files])
    return folder / f"tlc-{sha256(described.encode()).hexdigest()[:16]}.jsa"
