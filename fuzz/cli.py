"""`mqproof fuzz`: run, replay and list fuzz targets."""

import secrets
import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from mqproof.report.console import is_quiet, stop, terminable
from mqproof.report.model import Exit, Report

if TYPE_CHECKING:
    from mqproof.fuzz.engine.campaign import Campaign, Outcome
    from mqproof.report.model import Report

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
fuzz = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run, replay and list fuzz targets.")
app.add_typer(fuzz, name="fuzz")

FINDINGS = Path("build/fuzz/findings")
_HOURS_STEP = 24


@app.callback()
def _root() -> None:
    """Find inputs that break an invariant."""


@fuzz.command()
def run(
    target: Annotated[str, typer.Argument(help="The target; see `mqproof fuzz list`.")],
    seconds: Annotated[float, typer.Option(min=0, help="Stop after this many seconds.")] = 60.0,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Number of processes that search.")] = 1,
    corpus: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder in which inputs are kept.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed; by default it is drawn at random and printed.")
    ] = None,
    findings: Annotated[Path, typer.Option(metavar="DIR", help="Folder for findings.")] = FINDINGS,
    executions: Annotated[
        int | None, typer.Option(min=1, help="Stop each worker after this many inputs.")
    ] = None,
    engine: Annotated[str, typer.Option(help="python, atheris, or auto: atheris if installed.")] = "auto",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
) -> None:
    """Search for inputs that break an invariant of TARGET.

    Exit codes: 0 nothing found; 1 a finding; 2 wrong use; 3 an invariant was never tested.

    Example: mqproof fuzz run remoting-decode --seconds 30 --workers 2 --corpus build/fuzz/corpus
    """
    from mqproof.fuzz.engine.campaign import Campaign
    from mqproof.report import terminal
    from mqproof.report.model import exit_code

    _check_run(target, findings, corpus, json)
    campaign = Campaign(
        target=target,
        seconds=seconds,
        workers=workers,
        seed=secrets.randbelow(1 << 32) if seed is None else seed,
        engine=_engine(engine),
        findings=findings,
        corpus=corpus,
        executions=executions,
    )
    print(
        f"fuzz target={target} seed={campaign.seed} engine={campaign.engine} workers={workers} "
        f"seconds={seconds:g} executions={executions or 'any'} corpus={corpus or 'none'} findings={findings}",
        flush=True,
    )
    report = _search(campaign, json)
    terminal.show(report)
    raise typer.Exit(exit_code(report.results))


def _check_run(target: str, findings: Path, corpus: Path | None, json: Path | None) -> None:
    """End the command if the target does not exist or a result could not be written."""
    from mqproof.fuzz import targets
    from mqproof.report.files import folder_not_writable, not_writable

    try:
        targets.load(target)
    except targets.UnknownTargetError as error:
        stop(str(error), Exit.USAGE)
    for option, folder in (("--findings", findings), ("--corpus", corpus)):
        if folder is not None and (reason := folder_not_writable(folder)):
            stop(f"{option} {folder}: {reason}", Exit.USAGE)
    if json is not None and (reason := not_writable(json)):
        stop(f"--json {json}: {reason}", Exit.USAGE)


def _search(campaign: "Campaign", json: Path | None) -> "Report":
    """Run the campaign and return its report, which is also written to `json`."""
    from mqproof.fuzz.engine import campaign as campaigns
    from mqproof.fuzz.engine import verdict
    from mqproof.report import json_file
    from mqproof.report.write import write_text

    try:
        progress = _Progress(sys.stderr)
        outcome = campaigns.run(campaign, progress.show)
        progress.show(outcome)
        progress.end()
        report = verdict.report(campaign, outcome)
        if json is not None:
            write_text(json, json_file.render(report))
    except campaigns.WorkerError as error:
        stop(str(error), Exit.TOOL)
    except OSError as error:
        stop(str(error), Exit.USAGE)
    return report


