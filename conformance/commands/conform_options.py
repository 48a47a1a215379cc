"""The options of `mqproof conform`, in groups."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from mqproof.conformance.engine.fault_commands import (
    NO_COMMANDS,
    FaultCommandError,
    FaultCommands,
)
from mqproof.conformance.engine.run_options import SINCE, RunOptions, since_of
from mqproof.conformance.engine.targets import REMOTING
from mqproof.report.console import stop
from mqproof.report.model import Exit


@dataclass(frozen=True)
class Selection:
    """What is examined, and on how many examples."""

    target: Annotated[
        str,
        typer.Option(
            help="reference, impl, remoting://NAMESERVER[,BROKER] (each HOST:PORT), apache:LINE, mutant:NAME "
            "or python:MODULE:CLASS."
        ),
    ] = ""
    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this suite; once for each. All that the target can do else."),
    ] = None
    seed: Annotated[int, typer.Option(help="The same seed draws the same examples.")] = 0
    examples: Annotated[int, typer.Option(min=1, help="How many runs to draw, for each suite.")] = 100
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="GLOB", help="Only such invariants and wire cases; once for each."),
    ] = None


@dataclass(frozen=True)
class ResultFiles:
    """The files that the result is written to."""

    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="The result as JSON.")] = (
        None
    )
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="The result as .html, .md, .sarif, .xml or .json."),
    ] = None
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE.xml", help="The result as JUnit XML.")
    ] = None


@dataclass(frozen=True)
class RunRules:
    """What the run keeps, and which release it expects."""

    events: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the broker's event log of each example (impl and mutants)."),
    ] = None
    since: Annotated[
        str,
        typer.Option(help="Rules that hold since 4.9, or since 5 too: as apache:LINE says, 5 of any other."),
    ] = ""


@dataclass(frozen=True)
class CommandTemplates:
    """The shell commands that inject faults, field for field those of FaultCommands."""

    start: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="remoting://: starts the broker; {broker}, {address} and {name_server} stand for it.",
        ),
    ] = ""
    stop: Annotated[
        str, typer.Option("--stop", metavar="COMMAND", help="remoting://: a clean exit of the broker.")
    ] = ""
    kill: Annotated[str, typer.Option(metavar="COMMAND", help="remoting://: SIGKILL to the broker.")] = ""
    isolate: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: nothing reaches the broker any more.")
    ] = ""
    rejoin: Annotated[str, typer.Option(metavar="COMMAND", help="remoting://: undoes --isolate.")] = ""
    freeze: Annotated[str, typer.Option(metavar="COMMAND", help="remoting://: SIGSTOP to the broker.")] = ""
    thaw: Annotated[str, typer.Option(metavar="COMMAND", help="remoting://: undoes --freeze.")] = ""
    namesrv_start: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: starts the name server, {name_server}.")
    ] = ""
    namesrv_kill: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: SIGKILL to the name server.")
    ] = ""
    namesrv_isolate: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: nothing reaches the name server; or SIGSTOP.")
    ] = ""
    namesrv_rejoin: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: undoes --namesrv-isolate.")
    ] = ""


def run_options(
    selection: Selection, rules: RunRules, templates: CommandTemplates, *, strict: bool
) -> RunOptions:
    """Check the options and put them together. Ends the command when one is wrong."""
    target, since = selection.target, rules.since
    if not target:
        stop("conform: --target is missing; see mqproof conform --help", Exit.USAGE)
    if since not in ("", *SINCE):
        stop(f"--since {since}: expected {' or '.join(SINCE)}", Exit.USAGE)
    return RunOptions(
        target,
        selection.seed,
        selection.examples,
        tuple(selection.ids or ()),
        since or since_of(target),
        strict,
        rules.events,
        controls=_fault_commands(target, templates),
    )


def _fault_commands(target: str, templates: CommandTemplates) -> FaultCommands:
    try:
        commands = FaultCommands(**asdict(templates))
    except FaultCommandError as error:
        stop(str(error), Exit.USAGE)
    if commands != NO_COMMANDS and not target.startswith(REMOTING):
        stop(f"--{next(commands.given())[0]}: only targets remoting:// take commands", Exit.USAGE)
    return commands
