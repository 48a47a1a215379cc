"""The files that a command writes: their places are checked before the work, and written after it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.report.console import stages
from mqproof.report.model import Report
from mqproof.spark_audit.command.failures import fail, say

if TYPE_CHECKING:
    from mqproof.spark_audit.engine.frames import DataFrame
    from mqproof.spark_audit.judging.outcome import Audit


def try_folder(option: str, folder: Path | None) -> None:
    """Fail before the work, which may take hours, if its result could not be written."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        fail(f"{option}: {folder} is a file, expected a folder")
    _try_place(option, folder)


def try_file(option: str, file: Path | None) -> None:
    """Check a file like `try_folder` does a folder. A pipe or /dev/stdout needs no check."""
    if file is None:
        return
    if file.is_dir():
        fail(f"{option}: {file} is a folder, expected a file")
    if file.is_file() or not file.exists():
        _try_place(option, file)


def _try_place(option: str, place: Path) -> None:
    from mqproof.report.staging import try_place

    try:
        try_place(place)
    except OSError as error:
        fail(f"{option}: {place} cannot be written: {error.strerror}")


def write_outputs(
    report: Report, done: "Audit", skipped_rows: "DataFrame", out: Path | None, json: Path | None
) -> None:
    """Write the requested files. After an OSError, the existing files are unchanged."""
    from mqproof.report import json_file
    from mqproof.report.write import write_report, write_text
    from mqproof.spark_audit.judging.outcome import write_skipped, write_violations
    from mqproof.spark_audit.runtime.staging import staged

    if out is not None:
        with stages("audit") as stage, staged(out, replaces=("unreadable",)) as folder:
            stage(f"writing {out}")
            for name in _FORMS:
                write_report(report, folder / name)
            rows = write_violations(done, folder / "violations.parquet")
            if done.unreadable_rows or done.unreadable_traces:
                write_skipped(skipped_rows, folder / "unreadable")
        say(f"wrote {out / _FORMS[0]}, {', '.join(_FORMS[1:])} and violations.parquet with {rows} rows")
    if json is not None:
        write_text(json, json_file.render(report))
        say(f"wrote {json}")


_FORMS: Final = ("report.html", "report.json", "report.md", "report.sarif", "junit.xml")
