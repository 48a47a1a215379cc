"""A mutant: one attribute of a module or class, replaced by a wrong one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    defect: str
    """What is wrong, in a sentence."""
    target: str
    breaks: str
    """The name of the invariant that must catch it."""
    where: str
    """module:attribute that is replaced."""
    wrong: Callable[..., Any]
