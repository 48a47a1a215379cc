"""`mqproof conform` and `mqproof trace-check`."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from report.console import stages, stop
from report.model import Exit, exit_code

if TYPE_CHECKING:
    from conformance.suite import Suite, TargetFactory
    from conformance.targets.impl import ImplTarget

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

WIRE: Final = "wire"
SUITES: Final = ("flush", "routing", WIRE)
SINCE: Final = ("4.9", "5")
_PROGRESS_LINES: Final = 10


@app.callback()
def _root() -> None:
    """Conformance: hold an implementation to the specification."""


@app.command()
def conform(
    target: Annotated[
        str,
        typer.Option(
            help="reference (flush only), impl, remoting://HOST:PORT of a name server, mutant:NAME, or "
            "apache:LINE (routing and wire); for the suite wire remoting:// takes HOST:PORT[,HOST:PORT] of a "
            "name server, a broker or both."
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="flush (brokers, the default), routing (name servers), or wire."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same examples.")] = 0,
    examples: Annotated[int, typer.Option(min=1, help="How many runs to draw.")] = 100,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The result as JSON.")
    ] = None,
    report_file: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.html", help="The result as one HTML page.")
    ] = None,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE.xml", help="The result as JUnit XML.")
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the broker's event log of each example (impl and mutants)."),
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="GLOB", help="wire: only cases with such an id.")
    ] = None,
    since: Annotated[
        str, typer.Option(help="wire, routing: rules that hold since 4.9, or since 5 too.")
    ] = "5",
    strict: Annotated[bool, typer.Option("--strict", help="wire: a SHOULD that is not met fails.")] = False,
    dryrun: Annotated[bool, typer.Option("--dryrun", help="wire: list the cases, ask nobody.")] = False,
) -> None:
    """Drive a target with drawn operations and crashes, and judge every invariant on what a client saw.

    What the target cannot be asked for is reported as not tested. A failure is shrunk to a minimal script.

    Examples: mqproof conform --target impl --examples 300;
    mqproof conform --target remoting://127.0.0.1:9876 --report conform.html;
    mqproof conform --target apache:5 --suite routing --examples 30;
    mqproof conform --target remoting://127.0.0.1:9876 --suite wire --since 4.9 --id 'remoting/send*'
    """
    from conformance.scoreboard import scoreboard
    from conformance.suite import examine, results
    from conformance.target import TargetError
    from conformance.targets import UnknownTargetError
    from report import terminal
    from report.files import write_files

    name, *more = suite or [SUITES[0]]
    if unknown := [each for each in (name, *more) if each not in SUITES]:
        stop(f"--suite {unknown[0]}: expected {', '.join(SUITES)}", Exit.USAGE)
    if more:
        stop(f"--suite {name}: runs alone", Exit.USAGE)
    if since not in SINCE:
        stop(f"--since {since}: expected {' or '.join(SINCE)}", Exit.USAGE)
    if name == WIRE:
        from conformance.wire.command import wire

        judged = wire(target, ids or [], since, strict=strict, dryrun=dryrun)
        write_files(judged, json=json_file, junit=junit_file, page=report_file)
        raise typer.Exit(exit_code(judged.results))
    if ids or strict or dryrun:
        stop("--id, --strict, --dryrun: only with --suite wire", Exit.USAGE)
    with ExitStack() as stack:
        told = stack.enter_context(stages(f"conform {target}"))
        try:
            chosen, factory = stack.enter_context(_examined(name, target, since))
            if events is not None:
                factory = _recorded(factory, events)
            examination = examine(factory, examples, seed, _progress(told), suite=chosen)
        except UnknownTargetError as error:
            stop(f"--target {error}", Exit.USAGE)
        except TargetError as error:
            stop(f"{target}: {error}", Exit.TOOL)
        found = results(examination, factory(), examples, seed)
    report = scoreboard(found, target=target, seed=seed, examples=examples, examination=examination)
    terminal.show(report)
    write_files(report, json=json_file, junit=junit_file, page=report_file)
    raise typer.Exit(exit_code(found))


@app.command("trace-check")
def trace_check(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Event logs, NDJSON: brokers, pairs, name servers, DLedger groups."
        ),
    ],
    window: Annotated[
        int, typer.Option(min=1, help="Messages in one trace; a log is cut into many, and all are checked.")
    ] = 100,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The result as JSON.")
    ] = None,
) -> None:
    """Let TLC decide whether event logs are behaviours of the models: Flush, Replication, Routing, Election.

    A log that is not is shown with its longest accepted prefix, the event that no action explains, and the
    actions that came closest.

    Example: mqproof serve --events broker.ndjson ..., then mqproof trace-check broker.ndjson
    """
    from conformance.traces.check import check_logs, results
    from report import terminal
    from report.files import write_files
    from report.model import Report
    from spec.events import EventError
    from spec.tlc.errors import TlcError

    began = time.perf_counter()
    with stages("trace-check") as told:
        try:
            checked = check_logs(logs, records_max=window, on_stage=told)
        except EventError as error:
            stop(str(error), Exit.USAGE)
        except OSError as error:
            stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
        except TlcError as error:
            stop(str(error), Exit.TOOL)
    found = results(checked, time.perf_counter() - began)
    report = Report("mqproof trace-check", found)
    terminal.show(report)
    write_files(report, json=json_file)
    raise typer.Exit(exit_code(found))


@contextmanager
def _examined(suite: str, target: str, since: str) -> "Iterator[tuple[Suite, TargetFactory]]":
    """The suite and the targets of that name, for as long as the block lasts."""
    if suite == "routing":
        from conformance.routing.suite import ROUTING
        from conformance.targets.routing.name_servers import targets

        with targets(target, slave_speaks=since != SINCE[0]) as factory:
            yield ROUTING, factory
    else:
        from conformance.suite import FLUSH
        from conformance.targets import resolve

        yield FLUSH, resolve(target)


def _progress(told: Callable[[str], None]) -> Callable[[int, int], None]:
    def progress(done: int, examples: int) -> None:
        if done % max(1, examples // _PROGRESS_LINES) == 0:
            told(f"{done} of {examples} examples")

    return progress


def _recorded(factory: "TargetFactory", folder: Path) -> "TargetFactory":
    """Targets that write their event logs to the folder, numbered."""
    from conformance.targets.impl import ImplTarget

    if not isinstance(factory(), ImplTarget):
        stop("--events: only the targets impl and mutant:NAME have a broker's event log", Exit.USAGE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"--events {folder}: {error.strerror}", Exit.USAGE)
    numbers = itertools.count(1)

    def recorded() -> "ImplTarget":
        target = factory()
        assert isinstance(target, ImplTarget)
        target.events_file = folder / f"example-{next(numbers):05}.ndjson"
        return target

    return recorded
