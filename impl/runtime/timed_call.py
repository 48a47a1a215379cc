"""A function that is called once: with a result, or with another one when a time has passed."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TimedCall(Generic[T]):
    """A call that waits for its result. Only the first end counts; the function must not raise."""

    def __init__(self, call: Callable[[T], None], timeout_s: float, late: T) -> None:
        """`late` is the result when `timeout_s` has passed."""
        self._call: Callable[[T], None] | None = call
        self._deadline = asyncio.get_running_loop().call_later(timeout_s, self.end, late)

    def end(self, result: T) -> None:
        """Call the function with the result."""
        call = self._call
        self.cancel()
        if call is not None:
            call(result)

    def cancel(self) -> None:
        """Do not call the function any more."""
        self._call = None
        self._deadline.cancel()
