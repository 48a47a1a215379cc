"""The Mutant type: one attribute of a module or class, replaced by a defective one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
