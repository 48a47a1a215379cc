"""The time of an event loop, which a test can advance without waiting.

Timers run at the time of their loop. `advance` adds to that time, so that every timer of the loop runs
earlier: those of the brokers and clients, and those of the test itself.

Most timers belong to upkeep, such as heartbeats and scans (`mqproof.impl.runtime.upkeep`). After something
has changed, upkeep runs for a while, until it has nothing more to notice. Then the time passes at once, to
the moment at which something is due. Upkeep that stores progress, such as the commit of offsets, runs before
the next moment at which the test itself could look at it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary, ref

from mqproof.impl.runtime import upkeep

_STEP_S: Final = 9.0
"""The longest step in which upkeep runs: the end of a held pull, and its time-out 10 s later, are in two."""
_STEP_MIN_S: Final = 1.0
"""The shortest such step, although something may be due earlier: a test may poll very often."""
_SETTLED_S: Final = 80.0
"""How long upkeep runs after a change of topics or groups. It may take two of its periods to notice that."""
_STORED_S: Final = 6.0
"""How long it runs before a timer of the test, so that offsets are committed and progress is stored."""
_SKIP_MAX_S: Final = 3600.0
"""The longest time without upkeep. Some of it depends on the hour of the day."""
_LAST_S: Final = 30.0
"""How long upkeep runs at the end of an advance, so that clients have refreshed all they know."""

_TURNS_MAX: Final = 10_000
"""How many turns of the loop one step may cause. More are taken for callbacks that cause each other."""


class TimeError(RuntimeError):
    """The time of this event loop cannot be advanced. The message says why."""


class Server(Protocol):
    """A server whose clients and own work depend on upkeep."""

    def awaits_upkeep(self) -> bool:
        """Return whether upkeep must not be skipped now."""
        ...

    def noticeable(self) -> object:
        """Return what upkeep acts on when it changes."""
        ...


AfterStep = Callable[[bool], Awaitable[None]]
"""Called after a step. The argument says whether something was due in it."""


class VirtualTime:
    """The clock of one event loop: the machine's time plus everything by which it was advanced."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # the table of all times must not keep a loop alive
        self._ahead_us = 0
        self._step_limits: list[float] = []
        self._servers: list[Server] = []

    def limit_step(self, step_s: float) -> None:
        """Let time pass in steps of at most this many seconds until `release_step`.

        Servers that watch each other need steps that are shorter than their time-outs.
        """
        self._step_limits.append(step_s)

    def release_step(self, step_s: float) -> None:
        """End one `limit_step` with this value."""
        self._step_limits.remove(step_s)

    def add_server(self, server: Server) -> None:
        """Let upkeep run when this server needs it, until `remove_server`."""
        self._servers.append(server)

    def remove_server(self, server: Server) -> None:
        self._servers.remove(server)

    def now_us(self) -> int:
        """Return the microseconds since the epoch."""
        return time.time_ns() // 1000 + self._ahead_us

    async def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let this much time pass at once. What becomes due runs before this returns.

        The time passes to each moment at which something is due. While upkeep must run, it passes in steps
        of at most 9 seconds, or one second while a cluster runs in this loop. After each step, the loop
        runs until no callback is ready, so that a chain of timers, such as the attempts of a retry, is
        complete at the end.

        Raises:
            ValueError: the duration is negative or not finite.
            TimeError: the event loop is not asyncio's own, or callbacks cause each other without end.
        """
        await self.advance_by(hours * 3600 + minutes * 60 + seconds)

    async def advance_by(self, seconds: float, after_step: AfterStep | None = None) -> None:
        """Let this much time pass, as `advance`, and call `after_step` after each step."""
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"advance by {seconds} s: expected a duration of 0 or more")
        loop, ready = self._take_over()
        await _settle(ready)
        left_s, needed_s, unstored_s, noticeable = seconds, _SETTLED_S, 0.0, self._noticeable()
        while left_s > 0:
            due_s, watched_s = upkeep.next_due_s(loop)
            idle_s = min(due_s, watched_s - unstored_s)
            step_s = self._skippable_s(loop, idle_s, left_s) if needed_s <= 0 else 0.0
            if step_s > 0:
                upkeep.skip(loop, step_s)
                needed_s = _STORED_S if step_s == _SKIP_MAX_S else 0.0
            else:
                longest_s = min(_STEP_S, needed_s if needed_s > 0 else _STEP_S, *self._step_limits)
                step_s = min(left_s, longest_s, max(due_s, _STEP_MIN_S))
                needed_s -= step_s
                unstored_s -= step_s
            left_s -= step_s
            self._ahead_us += round(step_s * 1e6)
            await _settle(ready)
            if after_step is not None:
                await after_step(due_s <= step_s)
            before, noticeable = noticeable, self._noticeable()
            if noticeable != before:
                needed_s = _SETTLED_S
            if due_s <= step_s:
                unstored_s = _STORED_S

    def _skippable_s(self, loop: asyncio.AbstractEventLoop, idle_s: float, left_s: float) -> float:
        """Return for how long no upkeep is needed."""
        step_s = min(idle_s, left_s - _LAST_S, _SKIP_MAX_S)
        awaited = self._step_limits or upkeep.is_awaited(loop)
        if step_s <= _STEP_S or awaited or any(server.awaits_upkeep() for server in self._servers):
            return 0.0
        return step_s

    def _noticeable(self) -> list[object]:
        return [server.noticeable() for server in self._servers]

    def _take_over(self) -> tuple[asyncio.BaseEventLoop, deque[asyncio.Handle]]:
        """Let the loop use this time. Returns it and its queue of ready callbacks."""
        loop: Any = asyncio.get_running_loop()
        if loop is not self._loop():
            raise TimeError("advance was called on another event loop than that of the broker")
        ready = getattr(loop, "_ready", None)
        if not (isinstance(loop, asyncio.BaseEventLoop) and isinstance(ready, deque)):
            raise TimeError(f"{type(loop).__module__} has no time that can be advanced: use asyncio's loop")
        # asyncio's loops ask themselves for the time.
        loop.time = self._time  # type: ignore[method-assign]
        return loop, ready

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
