"""Draws that follow from the seed, and from nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


@contextmanager
def repeatable() -> Iterator[None]:
    """Within the block Hypothesis knows no constants of ours.

    It draws some of the literals in the source of whatever modules are loaded. A seed would then mean one run
    after an edit, or with another suite beside it, and another run without.
    """
    with patch.object(providers, "_get_local_constants", Constants):
        # What was drawn before has left its constants there, and nobody is to find that there are none.
        providers.CONSTANTS_CACHE.cache.clear()
        try:
            yield
        finally:
            providers.CONSTANTS_CACHE.cache.clear()
