"""Event logs on object stores and HDFS: copied to a local folder before they are read.

A path is a URI that pyarrow's file systems know, such as `s3://BUCKET/FOLDER`, `gs://...`, `abfs://...` or
`hdfs://...`. Credentials and addresses come from the environment, or from the query of the URI, as in
`s3://BUCKET/FOLDER?endpoint_override=HOST:PORT&scheme=http`.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from mqproof.report.printable import counted
from mqproof.spark_audit.sources.inputs import SUFFIXES, InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

SCHEMES: Final = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
FREE_BYTES_MIN: Final = 1 << 30
"""Free space of the local disk that a copy leaves."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Local copies of remote event logs."""

    folder: Path
    files: int
    bytes: int
    source: str

    def line(self) -> str:
        return f"{self.source}: copied {counted(self.files, 'file')}, {self.bytes / (1 << 20):.1f} MiB"


def is_remote(path: str) -> bool:
    """Return whether a path is on an object store or HDFS."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme in SCHEMES


def fetch(uri: str, folder: Path, stage: Callable[[str], None]) -> Fetched:
    """Copy the event logs at or below the URI into the folder. Names and the folders between stay.

    Raises:
        InputError: the URI cannot be read, has no event log, or is larger than the free space.
    """
    from pyarrow.fs import FileSystem

    shown = uri.partition("?")[0]
    try:
        # Spark and Hadoop call S3 s3a.
        remote, root = FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
        found = _found(remote, root, shown)
        size = sum(info.size or 0 for info in found)
        _check_space(folder, size, shown)
        for number, info in enumerate(found, start=1):
            stage(f"copying {number} of {counted(len(found), 'file')} from {shown}")
            _copy(remote, info.path, folder / _relative(info.path, root))
    except InputError:
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{shown}: {reason or type(error).__name__}") from None
    return Fetched(folder, len(found), size, shown)


def _found(remote: "FileSystem", root: str, shown: str) -> "list[FileInfo]":
    from pyarrow.fs import FileSelector, FileType

    at = remote.get_file_info(root)
    if at.type == FileType.File:
        if not at.path.endswith(SUFFIXES):
            raise InputError(f"{shown}: not an event log by its name, expected {', '.join(SUFFIXES)}")
        return [at]
    if at.type != FileType.Directory:
        raise InputError(f"{shown}: no such file or folder")
    inside = remote.get_file_info(FileSelector(root, recursive=True))
    logs = [info for info in inside if info.type == FileType.File and _is_log(info.path, root)]
    if not logs:
        raise InputError(f"{shown}: no event log in this folder (expected {', '.join(SUFFIXES)})")
    return sorted(logs, key=lambda info: str(info.path))


def _is_log(path: str, root: str) -> bool:
    parts = _relative(path, root).parts
    return path.endswith(SUFFIXES) and not any(part.startswith((".", "_")) for part in parts)


def _relative(path: str, root: str) -> PurePosixPath:
    """Return the path below the root. A part that would lead out of a folder is refused."""
    whole, base = PurePosixPath(path), PurePosixPath(root)
    relative = whole.relative_to(base) if whole != base else PurePosixPath(whole.name)
    if ".." in relative.parts or relative.is_absolute():
        raise InputError(f"{path}: its name leads out of the folder")
    return relative


def _check_space(folder: Path, size: int, shown: str) -> None:
    free = shutil.disk_usage(folder).free - FREE_BYTES_MIN
    if size > free:
        raise InputError(
            f"{shown}: {size >> 20} MiB, but {folder} has space for {max(0, free) >> 20} MiB;"
            " name fewer files, or set TMPDIR"
        )


def _copy(remote: "FileSystem", source: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Compressed files stay compressed.
    with remote.open_input_stream(source, compression=None) as bytes_in, target.open("xb") as bytes_out:
        while piece := bytes_in.read(1 << 20):
            bytes_out.write(piece)


def paths_by_place(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the local paths and the remote ones."""
    return [path for path in paths if not is_remote(path)], [path for path in paths if is_remote(path)]
