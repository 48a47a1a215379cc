"""`mqproof conform` and `mqproof trace-check`."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.conformance.commands.conform_options import (
    CommandTemplates,
    ResultFiles,
    RunRules,
    Selection,
    run_options,
)
from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, exit_code
from mqproof.report.option_groups import with_groups

if TYPE_CHECKING:
    from mqproof.conformance.engine.run_options import Part, RunOptions
    from mqproof.report.model import Result

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
conform_app = typer.Typer(invoke_without_command=True)
app.add_typer(conform_app, name="conform")

_PROGRESS_LINES: Final = 10
_FOR_PEOPLE: Final = (".html", ".md")
"""Reports that sum up what machines read one by one."""


@app.callback()
def _root() -> None:
    """Conformance: hold an implementation to the specification."""


@conform_app.callback()
@with_groups
def conform(
    context: typer.Context,
    selection: Selection,
    files: ResultFiles,
    rules: RunRules,
    templates: CommandTemplates,
    strict: Annotated[bool, typer.Option("--strict", help="wire: a SHOULD that is not met fails.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be judged.")] = False,
) -> None:
    """Drive a target with drawn operations, faults and numbered questions, and judge every invariant on what
    a client saw.

    What the target cannot be asked for is reported as not tested. A failure is shrunk to a minimal script.

    Examples: mqproof conform --target impl --examples 300;
    mqproof conform --target remoting://127.0.0.1:9876 --report conform.html;
    mqproof conform --target apache:5 --suite routing --examples 30;
    mqproof conform --target remoting://127.0.0.1:9876 --suite wire --since 4.9 --id 'remoting/send*'
    """
    if context.invoked_subcommand is not None:
        return
    from mqproof.conformance.registry.suite_registry import SUITES

    suite = selection.suite
    for name in suite or ():
        if name not in SUITES:
            stop(f"--suite {name}: expected {', '.join(SUITES)}", Exit.USAGE)
    options = run_options(selection, rules, templates, strict=strict)
    # The suites run in the order of SUITES, whatever their order on the command line: it is the same run.
    names = [name for name in SUITES if name in (suite or SUITES) and SUITES[name].listed(options)]
    if not names:
        stop(f"--id {' '.join(options.ids)}: no invariant and no case has such an id", Exit.USAGE)
    if dry_run:
        sys.stdout.writelines(f"{line}\n" for name in names for line in SUITES[name].lines(options))
        raise typer.Exit(Exit.HELD)
    named = bool(suite)
    _finish(_conducted(options, names, named=named), options, files, named=named)


@conform_app.command()
@with_groups
def diff(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="A run, as --json wrote it.")],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="The run to be compared with it.")],
    files: ResultFiles,
) -> None:
    """Compare two runs: exit 1 when something is violated that was not, 3 when it is not seen to hold now.

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
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="Where the adapter begins its life.")],
    suite: Annotated[str, typer.Option(metavar="NAME", help="For which suite.")] = "flush",
) -> None:
    """Write an adapter to begin with: for the suite flush a toy broker that passes, to be replaced method by
    method; for any other what its target has to offer, to be filled in.

    Examples: mqproof conform template my_broker.py;  mqproof conform template my_offsets.py --suite offsets
    """
    from mqproof.conformance.adapters import skeleton, template
    from mqproof.conformance.registry.suite_registry import SUITES, Drawn

    if not isinstance(registered := SUITES.get(suite), Drawn):
        known = ", ".join(name for name, one in SUITES.items() if isinstance(one, Drawn))
        stop(f"--suite {suite}: expected {known}", Exit.USAGE)
    if suite == "flush":
        text, name = Path(template.__file__).read_text(encoding="utf-8"), "MyBroker"
    else:
        text = skeleton.skeleton(registered.protocol(), suite).replace("MODULE", file.stem)
        name = skeleton.CLASS
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        stop(f"{file}: {error.strerror}", Exit.USAGE)
    print(f"{file}: fill it in; then mqproof conform check-adapter python:{file.stem}:{name}")


@conform_app.command("check-adapter")
def check_adapter(
    target: Annotated[str, typer.Argument(metavar="python:MODULE:CLASS", help="The adapter.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The result as JSON.")
    ] = None,
) -> None:
    """Check what the suite requires of an adapter, and report what to fix first.

    Example: mqproof conform check-adapter python:my_broker:MyBroker
    """
    from mqproof.conformance.adapters.checklist import check, check_for
    from mqproof.conformance.adapters.python_class import adapter_class, members
    from mqproof.conformance.engine.targets import PYTHON, UnknownTargetError
    from mqproof.conformance.registry.suite_registry import SUITES, Drawn
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.model import Report, Result

    if not target.startswith(PYTHON):
        stop(f"{target!r}: {PYTHON}MODULE:CLASS expected", Exit.USAGE)
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
        stop(f"{target!r} is no {protocol}: it lacks {', '.join(lacking[nearest])}", Exit.USAGE)
    replay = f"mqproof conform check-adapter {target}"
    found: list[Result] = []
    with terminable():
        for name in fitting:
            one = drawn[name]
            found += (
                check(factory, replay) if name == "flush"
                else check_for(one.load(), one.protocol(), factory, replay)
            )  # fmt: skip
    report = Report(f"The adapter {target}", tuple(found))
    terminal.show(report)
    write_files(report, json=json_file)
    raise typer.Exit(exit_code(report.results))


