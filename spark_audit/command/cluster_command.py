"""`mqproof audit cluster`: collect what a running cluster offers, and judge it."""

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.report.console import stages, terminable
from mqproof.report.model import Exit, Table
from mqproof.spark_audit.command.engine_choice import EngineOptions
from mqproof.spark_audit.command.failures import fail, say
from mqproof.spark_audit.command.option_groups import ClusterOptions, SparkOptions, examples
from mqproof.spark_audit.command.run_command import IncrementalOptions, InputOptions, RunOptions, judge
from mqproof.spark_audit.runtime.scratch import scratch

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.cluster import Collected

MESSAGES_MAX: Final = 100_000
_ROWS_MAX: Final = 50

EXAMPLES: Final = examples(
    "cluster --namesrv 127.0.0.1:9876",
    "cluster --namesrv 127.0.0.1:9876 --topic 'Orders*' --messages 20000 --out build/audit",
)


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """What is collected, and how the cluster is reached."""

    namesrv: Annotated[
        str, typer.Option(envvar="NAMESRV_ADDR", help="HOST:PORT of name servers, separated by ';'.")
    ] = ""
    topic: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Read only matching topics; may be repeated.")
    ] = None
    messages: Annotated[int, typer.Option(min=0, help="Read at most so many messages, the newest.")] = (
        MESSAGES_MAX
    )
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the collected events and traces in this folder.")
    ] = None
    tls: Annotated[Path | None, typer.Option(metavar="FILE", help="A tls.properties file.")] = None
    account: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A tools.yml file with the keys that sign requests.")
    ] = None

    def collected(self, folder: Path) -> "Collected":
        """Collect into the folder. Errors end the command with one line."""
        from mqproof.spark_audit.sources.cluster import Bounds, ClusterError, collect_from

        bounds = Bounds(tuple(self.topic or ("*",)), self.messages)
        with stages("audit") as stage:
            try:
                return collect_from(self.namesrv, bounds, folder, stage, self.tls, self.account)
            except ClusterError as error:
                fail(str(error), error.code)
            except OSError as error:
                fail(f"{error.filename or folder}: {error.strerror}", Exit.TOOL)

    def replay(self) -> str | None:
        """Return the command that collects and judges again; None if the collected files are kept."""
        if self.keep:
            return None
        given = ["mqproof", "audit", "cluster", "--namesrv", self.namesrv]
        given += [part for topic in self.topic or () for part in ("--topic", topic)]
        bound = ["--messages", str(self.messages)] if self.messages != MESSAGES_MAX else []
        return shlex.join(given + bound)


def audit_cluster(
    *,
    collect: CollectOptions,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the report, as for audit run."),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="GLOB", help="Judge only matching invariants; may be repeated."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    cluster: ClusterOptions,
    engine: EngineOptions,
    spark: SparkOptions,
) -> None:
    """Collect topics, groups, offsets, messages and traces of a running cluster, and judge them.

    All requests only read. The report says what the verdicts rest on, and what could not be read. A cluster
    keeps no history, so most verdicts are unknown; event logs show more (docs/how-to/audit-sources.md).

    Exit codes: 0 all held; 1 a violation; 2 wrong use; 3 inconclusive; 4 no name server answers, or the
    engine is missing or failed.
    """
    if not collect.namesrv:
        fail("--namesrv: missing, expected HOST:PORT of a name server")
    with terminable(), _folder(collect.keep) as folder:
        collected = collect.collected(folder)
        for line in collected.origins:
            say(line)
        traces = [str(collected.traces)] if collected.traces else None
        stated = replace(
            cluster,
            flush=cluster.flush or collected.settings.get("flushDiskType"),
            delays=cluster.delays or collected.settings.get("messageDelayLevel"),
        )
        options = RunOptions(
            InputOptions(events=[str(collected.events)], trace=traces),
            stated,
            IncrementalOptions(),
            engine,
            spark,
            out,
            json,
            ids or [],
            origins=collected.origins,
            tables=(_waiting(collected),) if collected.waiting else (),
            replay=collect.replay(),
        )
        raise typer.Exit(judge(options))


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder of the collected files: a temporary one, or the one to keep."""
    if keep is None:
        with scratch(Path(tempfile.gettempdir()).resolve()) as folder:
            yield folder
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"--keep {keep}: {error.strerror}")
    yield keep


def _waiting(collected: "Collected") -> Table:
    rows = tuple((group, topic, *map(str, counts)) for group, topic, *counts in collected.waiting[:_ROWS_MAX])
    more = len(collected.waiting) - len(rows)
    return Table(
        "Messages that groups have not consumed" + (f", and {more} more rows" if more else ""),
        ("group", "topic", "not consumed", "deleted before", "members"),
        rows,
    )
