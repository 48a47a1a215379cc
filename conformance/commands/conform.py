"""`mqproof conform` and `mqproof trace-check`."""

import gc
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mqproof.conformance.commands.conform_options import (
    BrokerFiles,
    CommandTemplates,
    ResultFiles,
    RunRules,
    Selection,
    run_options,
)
from mqproof.conformance.commands.run_files import RunFiles, earlier_run, write_run_files
from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, exit_code
from mqproof.report.option_groups import with_groups

if TYPE_CHECKING:
    from mqproof.conformance.engine.run_options import Part, RunOptions
    from mqproof.conformance.registry.suite_registry import Drawn
    from mqproof.report.model import Report, Result

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
conform_app = typer.Typer(invoke_without_command=True)
app.add_typer(conform_app, name="conform")

_PROGRESS_LINES: Final = 10
_FOR_PEOPLE: Final = (".html", ".md")
"""Report formats that summarize the results for people."""
_MUTANTS_PAGE: Final = "docs/reference/conformance/mutants.md"


@app.callback()
def _root() -> None:
    """Test an implementation for conformance with the specification."""


@conform_app.callback()
@with_groups
def conform(
    context: typer.Context,
    selection: Selection,
    files: ResultFiles,
    run_files: RunFiles,
    rules: RunRules,
    templates: CommandTemplates,
    broker_files: BrokerFiles,
    strict: Annotated[
        bool, typer.Option("--strict", help="wire: a SHOULD that is not met is a failure.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the invariants and cases that would be judged.")
    ] = False,
) -> None:
    """Test a target with drawn operations, faults and numbered requests, and judge every invariant.

    Judgements use only what a client can observe. Invariants that the target cannot show are reported as not
    tested. A failure is shrunk to a minimal script.

    Examples: mqproof conform --target impl --examples 300; mqproof conform --target remoting://127.0.0.1:9876
    --report conform.html; mqproof conform --target apache:5 --suite routing --examples 30; mqproof conform
    --target remoting://127.0.0.1:9876 --suite wire --since 4.9 --id 'remoting/send*'
    """
    if context.invoked_subcommand is not None:
        return
    from mqproof.conformance.registry.suite_registry import ON_REQUEST, SUITES

    suite = selection.suite
    for name in suite or ():
        if name not in SUITES:
            stop(f"--suite {name}: expected {', '.join(SUITES)}", Exit.USAGE)
    options = run_options(selection, rules, templates, broker_files, strict=strict)
    # The suites run in the order of SUITES, so their order on the command line does not change the run.
    chosen = suite or [name for name in SUITES if name not in ON_REQUEST]
    names = [name for name in SUITES if name in chosen and SUITES[name].listed(options)]
    if not names:
        stop(f"--id {' '.join(options.ids)}: no invariant and no case has this id", Exit.USAGE)
    if dry_run:
        sys.stdout.writelines(f"{line}\n" for name in names for line in SUITES[name].lines(options))
        raise typer.Exit(Exit.HELD)
    named = bool(suite)
    earlier = earlier_run(run_files)
    parts = _conducted(options, names, named=named)
    _finish(parts, options, files, lambda whole: write_run_files(whole, run_files, earlier), named=named)


@conform_app.command()
@with_groups
def diff(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="A run, written by --json.")],
    after: Annotated[
        Path, typer.Argument(metavar="B.json", help="The later run, compared with the first one.")
    ],
    files: ResultFiles,
) -> None:
    """Compare two runs, and list the results whose verdict changed.

    Exit codes: 0 no result got worse; 1 a new violation; 2 wrong use or bad input; 3 a result that held is
    now undecided.

    Example: mqproof conform diff released.json candidate.json --report diff.md
    """
    from mqproof.conformance.engine.comparison import compare
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.json_file import ReportFileError, from_json

    try:
        runs = [from_json(path.read_text(encoding="utf-8"), str(path)) for path in (before, after)]
    except (ReportFileError, UnicodeDecodeError) as error:
        stop(str(error), Exit.USAGE)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    compared = compare(*runs)
    terminal.show(compared)
    write_files(compared, json=files.json_file, junit=files.junit_file, page=files.report_file)
    raise typer.Exit(exit_code(compared.results))


@conform_app.command()
def template(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="File to write the new adapter to.")],
    suite: Annotated[str, typer.Option(metavar="NAME", help="Suite of the adapter.")] = "flush",
) -> None:
    """Write the skeleton of an adapter.

    For the suite flush, it is a small broker that passes; replace it method by method. For any other suite,
    it has the methods of the suite's target without an implementation.

    Examples: mqproof conform template my_broker.py; mqproof conform template my_offsets.py --suite offsets
    """
    from mqproof.conformance.adapters import adapter_generator, template
    from mqproof.conformance.registry.suite_registry import SUITES, Drawn

    if not isinstance(registered := SUITES.get(suite), Drawn):
        known = ", ".join(name for name, one in SUITES.items() if isinstance(one, Drawn))
        stop(f"--suite {suite}: expected {known}", Exit.USAGE)
    if suite == "flush":
        text, name = Path(template.__file__).read_text(encoding="utf-8"), "MyBroker"
    else:
        text = adapter_generator.skeleton(registered.protocol(), suite).replace("MODULE", file.stem)
        name = adapter_generator.CLASS
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        stop(f"{file}: {error.strerror}", Exit.USAGE)
    print(f"{file}: fill in the methods; then run mqproof conform check-adapter python:{file.stem}:{name}")


