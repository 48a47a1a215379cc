"""What a mutant is: one rule of the implementation replaced by a wrong one.

Each names the rule that it breaks, where that rule lives, and the invariant that must notice. They judge the
suites: `mqproof mutants --layer impl` runs all, and every one must be caught. A mutant replaces an attribute
of a module or class for a while (see `replacement.py`), so at most one is in place at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    defect: str
    """What is wrong, in a sentence."""
    breaks: str
    """The id of the invariant that must catch it."""
    where: str
    """module:attribute that is replaced."""
    wrong: Callable[..., Any]
