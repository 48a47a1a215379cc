"""Copies the inputs on object stores to a temporary folder, for commands that read event logs."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mqproof.report.console import stages, terminable
from mqproof.report.model import Exit
from mqproof.spark_audit.command.failures import fail, say
from mqproof.spark_audit.runtime.scratch import scratch


@dataclass(frozen=True, slots=True)
class LocalCopies:
    paths: list[str]
    """Local paths of all inputs."""
    origins: tuple[str, ...] = ()
    """What was copied, one line each."""


@contextmanager
def local_copies(paths: Sequence[str]) -> Iterator[LocalCopies]:
    """Yield local paths of the inputs; the copies exist meanwhile.

    A remote path that cannot be read ends the command with one line.
    """
    from mqproof.spark_audit.sources.inputs import InputError
    from mqproof.spark_audit.sources.object_stores import fetch, paths_by_place

    local, remote = paths_by_place(paths)
    if not remote:
        yield LocalCopies(local)
        return
    if find_spec("pyarrow") is None:
        fail(f"{remote[0]}: install what reads it: pip install 'mqproof[audit]'", Exit.TOOL)
    with terminable(), scratch(Path(tempfile.gettempdir()).resolve()) as folder:
        origins = []
        with stages("audit") as stage:
            for number, uri in enumerate(remote):
                place = folder / f"copy-{number}"
                place.mkdir()
                try:
                    origins.append(fetch(uri, place, stage).line())
                except InputError as error:
                    fail(str(error))
                local.append(str(place))
        for line in origins:
            say(line)
        yield LocalCopies(local, tuple(origins))
