"""The options of `mqproof matrix` that select a part of the matrix."""

from typing import Annotated

import typer

from mqproof.report.console import stop
from mqproof.report.model import Exit
from mqproof.spec.checkout import expect_checkout

Fault = Annotated[
    str | None,
    typer.Option(help="Only columns with it: clean, process, os, power, disk, machine, flip, lost."),
]
Flush = Annotated[str | None, typer.Option(help="Only rows with it: ASYNC_FLUSH, SYNC_FLUSH.")]
Replication = Annotated[
    str | None, typer.Option(help="Only rows with it: none, ASYNC_MASTER, SYNC_MASTER_5X, SYNC_MASTER.")
]
Producer = Annotated[str | None, typer.Option(help="Only rows with it: sync, async, oneway.")]


def chosen(*, record: bool, **asked: str | None) -> dict[str, str]:
    """Return the selected values of flush, replication, producer and fault.

    End the command on wrong use: an unknown value, or a selection when the whole matrix is to be recorded.
    """
    from mqproof.spec.guarantee.matrix import DAMAGE, FAULTS, FLUSH, PRODUCER, REPLICATION

    faults = (*FAULTS, *DAMAGE)
    tables = {"flush": FLUSH, "replication": REPLICATION, "producer": PRODUCER, "fault": faults}
    wished = {name: value for name, value in asked.items() if value is not None}
    for name, value in wished.items():
        if value not in tables[name]:
            stop(f"--{name} {value}: expected one of {', '.join(tables[name])}", Exit.USAGE)
    if record and wished:
        stop(f"--record: expected without --{next(iter(wished))}: the whole matrix is recorded", Exit.USAGE)
    if record:
        expect_checkout("--record")
    return wished