@fuzz.command()
def faults(
    points: Annotated[int, typer.Option(min=1, help="How many fault points to judge.")] = 2000,
    first: Annotated[int, typer.Option(min=0, help="Number of the first point.")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Seed; by default it is drawn at random and printed.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Number of processes; of brokers with apache:.")
    ] = 1,
    target: Annotated[
        str, typer.Option(help="impl: our store on a simulated disk; apache:LINE: a released broker.")
    ] = "impl",
    brokers: Annotated[
        Literal["single", "pair", "group"],
        typer.Option(help="With impl: one broker, a master with its slave, or a DLedger group of three."),
    ] = "single",
    seconds: Annotated[float, typer.Option(min=0, help="Begin no point after this many seconds.")] = inf,
    point: Annotated[
        str | None, typer.Option(metavar="HEX", help="Judge this one point of an earlier report.")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
) -> None:
    """Damage one block or file of a store at a time, and judge what consumers receive.

    The faults: bit flip, zeroed, garbage, truncated, lost write, misdirected write, file missing.

    Exit codes: 0 no violation; 1 a message was lost silently or delivered wrong; 2 wrong use; 4 Java or a
    release is missing.

    Example: mqproof fuzz faults --points 50000 --workers 2 --json build/faults.json
    """
    from mqproof.fuzz.fault_command import FaultRun, judge_points
    from mqproof.report import json_file, markdown, terminal
    from mqproof.report.files import not_writable
    from mqproof.report.model import exit_code
    from mqproof.report.write import write_text

    for option, file in (("--json", json), ("--page", page)):
        if file is not None and (reason := not_writable(file)):
            stop(f"{option} {file}: {reason}", Exit.USAGE)
    chosen = secrets.randbelow(1 << 32) if seed is None else seed
    run = FaultRun(target, brokers, chosen, range(first, first + points), workers, seconds, point)
    print(
        f"fuzz faults target={target} brokers={brokers} seed={chosen} points={points} workers={workers}",
        flush=True,
    )

    def keep(so_far: Report) -> None:
        if json is not None:
            write_text(json, json_file.render(so_far))

    report = judge_points(run, keep)
    terminal.show(report)
    keep(report)
    if page is not None:
        write_text(page, markdown.render(report))
    raise typer.Exit(exit_code(report.results))


@fuzz.command()
def year(
    hours: Annotated[int, typer.Option(min=1, help="Number of simulated hours.")] = 8760,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Number of processes.")] = 2,
    minutes: Annotated[float, typer.Option(min=0, help="Begin no hour after this real time.")] = inf,
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Each simulated hour is kept here; the next run goes on.")
    ] = Path("build/fuzz/year"),
    hour: Annotated[int | None, typer.Option(min=0, metavar="N", help="Simulate this hour only.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
) -> None:
    """Simulate a year of three brokers that elect, under faults.

    Each hour is a cluster of its own, with a message every two seconds and up
    to 14 faults. An hour takes about six seconds of a processor, so a year
    takes a night on two.

    Exit codes: 0 every invariant holds; 1 one is violated; 2 wrong use; 3 an invariant was never tested.

    Example: mqproof fuzz year --minutes 60 --json build/year.json
    """
    from mqproof.fuzz.count_line import CountLine
    from mqproof.fuzz.hours import simulate
    from mqproof.fuzz.year import YearFileError, report, run
    from mqproof.report import json_file, terminal
    from mqproof.report.files import folder_not_writable, not_writable
    from mqproof.report.model import exit_code
    from mqproof.report.write import write_text

    if reason := folder_not_writable(folder):
        stop(f"--folder {folder}: {reason}", Exit.USAGE)
    if json is not None and (reason := not_writable(json)):
        stop(f"--json {json}: {reason}", Exit.USAGE)
    progress = CountLine(sys.stderr, hours, "simulated hours", _HOURS_STEP)
    try:
        with terminable():
            simulated = (
                [simulate(hour)]
                if hour is not None
                else list(
                    run(folder, hours, workers, 60 * minutes, lambda done: progress.show(len(done))).values()
                )
            )
    except (YearFileError, OSError) as error:
        stop(str(error), Exit.USAGE)
    progress.end()
    found = report(simulated)
    terminal.show(found)
    if json is not None:
        write_text(json, json_file.render(found))
    raise typer.Exit(exit_code(found.results))


@fuzz.command()
def replay(file: Annotated[Path, typer.Argument(help="A finding saved by `fuzz run`.")]) -> None:
    """Run the input of a finding again.

    Exit codes: 0 it breaks nothing now; 1 it does; 2 wrong use or bad input.

    Example: mqproof fuzz replay build/fuzz/findings/canary-0123456789ab.json
    """
    from mqproof.fuzz import targets
    from mqproof.fuzz.engine.execution import judge
    from mqproof.fuzz.engine.findings import FindingFileError, load, project_version
    from mqproof.report.printable import one_line

    try:
        saved = load(file)
        target = targets.load(saved.target)
    except (FindingFileError, targets.UnknownTargetError) as error:
        message = str(error)
        stop(message if message.startswith(str(file)) else f"{file}: {message}", Exit.USAGE)
    except OSError as error:
        stop(f"{file}: {error.strerror}", Exit.USAGE)
    print(f"fuzz target={saved.target} input={len(saved.input)} bytes, found by {saved.version}", flush=True)
    failure = judge(target, saved.input)
    if failure is None:
        print(f"no finding: this input does not break {saved.invariant} in {project_version()}")
        raise typer.Exit(Exit.HELD)
    same = "the same" if failure.signature == saved.signature else f"another than {saved.signature}"
    what = one_line(f"{failure.invariant}: {failure.message}")
    print(f"finding {saved.target} {what} ({one_line(same)}); replay: mqproof fuzz replay {file}")
    raise typer.Exit(Exit.VIOLATED)


@fuzz.command(name="list")
def list_targets() -> None:
    """Print every target and the invariants it tests.

    Example: mqproof fuzz list
    """
    from mqproof.fuzz import targets
    from mqproof.fuzz.engine import verdict

    for name in targets.NAMES:
        print(name)
        for invariant, statement in targets.load(name).invariants.items():
            known = verdict.catalogue_id(invariant, name)
            label = f"{known} {invariant}" if known != name else invariant
            print(f"  {label}: {statement}")


def _engine(name: str) -> str:
    from mqproof.fuzz.engine import atheris_search

    if name not in ("auto", "atheris", "python"):
        stop(f"--engine {name}: expected auto, python or atheris", Exit.USAGE)
    if name == "atheris" and not atheris_search.available():
        stop(
            "--engine atheris: atheris is not installed; pip install 'mqproof[fuzz]'",
            Exit.TOOL,
        )
    if name == "auto":
        return "atheris" if atheris_search.available() else "python"
    return name


class _Progress:
    """Prints findings and progress: one line, rewritten on a terminal, repeated in a pipe."""

    _PIPE_SECONDS = 10.0

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._quiet = is_quiet()
        self._next = 0.0 if self._terminal else self._PIPE_SECONDS
        self._erase = "\r\x1b[2K" if self._terminal else ""
        self._shown: set[str] = set()

    def show(self, outcome: "Outcome") -> None:
        from mqproof.fuzz.engine.findings import line

        for signature in outcome.found.keys() - self._shown:
            self._shown.add(signature)
            print(f"{self._erase}finding {line(*outcome.found[signature])}", flush=True)
        if self._quiet or outcome.seconds < self._next:
            return
        self._next = outcome.seconds + (0.5 if self._terminal else self._PIPE_SECONDS)
        rate = outcome.executions / max(outcome.seconds, 0.001)
        text = (
            f"{outcome.seconds:.0f} s: {outcome.executions:,} executions, {rate:,.0f} a second, "
            f"{outcome.features:,} features, {outcome.inputs:,} inputs, {len(outcome.found)} findings"
        )
        self._stream.write(f"{self._erase}{text}" if self._terminal else f"{text}\n")
        self._stream.flush()

    def end(self) -> None:
        """Erase the progress line on a terminal, so that the next output replaces it."""
        self._stream.write(self._erase)
        self._stream.flush()
