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
from mqproof.conformance.engine.time_bounds import SUITE_MINUTES_MAX
from mqproof.report.console import stop
from mqproof.report.model import Exit


@dataclass(frozen=True)
class Selection:
    """The target, the suites and the number of examples."""

    target: Annotated[
        str,
        typer.Option(
            help="reference, impl, remoting://NAMESERVER[,BROKER] (each HOST:PORT), apache:LINE, mutant:NAME,"
            " python:MODULE:CLASS or stdio:COMMAND (an adapter in any language)."
        ),
    ] = ""
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Run only this suite; may be repeated. Default: all suites of the target."
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed; the same seed draws the same examples.")] = 0
    examples: Annotated[int, typer.Option(min=1, help="Number of examples for each suite.")] = 100
    suite_minutes: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="Real time of a suite: then it ends, whatever the target does, and judges what it has.",
        ),
    ] = SUITE_MINUTES_MAX
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="GLOB", help="Judge only matching invariants and wire cases; may be repeated."
        ),
    ] = None


@dataclass(frozen=True)
class ResultFiles:
    """The files for the result."""

    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the result to this .html, .md, .sarif, .xml or .json file.",
        ),
    ] = None
    junit_file: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE.xml", help="Write the result as JUnit XML to this file."),
    ] = None


@dataclass(frozen=True)
class RunRules:
    """The event logs to keep, the coverage to measure, and the expected release."""

    events: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the broker's event log of each example (impl and mutants)."),
    ] = None
    coverage: Annotated[
        bool,
        typer.Option(
            "--coverage",
            help="Prefer examples that reach more: branches of impl/, else transitions and answers. For impl,"
            " list the lines that no suite executes.",
        ),
    ] = False
    since: Annotated[
        str,
        typer.Option(
            help="Judge only rules that hold since 4.9, or since 5. Default: the LINE of apache:LINE, or 5."
        ),
    ] = ""


@dataclass(frozen=True)
class BrokerFiles:
    """The files of the broker under test, for the suite damage."""

    store: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="remoting://: the broker's store, whose files the suite damage alters."
        ),
    ] = None
    broker_log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="remoting://: the broker's log, where it reports damage."),
    ] = None


@dataclass(frozen=True)
class CommandTemplates:
    """The shell commands that inject faults; the fields are those of FaultCommands."""

    start: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="remoting://: command that starts the broker; fields: {broker}, {address}, {name_server}.",
        ),
    ] = ""
    stop: Annotated[
        str,
        typer.Option("--stop", metavar="COMMAND", help="remoting://: command that stops the broker cleanly."),
    ] = ""
    kill: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: command that kills the broker with SIGKILL.")
    ] = ""
    isolate: Annotated[
        str,
        typer.Option(metavar="COMMAND", help="remoting://: command that blocks all traffic to the broker."),
    ] = ""
    rejoin: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: command that undoes --isolate.")
    ] = ""
    freeze: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: command that sends SIGSTOP to the broker.")
    ] = ""
    thaw: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: command that undoes --freeze.")
    ] = ""
    namesrv_start: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="remoting://: command that starts the name server, {name_server}."
        ),
    ] = ""
    namesrv_kill: Annotated[
        str,
        typer.Option(metavar="COMMAND", help="remoting://: command that kills the name server with SIGKILL."),
    ] = ""
    namesrv_isolate: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="remoting://: command that blocks all traffic to the name server, or sends SIGSTOP.",
        ),
    ] = ""
    namesrv_rejoin: Annotated[
        str, typer.Option(metavar="COMMAND", help="remoting://: command that undoes --namesrv-isolate.")
    ] = ""


def run_options(
    selection: Selection, rules: RunRules, templates: CommandTemplates, files: BrokerFiles, *, strict: bool
) -> RunOptions:
    """Check and combine the options. Ends the command if one is wrong."""
    target, since = selection.target, rules.since
    if not target:
        stop("--target is missing; see mqproof conform --help", Exit.USAGE)
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
        coverage=rules.coverage,
        minutes=selection.suite_minutes,
        controls=_fault_commands(target, templates),
        store=files.store,
        broker_log=files.broker_log,
    )


def _fault_commands(target: str, templates: CommandTemplates) -> FaultCommands:
    try:
        commands = FaultCommands(**asdict(templates))
    except FaultCommandError as error:
        stop(str(error), Exit.USAGE)
    if commands != NO_COMMANDS and not target.startswith(REMOTING):
        stop(f"--{next(commands.given())[0]}: only remoting:// targets accept commands", Exit.USAGE)
    return commands
