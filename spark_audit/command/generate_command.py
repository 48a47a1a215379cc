"""`mqproof audit generate`: write an event log with injected anomalies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.report.console import stages, terminable
from mqproof.report.printable import counted
from mqproof.spark_audit.command.engine_choice import EVENTS_MAX
from mqproof.spark_audit.command.failures import fail
from mqproof.spark_audit.command.opened_session import opened_session
from mqproof.spark_audit.command.option_groups import SparkOptions, examples
from mqproof.spark_audit.command.outputs import try_folder

if TYPE_CHECKING:
    from mqproof.spark_audit.generator.generate import Generated, LogRequest

    Write = Callable[[Path, Callable[[str], None]], Generated]

EXAMPLES: Final = examples(
    "generate --count 100000 --out build/log --anomaly lost=3 --anomaly duplicate=5",
    "generate --count 100000000 --out build/large --seed 7 --format ndjson",
)


def generate(
    *,
    count: Annotated[int, typer.Option(help="Approximate number of events.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to fill; must be empty.")],
    anomaly: Annotated[
        list[str] | None, typer.Option(help="NAME=COUNT, with a name from the list above; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same log.")] = 1,
    file_format: Annotated[str, typer.Option("--format", help="parquet or ndjson")] = "parquet",
    spark_options: SparkOptions,
) -> None:
    """Write an event log with injected anomalies; _truth.parquet lists the violations in it.

    The same seed gives the same log. Spark writes logs of more than 2 million events, in parts, and any log
    if an option of Spark is given; the rows are the same.

    Anomalies: lost, duplicate, double_append, phantom, reordered, skipped, overlap, offset_regression,
    flush_lost.

    Exit codes: 0 written; 2 bad input; 4 Spark or Java is missing or failed.
    """
    if file_format not in ("parquet", "ndjson"):
        fail(f"--format: {file_format!r}, expected parquet or ndjson")

    from mqproof.spark_audit.generator.generate import LogRequest, prepare
    from mqproof.spark_audit.generator.scenario import ScenarioError
    from mqproof.spark_audit.runtime.staging import staged

    request = LogRequest(count, _anomalies(anomaly or []), seed, file_format)
    try_folder("--out", out)
    try:
        # Before an engine starts: a wrong request is reported at once.
        prepare(request, out)
        with _writer(request, spark_options) as write, stages("audit") as stage, staged(out) as folder:
            done = write(folder, stage)
    except (ScenarioError, FileExistsError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or out}: {error.strerror}")
    typer.echo(
        f"{out}: {done.events} events of {done.messages} messages in {counted(len(done.files), 'file')}, "
        f"{counted(done.expected, 'violation')} to find (seed {seed})"
    )


@contextmanager
def _writer(request: "LogRequest", spark: SparkOptions) -> "Iterator[Write]":
    """Yield the function that writes the log: in this process, or in a session of Spark."""
    if request.events <= EVENTS_MAX and not (spark.given() or spark.memory):
        from mqproof.spark_audit.generator.generate import write_in_process

        with terminable():
            yield partial(write_in_process, request)
        return
    from mqproof.spark_audit.generator.spark_generate import generate as write_on_spark

    with opened_session(spark.session()) as (session, _):
        yield lambda folder, stage: write_on_spark(session, request, folder, progress=stage)


def _anomalies(arguments: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for argument in arguments:
        name, _, count = argument.partition("=")
        if not count.isdecimal():
            fail(f"--anomaly: {argument!r}, expected NAME=COUNT, e.g. lost=3")
        counts[name] = counts.get(name, 0) + int(count)
    return counts
