"""The `mqproof` command: maps each command name to the module that implements it.

Mounts the `cli` module of each part. The imports are late: a broker never loads Spark or TLC.
"""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer

from mqproof import extras
from mqproof.command_group import HELP, LazyGroup, run
from mqproof.standard_streams import guarded

COMMANDS: Final = {
    "demo": (
        "mqproof.demo.cli",
        "Run a small part of every layer, and audit real brokers.",
    ),
    "check": ("mqproof.spec.cli", "Model-check with TLC."),
    "simulate": ("mqproof.spec.cli", "Print and draw a random behaviour of a model."),
    "explore": (
        "mqproof.reference.commands.cli",
        "Explore the reference's states, in processes, on Spark or with files.",
    ),
    "equiv": ("mqproof.reference.commands.cli", "Show that the reference equals TLC's state graph."),
    "prove": ("mqproof.reference.commands.cli", "Prove invariants with Z3, and contracts with CrossHair."),
    "mutate": (
        "mqproof.reference.commands.mutate_cli",
        "Break every action of the models; list what no check notices.",
    ),
    "mutate-impl": (
        "mqproof.conformance.commands.mutate_impl",
        "Change the code of impl/; list what no suite notices.",
    ),
    "matrix": ("mqproof.spec.guarantee.cli", "Decide what is lost under each configuration and fault."),
    "bounds": ("mqproof.spec.bounds_cli", "Grow each constant of the models by one; report what is new."),
    "mutants": ("mqproof.cli", "Run the broken variants; each must be caught."),
    "coverage": ("mqproof.spec.cli", "Show which layer checks which invariant."),
    "namesrv": ("mqproof.impl.command.cli", "Run a name server."),
    "broker": ("mqproof.impl.command.cli", "Run a broker."),
    "filter-server": ("mqproof.impl.command.cli", "Run consumers' functions beside a broker."),
    "serve": ("mqproof.impl.command.cli", "Run a name server and a broker in one process."),
    "send": ("mqproof.impl.command.cli", "Send messages."),
    "consume": ("mqproof.impl.command.cli", "Consume messages."),
    "store": ("mqproof.impl.examine.cli", "Inspect and verify a store directory of any RocketMQ broker."),
    "console": ("mqproof.impl.console.cli", "Serve web pages about a cluster."),
    "admin": ("mqproof.impl.admin.cli", "Administer a cluster, with mqadmin's names and letters."),
    "diagnose": (
        "mqproof.impl.diagnosis.cli",
        "Find out what happened to a message, or why a group receives nothing.",
    ),
    "conform": ("mqproof.conformance.commands.conform", "Test an implementation against the specification."),
    "behaviours": (
        "mqproof.conformance.commands.model_behaviours",
        "Replay every step of the models' graphs.",
    ),
    "trace-check": (
        "mqproof.conformance.commands.conform",
        "Validate event logs against the specification with TLC.",
    ),
    "workload": (
        "mqproof.conformance.commands.histories",
        "Run concurrent clients and record what they see.",
    ),
    "check-history": (
        "mqproof.conformance.commands.histories",
        "Find anomalies in the histories of clients.",
    ),
    "convert-history": (
        "mqproof.conformance.commands.histories",
        "Convert a history from OpenChaos, to Jepsen or elle.",
    ),
    "chaos": (
        "mqproof.conformance.commands.chaos_proxy",
        "Run a proxy that injects faults the specification permits.",
    ),
    "fuzz": ("mqproof.fuzz.cli", "Run, replay and list fuzz targets."),
    "audit": ("mqproof.spark_audit.cli", "Find lost, duplicated, reordered and phantom messages."),
    "bench": ("mqproof.cli", "Run side-by-side benchmarks."),
    "completion": ("mqproof.completion", "Print a completion script for a shell."),
}
"""Maps a command name to the module whose typer `app` has it, and to its one-line help."""

_GROUPS: Final = {"--broadcast": "--broadcast-group", "--orderly": "--orderly-group"}
RENAMED: Final = {
    "audit run": {"--carry": "--state", "--check": "--id", **_GROUPS},
    "audit watch": _GROUPS,
    "audit generate": {"--events": "--count"},
    "consume": {"--max": "--count"},
    "conform": {"--dryrun": "--dry-run"},
    "behaviours": {"--write": "--out"},
    "explore": {"--spark": "--master"},
    "bench audit": {"--events": "--count"},
    "bench broker": {"--profile": "--cpu-profile", "--no-profile": "--no-cpu-profile"},
    "bench explore": {"--spark": "--master", "--workers": "--worker-counts"},
    "mutants": {"--name": "--only"},
}
"""Maps a command to its old option names, which still work with a warning, and the new ones."""

_TOOL_FAILED: Final = 4
"""The exit code `Exit.TOOL`. `mqproof.report.model` is not imported, so that a broker starts fast."""

_EPILOG: Final = (
    "Exit codes: 0 held; 1 violated; 2 wrong use or bad input; 3 inconclusive; 4 a tool or mqproof failed; "
    "141 the reader of the output closed the pipe. mqproof COMMAND --help describes a command."
)

MATRIX_ON: Final = {
    "model": "mqproof.spec.guarantee.cli",
    "impl": "mqproof.conformance.commands.guarantee_matrix",
}
"""Maps a value of `mqproof matrix --on` to the module that has its `matrix`."""

