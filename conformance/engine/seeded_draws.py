"""Makes Hypothesis draw from the seed alone, independently for each example."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.internal.constants_ast import Constants


@contextmanager
def repeatable() -> Iterator[None]:
    """Make Hypothesis use no constants from our source and no variants of earlier draws within the block.

    Hypothesis draws some of the literals in the source of all loaded modules. A seed would then stand for
    different runs after an edit, or when another suite is loaded. Hypothesis also adds up to five examples to
    each example, in which a few draws are copied from elsewhere. With runs as long as ours, these would be
    nearly the same run again.
    """
    with (
        patch.object(providers, "_get_local_constants", Constants),
        patch.object(ConjectureRunner, "generate_mutations_from", lambda *_: None),
    ):
        # Earlier draws leave constants in this cache. It is cleared before and after the block.
        providers.CONSTANTS_CACHE.cache.clear()
        try:
            yield
        finally:
            providers.CONSTANTS_CACHE.cache.clear()
