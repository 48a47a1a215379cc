"""The files of a run for continuous integration: code scanning, a badge, changes since an earlier run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stop
from mqproof.report.model import Exit

if TYPE_CHECKING:
    from mqproof.report.model import Report


@dataclass(frozen=True)
class RunFiles:
    """The files that continuous integration needs."""

    sarif_file: Annotated[
        Path | None,
        typer.Option("--sarif", metavar="FILE.sarif", help="Write the result for code scanning."),
    ] = None
    badge_file: Annotated[
        Path | None, typer.Option("--badge", metavar="FILE.svg", help="Write the verdict as a badge.")
    ] = None
    compare_file: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="OLD.json",
            help="Show what changed since this run, written by --json. A missing file is a first run.",
        ),
    ] = None
    comment_file: Annotated[
        Path | None,
        typer.Option("--comment", metavar="FILE.md", help="With --compare: write the changes as Markdown."),
    ] = None


def earlier_run(files: RunFiles) -> "Report | None":
    """Return the run to compare with, before the new one begins; None if there is none.

    Ends the command if an option is wrong, or if the file is not that of a run.
    """
    from mqproof.report.files import expect_writable
    from mqproof.report.json_file import ReportFileError, from_json

    if files.comment_file is not None and files.compare_file is None:
        stop("--comment needs --compare OLD.json", Exit.USAGE)
    expect_writable(sarif=files.sarif_file, badge=files.badge_file, comment=files.comment_file)
    old = files.compare_file
    if old is None or not old.exists():
        return None
    try:
        return from_json(old.read_text(encoding="utf-8"), str(old))
    except (ReportFileError, UnicodeDecodeError) as error:
        stop(f"--compare {error}", Exit.USAGE)
    except OSError as error:
        stop(f"--compare {old}: {error.strerror}", Exit.USAGE)


def write_run_files(report: "Report", files: RunFiles, earlier: "Report | None") -> None:
    """Write the files, and show the changes. Ends the command if a file cannot be written."""
    from mqproof.report import badge, sarif, terminal
    from mqproof.report.write import write_text

    try:
        if files.sarif_file is not None:
            write_text(files.sarif_file, sarif.render(report))
        if files.badge_file is not None:
            write_text(files.badge_file, badge.render(report))
        if files.comment_file is not None:
            write_text(files.comment_file, _comment(report, earlier))
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    if earlier is not None:
        from mqproof.conformance.engine.comparison import compare

        terminal.show(compare(earlier, report))
    elif files.compare_file is not None:
        print(f"{files.compare_file}: no earlier run to compare with")


def _comment(report: "Report", earlier: "Report | None") -> str:
    from mqproof.conformance.engine.comparison import compare
    from mqproof.report import markdown

    if earlier is not None:
        return markdown.render(compare(earlier, report))
    return markdown.render(report) + "\nNo earlier run to compare with.\n"
