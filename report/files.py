"""The files that a command is asked to write its report into."""

from pathlib import Path

from mqproof.report import json_file as as_json
from mqproof.report import junit as as_junit
from mqproof.report.console import stop
from mqproof.report.model import Exit, Report
from mqproof.report.write import write_report, write_text


def write_files(
    report: Report, *, json: Path | None = None, junit: Path | None = None, page: Path | None = None
) -> None:
    """Write those that are asked for; `page` in the format that its suffix names. Ends the command with one
    line where that cannot be done."""
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
