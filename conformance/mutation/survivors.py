"""Reads survivors.toml, which states for mutants that no suite detects whether a peer could notice them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from mqproof.conformance.mutation.operators import Mutant

FILE: Final = Path(__file__).with_name("survivors.toml")


class Kind(StrEnum):
    """Who can notice a mutant."""

    EQUIVALENT = "equivalent"  # no run of the program differs
    INVISIBLE = "invisible"  # something differs, but nothing that a peer receives or a restart keeps
    VISIBLE = "visible"  # a peer or a restart shows it, if a suite does what the reason says
    UNSTATED = "not stated"  # survivors.toml does not name it; it counts as visible


@dataclass(frozen=True, slots=True)
class Stated:
    """What survivors.toml says about a mutant."""

    kind: Kind
    reason: str = ""


SHOWN: Final = frozenset({Kind.VISIBLE, Kind.UNSTATED})
"""The kinds that a peer or a restart can show, as far as is known."""
UNSTATED: Final = Stated(Kind.UNSTATED)
ALL: Final = "*"
"""Stands for every change: of a line in the key of a mutant, or of a module instead of a key."""
Survivors = Mapping[tuple[str, str], Stated]
"""Maps a module and the key of a mutant, of a line, or ALL, to what is stated about it."""


class SurvivorsError(ValueError):
    """survivors.toml has a line of another form; the message names it."""


def change(mutant: Mutant) -> str:
    """Return the change for a reader."""
    return f"{mutant.operator}: {mutant.before} -> {mutant.after}"


def key(mutant: Mutant) -> str:
    """Return the name of a mutant in survivors.toml; it does not change when lines move."""
    return f"{change(mutant)} | {mutant.text}"


def line_key(mutant: Mutant) -> str:
    """Return the name of all mutants of a line in survivors.toml."""
    return f"{ALL} | {mutant.text}"


def stated_of(mutant: Mutant, known: Survivors) -> Stated:
    """Return what is stated about a mutant, its line, or its module, the first that is."""
    names = key(mutant), line_key(mutant), ALL
    return next((known[mutant.module, name] for name in names if (mutant.module, name) in known), UNSTATED)


def stated(file: Path = FILE) -> Survivors:
    """Return the content of the file.

    Raises:
        SurvivorsError: a table has no known kind, or a value is not a reason.
    """
    found: dict[tuple[str, str], Stated] = {}
    for name, modules in tomllib.loads(file.read_text(encoding="utf-8")).items():
        if name not in set(Kind) - {Kind.UNSTATED} or not isinstance(modules, dict):
            raise SurvivorsError(f"{file}: {name}: expected tables of the form [KIND.'MODULE']")
        for module, reasons in modules.items():
            if not isinstance(reasons, dict):
                raise SurvivorsError(f"{file}: {name}.{module}: expected a table")
            for text, reason in reasons.items():
                if not isinstance(reason, str) or not reason:
                    raise SurvivorsError(f"{file}: {name}.{module}: {text}: expected a reason")
                if (module, text) in found:
                    raise SurvivorsError(f"{file}: {name}.{module}: {text}: stated twice")
                found[module, text] = Stated(Kind(name), reason)
    return found
