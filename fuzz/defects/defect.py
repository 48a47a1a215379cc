"""A mutant: one attribute of a module or class, replaced by a wrong one."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The defect is in place inside the block."""
    module, _, path = mutant.where.partition(":")
    *owners, attribute = path.split(".")
    owner = importlib.import_module(module)
    for name in owners:
        owner = getattr(owner, name)
    right = getattr(owner, attribute)
    setattr(owner, attribute, mutant.wrong)
    try:
        yield
    finally:
        setattr(owner, attribute, right)
