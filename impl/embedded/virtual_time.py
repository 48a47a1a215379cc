"""The time of an event loop, which a test can advance without waiting.

Timers run at the time of their loop. `advance` adds to that time, so that every timer of the loop runs
earlier: those of the brokers and clients, and those of the test itself.
"""

import asyncio
import time
from collections import deque
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

_STEP_S: Final = 20.0
"""The largest jump. Periodic work, such as a heartbeat, keeps its order with the time-outs of others."""

_TURNS_MAX: Final = 10_000
"""How many turns of the loop one jump may cause. More are taken for callbacks that cause each other."""


class TimeError(RuntimeError):
    """The time of this event loop cannot be advanced. The message says why."""


class VirtualTime:
    """The clock of one event loop: the machine's time plus everything by which it was advanced."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # the table of all times must not keep a loop alive
        self._ahead_us = 0
        self._step_limits: list[float] = []

    def limit_step(self, step_s: float) -> None:
        """Let time pass in steps of at most this many seconds until `release_step`.

        Servers that watch each other need steps that are shorter than their time-outs.
        """
        self._step_limits.append(step_s)

    def release_step(self, step_s: float) -> None:
        """End one `limit_step` with this value."""
        self._step_limits.remove(step_s)

    def now_us(self) -> int:
        """Return the microseconds since the epoch."""
        return time.time_ns() // 1000 + self._ahead_us

    async def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let this much time pass at once. What becomes due runs before this returns.

        The time passes in steps of 20 seconds, or of one second while a cluster runs in this loop. After
        each step, the loop runs until no callback is ready, so that a chain of timers, such as the attempts
        of a retry, is complete at the end.

        Raises:
            ValueError: the duration is negative or not finite.
            TimeError: the event loop is not asyncio's own, or callbacks cause each other without end.
        """
        left_s = hours * 3600 + minutes * 60 + seconds
        if not 0 <= left_s < float("inf"):
            raise ValueError(f"advance by {left_s} s: expected a duration of 0 or more")
        ready = self._take_over()
        await _settle(ready)
        while left_s > 0:
            step_s = min(left_s, _STEP_S, *self._step_limits)
            left_s -= step_s
            self._ahead_us += round(step_s * 1e6)
            await _settle(ready)

    def _take_over(self) -> deque[asyncio.Handle]:
        """Let the loop use this time. Returns its queue of ready callbacks."""
        loop: Any = asyncio.get_running_loop()
        if loop is not self._loop():
            raise TimeError("advance was called on another event loop than that of the broker")
        ready = getattr(loop, "_ready", None)
        if not (isinstance(loop, asyncio.BaseEventLoop) and isinstance(ready, deque)):
            raise TimeError(f"{type(loop).__module__} has no time that can be advanced: use asyncio's loop")
        # asyncio's loops ask themselves for the time.
        loop.time = self._time  # type: ignore[method-assign]
        return ready

    def _time(self) -> float:
        return time.monotonic() + self._ahead_us / 1e6


_TIMES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, VirtualTime]] = WeakKeyDictionary()


def of_loop(loop: asyncio.AbstractEventLoop) -> VirtualTime:
    """Return the time of the loop. All brokers of a loop share it."""
    if loop not in _TIMES:
        _TIMES[loop] = VirtualTime(loop)
    return _TIMES[loop]


async def _settle(ready: deque[asyncio.Handle]) -> None:
    """Run the loop until no callback is ready in two turns: one of them moves due timers to the others."""
    quiet = 0
    for _ in range(_TURNS_MAX):
        await asyncio.sleep(0)
        quiet = 0 if ready else quiet + 1
        if quiet == 2:
            return
    raise TimeError(f"after {_TURNS_MAX} turns of the loop, callbacks are still ready at the same time")
