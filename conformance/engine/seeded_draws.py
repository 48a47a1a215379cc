"""Draws that follow from the seed, and from nothing else, each for itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.internal.constants_ast import Constants


@contextmanager
def repeatable() -> Iterator[None]:
    """Within the block Hypothesis knows no constants of ours, and tries no variants of what it has drawn.

    It draws some of the literals in the source of whatever modules are loaded. A seed would then mean one run
    after an edit, or with another suite beside it, and another run without. And to each example it adds five
    in which a few draws are copied from elsewhere: of runs as long as ours nearly the same run five times.
    """
    with (
        patch.object(providers, "_get_local_constants", Constants),
        patch.object(ConjectureRunner, "generate_mutations_from", lambda *_: None),
    ):
        # What was drawn before has left its constants there, and nobody is to find that there are none.
        providers.CONSTANTS_CACHE.cache.clear()
        try:
            yield
        finally:
            providers.CONSTANTS_CACHE.cache.clear()
