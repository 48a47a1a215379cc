"""Folders for the states of incremental runs: the newest is read, and the next one appears atomically."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from mqproof.report.staging import folder_beside
from mqproof.spark_audit.incremental.carried_state import CarriedState, Manifest
from mqproof.spark_audit.incremental.state_tables import read_table
from mqproof.spark_audit.sources.inputs import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.engine.embedded.database import Database

SCHEMA_VERSION: Final = 2

LATE_US: Final = 3_600_000_000

FORGET_US: Final = 30 * 86_400_000_000

MANIFEST: Final = "manifest.json"

UNREADABLE: Final = "unreadable"
"""Rows that are not events (watch.py) are kept beside the states."""

MAPPED: Final = "mapped"
"""Converted tables (mapped_arrivals.py) are kept there, too."""

_STATES_KEPT: Final = 2
"""The newest state, and the one from which its findings can be replayed."""

_TABLES: Final = ("rows", "profile", "steps", "reach", "standing", "findings")


@dataclass(frozen=True, slots=True)
class IncrementalRun:
    """A run that begins with a state and leaves the next."""

    folder: Path
    late_us: int = LATE_US
    carried: CarriedState | None = None
    """The state that the previous run left; None in the first run."""
    forget_us: int = FORGET_US
    """A client without events for this long is no longer remembered; nor is a group without other clients."""
    is_replay: bool = False
    """A state was given directly: the run uses it and leaves none."""

    @property
    def number(self) -> int:
        return self.carried.manifest.run + 1 if self.carried else 1

    @property
    def before(self) -> Path | None:
        """The state with which the run begins, from which its findings can be reproduced."""
        if self.is_replay:
            return self.folder
        return state_path(self.folder, self.number - 1) if self.carried else None


def open_run(
    session: "SparkSession | Database", folder: Path, late_us: int = LATE_US, forget_us: int = FORGET_US
) -> IncrementalRun:
    """Return the run after the newest state in the folder, or after the state that the folder itself is.

    Raises:
        InputError: the folder holds something else, or a state of another version.
    """
    if (folder / MANIFEST).is_file():
        return IncrementalRun(folder, late_us, _read(session, folder), forget_us, is_replay=True)
    states = _states(folder)
    has_other_files = folder.exists() and any(
        not p.name.startswith(".") and p.name not in (UNREADABLE, MAPPED) for p in folder.iterdir()
    )
    if not states and has_other_files:
        raise InputError(f"{folder}: not a state of an audit, and not empty")
    return IncrementalRun(folder, late_us, _read(session, states[-1]) if states else None, forget_us)


def state_path(folder: Path, number: int) -> Path:
    return folder / f"night-{number:06}"


def newest(folder: Path) -> Path | None:
    """Return the newest state in the folder."""
    states = _states(folder)
    return states[-1] if states else None


def carried_files(folder: Path) -> tuple[Path, ...]:
    """Return the files with the events that the next run examines again."""
    last = folder if (folder / MANIFEST).is_file() else newest(folder)
    return tuple((last / "rows").glob("*.parquet")) if last else ()


def _states(folder: Path) -> list[Path]:
    """Return the complete states, in order."""
    return sorted(path for path in folder.glob("night-*") if (path / MANIFEST).is_file())


def _read(session: "SparkSession | Database", state: Path) -> CarriedState:
    manifest = read_manifest(state)
    if manifest.schema != SCHEMA_VERSION:
        raise InputError(
            f"{state}: its schema version is {manifest.schema}, expected {SCHEMA_VERSION}: begin a new folder"
        )

    return CarriedState(manifest, *[read_table(session, state / name) for name in _TABLES])


def read_manifest(state: Path) -> Manifest:
    try:
        return msgspec.json.decode((state / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{state / MANIFEST}: not a state of an audit: {error}") from None


@contextmanager
def next_state(run: IncrementalRun) -> Iterator[Path | None]:
    """Yield a folder for the next state, which becomes the newest at the end; None if none is to follow.

    After an exception the old state remains the newest.

    Raises:
        InputError: another process has finished this run in the meantime.
        OSError: it cannot be written.
    """
    if run.is_replay:
        yield None
        return
    is_new = not run.folder.exists()
    place = state_path(run.folder, run.number)
    try:
        with folder_beside(place) as staging:
            yield staging
            if place.exists():
                raise InputError(f"{place}: another process has finished this run in the meantime")
            staging.rename(place)
            for old in _states(run.folder)[:-_STATES_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
    finally:
        if is_new:
            with suppress(OSError):
                run.folder.rmdir()  # if the folder is still empty