@conform_app.command("check-adapter")
def check_adapter(
    target: Annotated[str, typer.Argument(metavar="ADAPTER", help="python:MODULE:CLASS or stdio:COMMAND.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
) -> None:
    """Check what the suite requires of an adapter, and report what to fix first.

    Examples: mqproof conform check-adapter python:my_broker:MyBroker; mqproof conform check-adapter
    'stdio:./my-adapter 127.0.0.1:9876'
    """
    from mqproof.conformance.engine.targets import PYTHON, STDIO
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.model import Report

    if not target.startswith((PYTHON, STDIO)):
        stop(f"{target!r}: {PYTHON}MODULE:CLASS or {STDIO}COMMAND expected", Exit.USAGE)
    replay = shlex.join(["mqproof", "conform", "check-adapter", target])
    with terminable():
        found = (_checked_process if target.startswith(STDIO) else _checked_class)(target, replay)
    report = Report(f"Adapter {target}", tuple(found))
    terminal.show(report)
    write_files(report, json=json_file)
    raise typer.Exit(exit_code(report.results))


def _checked_class(target: str, replay: str) -> "list[Result]":
    """Check a class for each suite whose members it has; ends the command if there is none."""
    from mqproof.conformance.adapters.python_class import adapter_class, members
    from mqproof.conformance.engine.targets import UnknownTargetError
    from mqproof.conformance.registry.suite_registry import SUITES, Drawn

    try:
        factory = adapter_class(target)
    except UnknownTargetError as error:
        stop(str(error), Exit.USAGE)
    drawn = {name: one for name, one in SUITES.items() if isinstance(one, Drawn)}
    lacking = {
        name: [member for member in members(one.protocol()) if not hasattr(factory, member)]
        for name, one in drawn.items()
    }
    fitting = [name for name in drawn if not lacking[name]]
    if not fitting:
        nearest = min(drawn, key=lambda name: len(lacking[name]) / len(members(drawn[name].protocol())))
        protocol = drawn[nearest].protocol().__name__
        stop(f"{target!r} is not a {protocol}: it lacks {', '.join(lacking[nearest])}", Exit.USAGE)
    return [result for name in fitting for result in _checks(name, drawn[name], factory, replay)]


def _checked_process(target: str, replay: str) -> "list[Result]":
    """Check the adapter for each suite that it supports.

    Ends the command if it supports none, or if it fails: an adapter that is gone cannot be checked.
    """
    from mqproof.conformance.adapters.stdio.adapter_proxy import stdio_targets
    from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
    from mqproof.conformance.registry.suite_registry import SUITES, Drawn

    found: list[Result] = []
    refusals: list[str] = []
    for name, one in SUITES.items():
        if not isinstance(one, Drawn):
            continue
        try:
            with stdio_targets(target, name, one.protocol()) as factory:
                found += _checks(name, one, factory, replay)
        except UnknownTargetError as error:
            refusals.append(str(error))
        except TargetError as error:
            stop(f"{target}: {error}", Exit.TOOL)
    if not found:
        stop(refusals[0], Exit.USAGE)
    return found


def _checks(name: str, suite: "Drawn", factory: Callable[[], Any], replay: str) -> "Iterable[Result]":
    from mqproof.conformance.adapters.checklist import check, check_for

    if name == "flush":
        return check(factory, replay)
    return check_for(suite.load(), suite.protocol(), factory, replay)


def _conducted(options: "RunOptions", names: list[str], *, named: bool) -> "list[Part]":
    """Run the suites and return their parts.

    Ends the command on wrong use, and if no suite has such a target.
    """
    from mqproof.conformance.engine.run_options import RunOptionsError
    from mqproof.conformance.engine.targets import MUTANT, UnknownTargetError
    from mqproof.conformance.registry.suite_registry import conduct

    _collect_less()
    parts: list[Part] = []
    with terminable(), stages(f"conform {options.target}") as on_stage:
        for name in names:
            try:
                parts.append(conduct(options, name, _progress(on_stage, name)))
            except RunOptionsError as error:
                stop(str(error), Exit.USAGE)
    with_target = [part for part in parts if not isinstance(part.refusal, UnknownTargetError)]
    if not with_target:
        stop(f"--target {_no_target(parts, options.target)}", Exit.USAGE)
    if options.target.startswith(MUTANT) and not named:  # a mutant of one suite is unknown to the others
        return with_target
    return parts


def _collect_less() -> None:
    """Exclude the imported modules from the garbage collector, which takes a tenth of the time otherwise."""
    gc.freeze()
    gc.set_threshold(10_000, 50, 1000)


def _no_target(parts: "list[Part]", target: str) -> str:
    """Return why no suite has the target: the first suite's reason, or the mutants of a similar name."""
    from mqproof.conformance.engine.targets import MUTANT, UnknownMutantError

    refusals = [part.refusal for part in parts if isinstance(part.refusal, UnknownMutantError)]
    if len(refusals) < 2:
        return str(parts[0].refusal)
    known = sorted({mutant for refusal in refusals for mutant in refusal.known})
    near = get_close_matches(target.removeprefix(MUTANT), known)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{target!r} is not a mutant of any suite; {hint}{_MUTANTS_PAGE} lists them"


def _finish(
    parts: "list[Part]",
    options: "RunOptions",
    files: ResultFiles,
    write_more: "Callable[[Report], None]",
    *,
    named: bool,
) -> None:
    """Show and write the available results, then report a refusal: a suite may have run for hours."""
    from mqproof.conformance.engine import scoreboard
    from mqproof.conformance.engine.targets import AdapterFailedError, UnknownTargetError
    from mqproof.report import terminal
    from mqproof.report.files import write_files

    refusals = [part.refusal for part in parts if part.refusal]
    whole = scoreboard.scoreboard(parts, options)
    if len(refusals) < len(parts):
        terminal.show(scoreboard.screen(parts, options))
    write_files(whole, json=files.json_file, junit=files.junit_file)
    page = files.report_file
    write_files(scoreboard.page(parts, options) if page and page.suffix in _FOR_PEOPLE else whole, page=page)
    write_more(whole)
    for refusal in refusals:
        if named and isinstance(refusal, UnknownTargetError):
            stop(f"--target {refusal}", Exit.USAGE)
    for refusal in refusals:
        if isinstance(refusal, AdapterFailedError):
            stop(f"{options.target}: {refusal}", Exit.TOOL)
    if len(refusals) == len(parts):
        cause = next(one for one in refusals if not isinstance(one, UnknownTargetError))
        stop(f"{options.target}: {cause}", Exit.TOOL)
    raise typer.Exit(exit_code(whole.results))


def _progress(on_stage: Callable[[str], None], name: str) -> Callable[[int, int], None]:
    def progress(done: int, to_do: int) -> None:
        if done % max(1, to_do // _PROGRESS_LINES) == 0:
            on_stage(f"{name}: {done} of {to_do}")

    return progress


@app.command("trace-check")
def trace_check(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Event logs (NDJSON) of brokers, pairs, name servers or DLedger groups."
        ),
    ],
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Messages per trace (default 100); a log is cut into many traces."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    models_file: Annotated[
        Path | None,
        typer.Option(
            "--models",
            metavar="FILE",
            help="Check logs of your own system against the models of this models.toml.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Check against this model only.")] = None,
) -> None:
    """Check with TLC whether event logs are behaviours of models: Flush, Replication, Routing, Election.

    For a refused log, the command shows the longest accepted prefix, the event that no action explains, and
    the closest actions. With --models, logs are checked against your own trace module, without closest
    actions.

    Examples: mqproof trace-check broker.ndjson; mqproof trace-check --models my-models.toml run-1.ndjson
    run-2.ndjson
    """
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.model import Report
    from mqproof.spec.tlc.errors import TlcError

    if models_file is not None and window is not None:
        stop(
            "--window cuts logs of brokers and is not available with --models",
            Exit.USAGE,
        )
    with stages("trace-check") as on_stage:
        try:
            found = (
                _own_traces(models_file, model, logs)
                if models_file
                else _traces(logs, window or 100, model, on_stage)
            )
        except TlcError as error:
            stop(str(error), error.exit_code if models_file else Exit.TOOL)
    report = Report("mqproof trace-check", found)
    terminal.show(report)
    write_files(report, json=json_file)
    raise typer.Exit(exit_code(found))


