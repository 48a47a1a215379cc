"""Defines a mutant: one rule of the implementation replaced by a wrong one.

Each mutant names the rule that it breaks, the place of that rule, and the invariant that must detect it.
Mutants judge the suites: `mqproof mutants --layer impl` runs all of them, and every one must be detected. A
mutant replaces an attribute of a module or class for a limited time (see `replacement.py`), so only one is
active at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    defect: str
    """The defect, in one sentence."""
    breaks: str
    """The id of the invariant that must detect it."""
    where: str
    """The object that the mutant replaces, as `module:attribute`."""
    wrong: Callable[..., Any]


def unexplained(name: str, defect: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    """Return a mutant whose answers or files no behaviour of the models explains: it breaks SPEC-1."""
    return Mutant(name, defect, "SPEC-1", where, wrong)


def nothing(*_: object, **__: object) -> None:
    """Do nothing, in place of a function that a mutant leaves out."""


def by_name(*mutants: Mutant) -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in mutants}
