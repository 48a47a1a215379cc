"""Runs coroutines that never suspend, without an event loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends. Suspending is a defect: AssertionError."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("the coroutine waits for the event loop")