MUTANTS: Final = {
    "tla": "mqproof.spec.mutants",
    "reference": "mqproof.reference.mutants",
    "impl": "mqproof.conformance.registry.mutant_judge",
    "fuzz": "mqproof.fuzz.mutants",
    "simulation": "mqproof.fuzz.simulation",
    "audit": "mqproof.spark_audit.quality.mutants",
}
"""Maps a layer to the module with its mutants: `names()`, and `run(chosen)`, which yields their results."""


class _Commands(LazyGroup):
    """The commands of the table above."""

    summaries: ClassVar = {name: text for name, (_, text) in COMMANDS.items()}
    renamed = RENAMED
    silent = frozenset({"admin", "completion", "convert-history", "coverage", "diagnose", "store"})

    def load(self, name: str) -> typer.Typer:
        module = _matrix_module() if name == "matrix" else COMMANDS[name][0]
        app: typer.Typer = _own_app() if module == "mqproof.cli" else importlib.import_module(module).app
        return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # takes as long to import as this module

        print(f"mqproof {version('mqproof')}")
        raise typer.Exit


app = typer.Typer(cls=_Commands, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=HELP)


@app.callback(invoke_without_command=True, epilog=_EPILOG)
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Specify, check, run, attack and audit RocketMQ under one catalogue of invariants."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """The `mqproof` command."""
    with guarded():
        raise SystemExit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    known = arguments[:1] and arguments[0] in COMMANDS
    if known and (line := extras.missing(arguments)):
        print(line, file=sys.stderr)
        return _TOOL_FAILED
    try:
        return run(app)
    except Exception as error:
        if known and (line := extras.missing_module(arguments, error)):
            print(line, file=sys.stderr)
        else:
            # The default exit code of Python would be 1, which means a violation.
            traceback.print_exc()
        return _TOOL_FAILED


def _matrix_module() -> str:
    """Return the module that computes the matrix: the model's, unless `--on` names another."""
    for argument, following in zip(sys.argv, [*sys.argv[1:], ""], strict=True):
        option, _, value = argument.partition("=")
        if option == "--on":
            return MATRIX_ON.get(value or following, MATRIX_ON["model"])
    return MATRIX_ON["model"]


def _own_app() -> Any:
    """The commands that use several parts, and therefore belong to none of them."""
    from mqproof.conformance.commands.benchmarks import app, bench
    from mqproof.reference.explorer.bench import bench_explore

    bench.command("audit")(bench_audit)
    bench.command("explore")(bench_explore)
    app.command("mutants")(mutants)
    return app


def bench_audit(
    count: Annotated[int, typer.Option(help="Number of events to generate.")] = 1_000_000,
    side: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Measure only this side; may be repeated.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Use these Parquet files instead of the clean log.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result to this file.")
    ] = None,
) -> None:
    """Compare the audit of a generated log with a bare Spark scan of the same files.

    Sides: bare scan, by message, clean, dirty, worst case, duckdb, "duckdb, dirty". Each result is printed as
    soon as it is measured. With --log there is no dirty side.

    Example: mqproof bench audit --count 10000000 --side "bare scan" --side clean
    """
    from mqproof.report import measurements
    from mqproof.report.console import stop
    from mqproof.report.model import Exit
    from mqproof.spark_audit.generator.scenario import ScenarioError
    from mqproof.spark_audit.quality.bench import SideError, bench
    from mqproof.spark_audit.sources.inputs import InputError

    try:
        result = bench(count, side or (), log=log)
    except (SideError, ScenarioError, InputError) as error:
        stop(f"{error}", Exit.USAGE)
    if json_file is not None:
        measurements.write(json_file, result)


def mutants(
    layer: Annotated[
        str, typer.Option(metavar="LAYER", help=f"One of {', '.join(MUTANTS)}; all by default.")
    ] = "",
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Run only this mutant; may be repeated.")
    ] = None,
    json: Annotated[str, typer.Option(metavar="FILE", help="Write the result as JSON.")] = "",
) -> None:
    """Run the deliberately broken variants; each must be caught by a check.

    The layers are checked by: tla, TLC; reference, the explorer; impl, the conformance suites; fuzz, the fuzz
    targets; simulation, clusters and groups with one seed after another; audit, the audit.

    Exit codes: 0 all are caught; 1 one is not caught; 2 wrong use; 3 one could not be judged.

    Examples: mqproof mutants --layer impl;  mqproof mutants --layer reference --only AckBeforeFlush
    """
    from mqproof.report import json_file, terminal
    from mqproof.report.console import stages, stop
    from mqproof.report.model import Exit, Report, exit_code
    from mqproof.report.write import write_text

    if layer and layer not in MUTANTS:
        stop(f"--layer {layer}: expected one of {', '.join(MUTANTS)}", Exit.USAGE)
    suites = {each: importlib.import_module(MUTANTS[each]) for each in ([layer] if layer else MUTANTS)}
    known = [mutant for suite in suites.values() for mutant in suite.names()]
    for one in only or ():
        if one not in known:
            stop(f"--only {one}: no such mutant; there are {', '.join(known)}", Exit.USAGE)
    chosen = {
        each: [mutant for mutant in suite.names() if mutant in (only or known)]
        for each, suite in suites.items()
    }
    results = []
    with stages("mutants") as progress:
        for each, wanted in chosen.items():
            for mutant in wanted:
                progress(f"{each} {mutant}")
                results.extend(suites[each].run([mutant]))
    report = Report("mqproof mutants: held means caught", tuple(results))
    terminal.show(report)
    if json:
        write_text(Path(json), json_file.render(report))
    raise SystemExit(exit_code(results))


if __name__ == "__main__":
    main()
