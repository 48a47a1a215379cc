"""Chooses the engine of a run: DuckDB inside this process for small logs and stores, Spark for all else."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from mqproof.spark_audit.command.failures import fail, say

EVENTS_MAX: Final = 2_000_000
"""With more events than this, Spark is faster, and it does not keep them in memory."""

STORED_BYTES_MAX: Final = 512 << 20
"""The same for all commit logs and traces together."""


class Engine(StrEnum):
    """The values of --engine."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which engine runs the audit."""

    engine: Annotated[
        Engine,
        typer.Option(
            help="local: DuckDB in this process, without Java; spark; auto: local for event logs of up to"
            " 2 million events, stores and traces of up to 512 MiB, unless an option needs Spark."
        ),
    ] = Engine.AUTO


def is_local(
    wanted: Engine, needs_spark: Sequence[str], files: Sequence[Path], others: Sequence[Path] = ()
) -> bool:
    """Return whether DuckDB runs the audit. If `auto` chooses Spark, one line says why.

    `needs_spark` are the given options that only Spark serves, `others` the stores and trace files.
    """
    if wanted is Engine.SPARK:
        return False
    if needs_spark:
        if wanted is Engine.LOCAL:
            fail(f"--engine local: it does not serve {needs_spark[0]}; use --engine spark")
        return False
    if wanted is Engine.LOCAL:
        return True
    from mqproof.spark_audit.sources.log_size import estimated_events, stored_bytes

    events = estimated_events(files)
    if events > EVENTS_MAX:
        say(f"on Spark: about {events} events, DuckDB audits up to {EVENTS_MAX}")
        return False
    stored = stored_bytes(others)
    if stored > STORED_BYTES_MAX:
        say(f"on Spark: {stored} bytes of commit logs and traces, DuckDB audits up to {STORED_BYTES_MAX}")
        return False
    return True


def leave_to_spark(wanted: Engine, reason: str) -> None:
    """Report that Spark must read this input.

    Raises:
        SystemExit: the user asked for the other engine.
    """
    if wanted is Engine.LOCAL:
        fail(f"--engine local: {reason}; use --engine spark")
    say(f"on Spark: {reason}")
