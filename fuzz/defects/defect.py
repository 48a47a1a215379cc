"""The Mutant type: one attribute of a module or class, replaced by a defective one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mqproof.conformance.mutants.mutant import Mutant as ImplMutant
from mqproof.spec import catalogue


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    defect: str
    """One sentence that describes the defect."""
    target: str
    breaks: str
    """The name of the invariant that must catch it."""
    where: str
    """The attribute to replace, written as module:attribute."""
    wrong: Callable[..., Any]


def as_of_target(theirs: ImplMutant, target: str, noticed_by: Mapping[str, str]) -> Mutant:
    """Return a mutant of conformance as one of a target.

    `noticed_by` maps the names of mutants to the invariants that notice them here.
    """
    name = "".join(part.capitalize() for part in theirs.name.split("-"))
    breaks = noticed_by.get(theirs.name, catalogue.catalogue()[theirs.breaks].name)
    return Mutant(name, theirs.defect, target, breaks, theirs.where, theirs.wrong)
