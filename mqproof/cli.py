"""The `mqproof` command: maps each command name to the module that implements it.

Mounts the `cli` module of each part. The imports are late: a broker never loads Spark or TLC.
"""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any, Final

COMMANDS: Final = {
    "demo": (
        "mqproof.demo",
        "the main job, small: models, equivalence, a real run with kills, its audit",
    ),
    "check": ("mqproof.spec.cli", "model-check with TLC"),
    "simulate": ("mqproof.spec.cli", "print and draw a random behaviour of a model"),
    "explore": ("mqproof.reference.cli", "walk the reference's states, by processes or by Spark"),
    "equiv": ("mqproof.reference.cli", "show that the reference is TLC's state graph"),
    "prove": ("mqproof.reference.cli", "prove invariants inductive with Z3, contracts with CrossHair"),
    "mutate": (
        "mqproof.reference.mutate_cli",
        "break every action of the models in small ways; tell who notices",
    ),
    "matrix": (
        "mqproof.spec.guarantee.cli",
        "what is lost under each configuration and fault, and what is claimed",
    ),
    "bounds": ("mqproof.spec.bounds_cli", "grow each constant of the models by one; tell what happens anew"),
    "mutants": ("mqproof.cli", "run the deliberately broken variants; every one must be caught"),
    "coverage": ("mqproof.spec.cli", "the matrix of invariants and layers"),
    "namesrv": ("mqproof.impl.command.cli", "run a name server"),
    "broker": ("mqproof.impl.command.cli", "run a broker"),
    "serve": ("mqproof.impl.command.cli", "run a name server and a broker in one process"),
    "send": ("mqproof.impl.command.cli", "send messages"),
    "consume": ("mqproof.impl.command.cli", "consume messages"),
    "store": (
        "mqproof.impl.examine.cli",
        "inspect and verify a store directory, ours or a released broker's",
    ),
    "admin": ("mqproof.impl.admin.cli", "administer a cluster, with mqadmin's names and letters"),
    "conform": ("mqproof.conformance.commands.conform", "hold an implementation to the specification"),
    "behaviours": (
        "mqproof.conformance.commands.model_behaviours",
        "take every step of the models' state graphs on a target",
    ),
    "trace-check": (
        "mqproof.conformance.commands.conform",
        "validate event logs against the specification with TLC",
    ),
    "workload": (
        "mqproof.conformance.commands.histories",
        "let clients of all kinds loose on a cluster, and write down all they saw",
    ),
    "check-history": ("mqproof.conformance.commands.histories", "find anomalies in what clients saw"),
    "convert-history": (
        "mqproof.conformance.commands.histories",
        "histories from OpenChaos, to Jepsen and elle",
    ),
    "fuzz": ("mqproof.fuzz.cli", "run, replay and list fuzz targets"),
    "audit": ("mqproof.spark_audit.cli", "find lost, duplicated, reordered and phantom messages with Spark"),
    "bench": ("mqproof.cli", "side-by-side benchmarks"),
}
"""Command name to the module whose typer `app` has it, and its one-line help."""

_TOOL_FAILED: Final = 4
"""As `mqproof.report.model.Exit`, which a broker does without."""

MATRIX_ON: Final = {
    "model": "mqproof.spec.guarantee.cli",
    "impl": "mqproof.conformance.commands.guarantee_matrix",
}
"""What `mqproof matrix --on` names to the module that has its `matrix`."""

MUTANTS: Final = {
    "tla": "mqproof.spec.mutants",
    "reference": "mqproof.reference.mutants",
    "impl": "mqproof.conformance.registry.mutant_judge",
    "fuzz": "mqproof.fuzz.mutants",
    "simulation": "mqproof.fuzz.simulation",
    "audit": "mqproof.spark_audit.quality.mutants",
}
"""Layer to the module that has its mutants: `names()`, and `run(chosen)` which yields a result for each."""


