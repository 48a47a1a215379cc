"""Injects defects: replaces one attribute of a module or class by a wrong one for a limited time."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Defect(Protocol):
    @property
    def where(self) -> str:
        """module:attribute that is replaced."""

    @property
    def wrong(self) -> Callable[..., object]:
        """The replacement."""


@contextmanager
def injected(defect: Defect) -> Iterator[None]:
    """Replace the attribute within the block."""
    module, _, path = defect.where.partition(":")
    *owners, attribute = path.split(".")
    owner = importlib.import_module(module)
    for name in owners:
        owner = getattr(owner, name)
    right = getattr(owner, attribute)
    setattr(owner, attribute, defect.wrong)
    try:
        yield
    finally:
        setattr(owner, attribute, right)