def _traces(
    logs: list[Path], window: int, model: str | None, on_stage: Callable[[str], None]
) -> "tuple[Result, ...]":
    """Return the results for event logs in mqproof's vocabulary."""
    from mqproof.conformance.traces.check import check_logs, results
    from mqproof.conformance.traces.models import MODELS
    from mqproof.spec.events import EventError

    if model is not None and model not in (names := sorted({known.name for known in MODELS})):
        stop(f"--model {model}: expected one of {', '.join(names)}", Exit.USAGE)
    began = time.perf_counter()
    try:
        checked = check_logs(logs, records_max=window, models=(model,) if model else (), on_stage=on_stage)
    except EventError as error:
        stop(str(error), Exit.USAGE)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    return results(checked, time.perf_counter() - began)


def _own_traces(models_file: Path, model: str | None, logs: list[Path]) -> "tuple[Result, ...]":
    """Return the results for logs of another system, checked against its own trace module."""
    from mqproof.spec.model_file import ModelFileError, load
    from mqproof.spec.tlc.trace_check import TraceCheckError
    from mqproof.spec.trace_logs import TraceLogError, check_logs, trace_module

    try:
        models = load(models_file)
        return check_logs(models, trace_module(models, model), logs)
    except (ModelFileError, TraceLogError, TraceCheckError) as error:
        stop(str(error), Exit.USAGE)