def main() -> None:
    """The `mqproof` command."""
    name = next(iter(sys.argv[1:]), "--help")
    if name in ("-h", "--help"):
        print(_help())
        return
    if name not in COMMANDS:
        print(f"mqproof: no command {name!r}; see mqproof --help", file=sys.stderr)
        raise SystemExit(2)
    try:
        module = _matrix_module() if name == "matrix" else COMMANDS[name][0]
        app = _own_app() if module == "mqproof.cli" else importlib.import_module(module).app
        app(prog_name="mqproof.cli")
    except Exception:
        # Left to Python it would exit with 1, which says that something is violated.
        traceback.print_exc()
        raise SystemExit(_TOOL_FAILED) from None


def _matrix_module() -> str:
    """The folder that decides the matrix: the model's, unless `--on` names another."""
    for argument, following in zip(sys.argv, [*sys.argv[1:], ""], strict=True):
        option, _, value = argument.partition("=")
        if option == "--on":
            return MATRIX_ON.get(value or following, MATRIX_ON["model"])
    return MATRIX_ON["model"]


def _own_app() -> Any:
    """The commands that go through several folders, and so belong to none."""
    from mqproof.conformance.commands.benchmarks import app, bench
    from mqproof.reference.explorer.bench import bench_explore

    bench.command("audit")(bench_audit)
    bench.command("explore")(bench_explore)
    app.command("mutants")(mutants)
    return app


def bench_audit(events: int = 1_000_000, side: list[str] | None = None, log: Path | None = None) -> None:
    """The audit of a generated log, beside a bare Spark scan of the same files; finds what was planted.

    With --log FOLDER, of Parquet files that are there, in place of the clean log; there is no dirty one.

    Sides, of which all are measured when none is named: bare scan, by message, clean, dirty, worst case,
    duckdb, "duckdb, dirty". Each is printed as soon as it is measured.

    Example: mqproof bench audit --events 10000000 --side "bare scan" --side clean
    """
    from mqproof.spark_audit.generator.scenario import ScenarioError
    from mqproof.spark_audit.quality.bench import SideError, bench
    from mqproof.spark_audit.sources.inputs import InputError

    try:
        bench(events, side or (), log=log)
    except (SideError, ScenarioError, InputError) as error:
        print(f"mqproof bench audit: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def mutants(layer: str = "", name: list[str] | None = None, json: str = "") -> None:
    """Run the deliberately broken variants; exit 1 if a check lets one survive.

    Layers: tla (TLC), reference (the explorer), impl (the conformance suite), fuzz, simulation (clusters and
    groups, seed after seed), audit. Default is all. --name, once for each, chooses among them.

    Examples: mqproof mutants --layer impl;  mqproof mutants --layer reference --name AckBeforeFlush
    """
    from mqproof.report import json_file, terminal
    from mqproof.report.console import stages, stop
    from mqproof.report.model import Exit, Report, exit_code
    from mqproof.report.write import write_text

    if layer and layer not in MUTANTS:
        stop(f"--layer {layer}: expected one of {', '.join(MUTANTS)}", Exit.USAGE)
    suites = {each: importlib.import_module(MUTANTS[each]) for each in ([layer] if layer else MUTANTS)}
    known = [mutant for suite in suites.values() for mutant in suite.names()]
    for one in name or ():
        if one not in known:
            stop(f"--name {one}: no such mutant; there are {', '.join(known)}", Exit.USAGE)
    chosen = {
        each: [mutant for mutant in suite.names() if mutant in (name or known)]
        for each, suite in suites.items()
    }
    results = []
    with stages("mutants") as told:
        for each, wanted in chosen.items():
            for mutant in wanted:
                told(f"{each} {mutant}")
                results.extend(suites[each].run([mutant]))
    report = Report("mqproof mutants: held means caught", tuple(results))
    terminal.show(report)
    if json:
        write_text(Path(json), json_file.render(report))
    raise SystemExit(exit_code(results))


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: mqproof COMMAND [OPTIONS]",
            "",
            *lines,
            "",
            "mqproof COMMAND --help tells more.",
            "Exit codes: 0 held, 1 violated, 2 bad input, 3 inconclusive, 4 a tool or mqproof failed.",
        ]
    )


if __name__ == "__main__":
    main()
