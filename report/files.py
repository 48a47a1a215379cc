"""Writes the report files named on a command line, and checks beforehand that they can be written."""

import os
from pathlib import Path

from mqproof.report import json_file as as_json
from mqproof.report import junit as as_junit
from mqproof.report.console import stop
from mqproof.report.model import Exit, Report
from mqproof.report.write import write_report, write_text


def not_writable(file: Path) -> str:
    """Return the reason why a file cannot be written, or an empty string. For a check before long work.

    A missing folder is not a reason, because it is created when the file is written.
    """
    if file.is_dir():
        return "Is a directory"
    return folder_not_writable(file.parent)


def folder_not_writable(folder: Path) -> str:
    """Return the reason why no file can be written to the folder, or an empty string.

    A missing folder that can be created is not a reason.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return f"Not a directory: {place}"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"Permission denied: {place}"


def expect_writable(**files: Path | None) -> None:
    """End the command with one line if the file of an option cannot be written."""
    for option, file in files.items():
        if file is not None and (reason := not_writable(file)):
            stop(f"--{option} {file}: {reason}", Exit.USAGE)


def write_files(
    report: Report, *, json: Path | None = None, junit: Path | None = None, page: Path | None = None
) -> None:
    """Write the named files, `page` in the format of its suffix.

    On failure, end the command with one line.
    """
    try:
        if json is not None:
            write_text(json, as_json.render(report))
        if junit is not None:
            write_text(junit, as_junit.render(report))
        if page is not None:
            write_report(report, page)
    except ValueError as error:
        stop(f"--report {error}", Exit.USAGE)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
