"""The command `mqproof matrix --on impl`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stages, stop
from mqproof.report.model import Exit
from mqproof.spec.guarantee import options

if TYPE_CHECKING:
    from mqproof.conformance.guarantee.on_simulated_brokers import Lived

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _root() -> None:
    """The guarantee matrix on running brokers."""


@app.command()
def matrix(
    on: Annotated[str, typer.Option(help="impl: run our brokers; model: run only TLC.")] = "impl",
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="Random runs of each cell without a loss (default 50, or 1 with --real)."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 1,
    real: Annotated[
        bool,
        typer.Option(
            "--real", help="Run brokers as processes on real sockets and files, with one fault each."
        ),
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    fault: options.Fault = None,
    flush: options.Flush = None,
    replication: options.Replication = None,
    producer: options.Producer = None,
    record: Annotated[bool, typer.Option("--record", help="Write both tables to docs/.")] = False,
) -> None:
    """Run every cell of the guarantee matrix on our brokers, on simulated machines.

    If the model loses no acknowledged message, random runs of the cell must not lose one either. If the model
    has a counterexample, its steps are replayed and must end in the same way. With --real, every cell has
    random runs, and none may end worse than the recorded verdict; machines cannot lose power there.

    Exit codes: 0 all cells agree; 1 a cell differs; 2 wrong use; 4 a broker did not answer.

    Example: mqproof matrix --on impl --flush SYNC_FLUSH --producer sync --fault process --runs 10
    """
    from mqproof.conformance.guarantee import on_simulated_brokers, show
    from mqproof.report.write import write_text

    if on != "impl":
        stop(f"--on {on}: expected impl or model", Exit.USAGE)
    chosen = options.chosen(
        record=record, flush=flush, replication=replication, producer=producer, fault=fault
    )
    if real and (record or workers > 1):
        stop(f"--real: expected without {'--record' if record else '--workers'}", Exit.USAGE)
    lived = list(_on_processes(chosen, runs) if real else _on_machines(chosen, runs, workers))
    if not lived:
        stop(f"--fault {fault}: expected a fault that {'processes' if real else 'machines'} have", Exit.USAGE)
    try:
        if record:
            write_text(show.DOCUMENT, show.refreshed(show.DOCUMENT.read_text(encoding="utf-8"), lived))
        if json_file is not None:
            write_text(json_file, show.as_json(lived))
    except OSError as error:
        stop(str(error), Exit.USAGE)
    print(show.markdown(lived))
    differing = on_simulated_brokers.differing(lived)
    for each in differing:
        print(f"✗ {each.entry}: {each.failure}")
    text = show.summary(lived)
    print(f"✗ {len(differing)} cells differ: {text}" if differing else f"✓ equal to the model: {text}")
    raise typer.Exit(Exit.VIOLATED if differing else Exit.HELD)


def _on_machines(chosen: Mapping[str, str], runs: int | None, workers: int) -> "Iterator[Lived]":
    from mqproof.conformance.guarantee import on_simulated_brokers
    from mqproof.spec.guarantee.matrix import decide, decide_damage, joined
    from mqproof.spec.tlc.errors import TlcError

    rows = {name: value for name, value in chosen.items() if name != "fault"}
    with stages("matrix") as on_stage:
        on_stage("TLC decides every cell")
        try:
            decided = joined(decide(rows), decide_damage(rows))
        except TlcError as error:
            stop(str(error), Exit.TOOL)
        lives = runs or on_simulated_brokers.RUNS
        for each in on_simulated_brokers.live_through_all(decided, chosen, lives, workers):
            on_stage(str(each.entry))
            yield each


def _on_processes(chosen: Mapping[str, str], runs: int | None) -> "Iterator[Lived]":
    import tempfile

    from mqproof.conformance.guarantee import on_processes
    from mqproof.conformance.hosts.processes import ClusterError
    from mqproof.spec.guarantee import recorded

    with stages("matrix") as on_stage, tempfile.TemporaryDirectory() as folder:
        found = on_processes.live_through_all(
            recorded.load(), chosen, runs or on_processes.RUNS, Path(folder) / "cell"
        )
        try:
            for each in found:
                on_stage(str(each.entry))
                yield each
        except (ClusterError, TimeoutError, OSError) as error:
            stop(str(error) or "a message was not answered in time", Exit.TOOL)
