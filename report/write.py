"""Writes files so that a reader sees either the old or the new one, complete, even after a crash."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mqproof.report import html, json_file, junit, markdown, sarif
from mqproof.report.model import Report
from mqproof.report.staging import file_beside

RENDERERS: Final[dict[str, Callable[[Report], str]]] = {
    ".html": html.render,
    ".json": json_file.render,
    ".md": markdown.render,
    ".sarif": sarif.render,
    ".xml": junit.render,
}
"""Maps each file suffix to the renderer of its format."""


def write_report(report: Report, path: Path) -> None:
    """Write the report in the format that the file's suffix names.

    Raises:
        ValueError: no format has this suffix. OSError: the file cannot be written.
    """
    if path.suffix not in RENDERERS:
        raise ValueError(f"{path}: no report format {path.suffix!r}, expected one of {', '.join(RENDERERS)}")
    write_text(path, RENDERERS[path.suffix](report))


def write_text(path: Path, text: str) -> None:
    """Write text as `write_bytes` does, in UTF-8."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file durably: a temporary file beside it, fsync, rename, fsync of the folder.

    Missing parent folders are created. A symbolic link keeps pointing at the file it names. A path that is
    not a regular file (a pipe, /dev/stdout) is written to directly.

    Raises:
        OSError: the file cannot be written; its old content is unchanged.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with file_beside(path) as temporary:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
