"""`mqproof check-history`, `mqproof convert-history` and `mqproof workload`."""

import errno
from contextlib import AbstractContextManager, nullcontext
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, exit_code

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Histories: JSON Lines, or folders of columns (docs/reference/history-format.md).",
    ),
]
_Certificates = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        metavar="FILE",
        help="Write the lines that prove the verdicts of all rules except L01.",
    ),
]
_Parts = Annotated[
    int,
    typer.Option(
        min=1,
        max=256,  # each part has two open files
        help="Split each history into so many parts on disk; memory holds one part for each process.",
    ),
]


_FULL_DISK: Final[dict[int | None, int]] = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), Exit.TOOL)
"""Maps the errors of a full disk to the exit code. Other errors of a file are wrong use."""


class _Output(FileIO):
    """A file whose name is in the errors of writing to it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.name
            raise


def _output(file: Path | None) -> AbstractContextManager[BufferedWriter | None]:
    return BufferedWriter(_Output(file, "wb")) if file else nullcontext()


@app.callback()
def _root() -> None:
    """Histories of client observations, and their anomalies."""


@app.command("check-history")
def check_history(
    files: _Files,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the result to this .html, .xml (JUnit), .sarif or .md file.",
        ),
    ] = None,
    orders: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the order of each queue's operations, or the operations that have no order.",
        ),
    ] = None,
    certificate_file: _Certificates = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes that apply the rules; by default one for each core."),
    ] = None,
    parts: _Parts = 1,
) -> None:
    """Find anomalies in client histories: lost, duplicated, reordered, phantom messages, and thirty more.

    A rule without relevant operations is reported as not tested. If lines are missing, no rule is held.

    Examples: mqproof workload --target impl --out h.jsonl; mqproof check-history h.jsonl --json h.json;
    mqproof check-history large.jsonl --parts 16
    """
    from mqproof.conformance.history.judge import check_files
    from mqproof.conformance.history.lines import HistoryError
    from mqproof.conformance.history.parallel import KilledProcessError, cores
    from mqproof.conformance.history.split.judged_parts import FullDiskError
    from mqproof.report import terminal
    from mqproof.report.files import write_files

    _expect_lines(files, needed=bool(orders or parts > 1))
    try:
        with (
            terminable(),
            _output(orders) as order_file,
            _output(certificate_file) as certified,
        ):
            report = check_files(files, order_file, certified, processes=processes or cores(), parts=parts)
    except HistoryError as error:
        stop(str(error), Exit.USAGE)
    except (FullDiskError, KilledProcessError) as error:
        stop(str(error), Exit.TOOL)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", _FULL_DISK.get(error.errno, Exit.USAGE))
    terminal.show(report)
    write_files(report, json=json_file, page=report_file)
    raise typer.Exit(exit_code(report.results))


def _expect_lines(files: list[Path], *, needed: bool) -> None:
    if needed and (folder := next((file for file in files if file.is_dir()), None)):
        stop(
            f"{folder}: columns have no --orders or --parts; convert them with --from columns --to jsonl",
            Exit.USAGE,
        )


@app.command("convert-history")
def convert_history(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="File to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    read: Annotated[
        str,
        typer.Option("--from", metavar="FORMAT", help="Format to read: jsonl, columns, jepsen or openchaos."),
    ] = "jsonl",
    written: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="Format to write: jsonl, columns, jepsen or elle."),
    ] = "jepsen",
) -> None:
    """Convert a history: to columns, from OpenChaos, or to the input of Jepsen's kafka checker or elle-cli.

    Examples: mqproof convert-history h.jsonl history.edn; mqproof convert-history h.jsonl h.edn --to elle;
    mqproof convert-history history-file h.jsonl --from openchaos --to jsonl;
    mqproof convert-history h.jsonl h.columns --to columns
    """
    from mqproof.conformance.history.formats import READERS, WRITERS
    from mqproof.conformance.history.lines import HistoryError

    if read not in READERS:
        stop(f"--from {read}: expected {', '.join(READERS)}", Exit.USAGE)
    if written not in WRITERS:
        stop(f"--to {written}: expected {', '.join(WRITERS)}", Exit.USAGE)
    try:
        WRITERS[written](READERS[read](source), source, target)
    except HistoryError as error:
        stop(str(error), Exit.USAGE)
    except UnicodeDecodeError as error:
        stop(f"{source}: {error}", Exit.USAGE)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)


@app.command()
def workload(
    target: Annotated[
        str,
        typer.Option(help="impl (simulated), remoting://HOST:PORT of a name server, or apache:LINE."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the history (JSON Lines) to this file.")],
    seed: Annotated[int, typer.Option(help="Seed; on impl, the same seed gives the same history.")] = 0,
    messages: Annotated[int, typer.Option(min=1, help="Sends per producer.")] = 100,
    producers: Annotated[int, typer.Option(min=1, help="Number of concurrent producers.")] = 3,
    faults: Annotated[
        int, typer.Option(min=0, help="impl: number of faults (the broker is killed or isolated).")
    ] = 3,
) -> None:
    """Run concurrent producers and consumer groups of all kinds, and write their history.

    Example: mqproof workload --target impl --seed 7 --out h.jsonl && mqproof check-history h.jsonl
    """
    from mqproof.conformance.adapters.workload.clusters import run
    from mqproof.conformance.engine.targets import TargetError
    from mqproof.conformance.history.lines import encode
    from mqproof.conformance.history.workload import Workload
    from mqproof.report.files import expect_writable

    expect_writable(out=out)
    try:
        with terminable(), stages(f"workload {target}") as on_stage:
            lines = run(
                target, Workload(messages=messages, producers=producers, faults=faults, seed=seed), on_stage
            )
    except ValueError as error:
        stop(f"--target {error}", Exit.USAGE)
    except TargetError as error:
        stop(f"{target}: {error}", Exit.TOOL)
    try:
        out.write_bytes(b"".join(map(encode, lines)))
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    print(f"{len(lines)} lines in {out}")