def _conducted(options: "RunOptions", names: list[str], *, named: bool) -> "list[Part]":
    """A part for each suite. Ends the command on wrong use, and where no suite has such a target."""
    from mqproof.conformance.engine.run_options import RunOptionsError
    from mqproof.conformance.engine.targets import MUTANT, UnknownTargetError
    from mqproof.conformance.registry.suite_registry import conduct

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
    if options.target.startswith(MUTANT) and not named:  # of one suite, and nothing to the others
        return with_target
    return parts


def _no_target(parts: "list[Part]", target: str) -> str:
    """Why none of the suites has such a target: what one says is enough, but each has its own mutants."""
    from mqproof.conformance.engine.targets import UnknownMutantError

    known = {part.suite: part.refusal.known for part in parts if isinstance(part.refusal, UnknownMutantError)}
    if len(known) < 2:
        return str(parts[0].refusal)
    listed = (f"{suite} ({', '.join(mutants)})" for suite, mutants in known.items())
    return f"{target!r} is no mutant of any suite; there are those of {'; '.join(listed)}"


def _finish(
    parts: "list[Part]",
    options: "RunOptions",
    files: ResultFiles,
    *,
    named: bool,
) -> None:
    """Show and write what there is, before a refusal ends the command: a suite may have run for hours."""
    from mqproof.conformance.engine import scoreboard
    from mqproof.conformance.engine.targets import UnknownTargetError
    from mqproof.report import terminal
    from mqproof.report.files import write_files

    refusals = [part.refusal for part in parts if part.refusal]
    whole = scoreboard.scoreboard(parts, options)
    if len(refusals) < len(parts):
        terminal.show(scoreboard.screen(parts, options))
    write_files(whole, json=files.json_file, junit=files.junit_file)
    page = files.report_file
    write_files(scoreboard.page(parts, options) if page and page.suffix in _FOR_PEOPLE else whole, page=page)
    for refusal in refusals:
        if named and isinstance(refusal, UnknownTargetError):
            stop(f"--target {refusal}", Exit.USAGE)
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
            metavar="FILE...", help="Event logs, NDJSON: brokers, pairs, name servers, DLedger groups."
        ),
    ],
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Messages in one trace, 100 by default; a log is cut into many traces."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
    models_file: Annotated[
        Path | None,
        typer.Option("--models", metavar="FILE", help="Check logs of your own system: a models.toml."),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Check against this model only.")] = None,
) -> None:
    """Decide with TLC whether event logs are behaviours of models: Flush, Replication, Routing, Election.

    A log that is not is shown with its longest accepted prefix, the event that no action explains, and the
    actions that came closest. With --models the logs are checked against your own trace module; the actions
    that came closest are not available there.

    Examples: mqproof trace-check broker.ndjson;
    mqproof trace-check --models my-models.toml run-1.ndjson run-2.ndjson
    """
    from mqproof.report import terminal
    from mqproof.report.files import write_files
    from mqproof.report.model import Report
    from mqproof.spec.tlc.errors import TlcError

    if models_file is not None and window is not None:
        stop("trace-check: --window cuts the logs of brokers; it is not available with --models", Exit.USAGE)
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
    """The results for event logs of mqproof's vocabulary."""
    from mqproof.conformance.traces.check import check_logs, results
    from mqproof.conformance.traces.models import MODELS
    from mqproof.spec.events import EventError

    if model is not None and model not in (names := sorted({known.name for known in MODELS})):
        stop(f"trace-check: --model {model}: expected one of {', '.join(names)}", Exit.USAGE)
    began = time.perf_counter()
    try:
        checked = check_logs(logs, records_max=window, models=(model,) if model else (), on_stage=on_stage)
    except EventError as error:
        stop(str(error), Exit.USAGE)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    return results(checked, time.perf_counter() - began)


def _own_traces(models_file: Path, model: str | None, logs: list[Path]) -> "tuple[Result, ...]":
    """The results for logs of another system, checked against its own trace module."""
    from mqproof.spec.model_file import ModelFileError, load
    from mqproof.spec.tlc.trace_check import TraceCheckError
    from mqproof.spec.trace_logs import TraceLogError, check_logs, trace_module

    try:
        models = load(models_file)
        return check_logs(models, trace_module(models, model), logs)
    except (ModelFileError, TraceLogError, TraceCheckError) as error:
        stop(str(error), Exit.USAGE)
