"""mqproof: RocketMQ specified, model-checked, implemented, attacked and audited under one catalogue.

This module mounts each folder's `cli.py`. The imports are late: a broker never loads Spark or TLC.
"""

import importlib
import sys
from typing import Final

COMMANDS: Final = {
    "demo": (
        "conformance.demo",
        "the main job, small: models, equivalence, a real run with kills, its audit",
    ),
    "check": ("spec.cli", "model-check with TLC"),
    "equiv": ("reference.cli", "show that the reference is TLC's state graph"),
    "mutants": ("conformance.cli", "run the deliberately broken variants; every one must be caught"),
    "coverage": ("spec.cli", "the matrix of invariants and layers"),
    "namesrv": ("impl.cli", "run a name server"),
    "broker": ("impl.cli", "run a broker"),
    "serve": ("impl.cli", "run a name server and a broker in one process"),
    "send": ("impl.cli", "send messages"),
    "consume": ("impl.cli", "consume messages"),
    "conform": ("conformance.cli", "hold an implementation to the specification"),
    "trace-check": ("conformance.cli", "validate event logs against the specification with TLC"),
    "fuzz": ("fuzz.cli", "run, replay and list fuzz targets"),
    "audit": ("spark_audit.cli", "find lost, duplicated, reordered and phantom messages with Spark"),
    "bench": ("conformance.bench", "side-by-side benchmarks"),
}
"""Command name to the module whose typer `app` has it, and its one-line help."""


def main() -> None:
    """The `mqproof` command."""
    name = next(iter(sys.argv[1:]), "--help")
    if name in ("-h", "--help"):
        print(_help())
        return
    if name not in COMMANDS:
        print(f"mqproof: no command {name!r}; see mqproof --help", file=sys.stderr)
        raise SystemExit(2)
    app = importlib.import_module(COMMANDS[name][0]).app
    app(prog_name="mqproof")


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: mqproof COMMAND [OPTIONS]",
            "",
            *lines,
            "",
            "mqproof COMMAND --help tells more. Exit codes: 0 held, 1 violated, 2 bad input, 3 inconclusive, 4 a tool failed.",
        ]
    )


if __name__ == "__main__":
    main()
