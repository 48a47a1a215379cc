"""The time of upkeep: heartbeats, scans, leases, polls, and the time-outs of requests.

It is the event loop's time, except in a test that advances time. While nothing happens, upkeep changes
nothing, so such a test may skip most of it. Skipped time does not count here: a lease, a held pull or a
client is as old after it as before, and the next heartbeat is as far away.

What is due at a moment, such as a delayed message, uses the event loop itself, and is never skipped.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVarTuple

_Ts = TypeVarTuple("_Ts")

_KIND: Final = ContextVar("timer_kind", default="")
"""Marks the timers of a kind: a timer has the context in which it was created."""
_UPKEEP: Final = "upkeep"
_DELIVERY: Final = "delivery"
"""What a server delivers at a moment. All other timers are unmarked, such as those of a test."""
_SKIPPED: Final = "upkeep_skipped_s"
"""The attribute of a loop with the seconds that were skipped. It is absent in most loops."""
_AWAITED: Final = "upkeep_awaited"
"""The attribute of a loop with the number of reasons to skip nothing."""


def now_s(loop: asyncio.AbstractEventLoop | None = None) -> float:
    """Return the time of upkeep in the loop, which is the running one by default."""
    loop = loop or asyncio.get_running_loop()
    skipped_s: float = getattr(loop, _SKIPPED, 0.0)
    return loop.time() - skipped_s


def call_at(when_s: float, callback: Callable[[*_Ts], object], *args: *_Ts) -> asyncio.TimerHandle:
    """Call the function when the time of upkeep is `when_s`."""
    loop = asyncio.get_running_loop()
    skipped_s: float = getattr(loop, _SKIPPED, 0.0)
    return loop.call_at(when_s + skipped_s, callback, *args, context=_context())


def sleep(seconds: float) -> Coroutine[Any, Any, None]:
    """Sleep until this much time of upkeep has passed."""
    return until(asyncio.get_running_loop().create_future(), seconds)


async def until(woken: asyncio.Future[None], seconds: float) -> None:
    """Wait for the future, which is done when this much time of upkeep has passed, or earlier."""
    timer = _set_after(seconds, woken)
    try:
        await woken
    finally:
        timer.cancel()


class Wakeup:
    """An event that one sleeping task waits for; an asyncio.Event with a time limit takes much longer."""

    def __init__(self) -> None:
        self._is_set = False
        self._woken: asyncio.Future[None] | None = None

    def set(self) -> None:
        self._is_set = True
        if self._woken is not None:
            _set(self._woken)

    def clear(self) -> None:
        self._is_set = False

    async def within(self, seconds: float) -> bool:
        """Return whether it is set before this much time of upkeep has passed."""
        if not self._is_set:
            self._woken = asyncio.get_running_loop().create_future()
            try:
                await until(self._woken, seconds)
            finally:
                self._woken = None
        return self._is_set


async def until_due(woken: asyncio.Future[None], due_s: float) -> None:
    """Wait for the future, at most until something is due in `due_s` seconds, which are never skipped."""
    with _marked(_DELIVERY):
        timer = asyncio.get_running_loop().call_later(due_s, _set, woken)
    try:
        await woken
    finally:
        timer.cancel()


def after(seconds: float) -> asyncio.Future[None]:
    """Return a future that is done when this much time of upkeep has passed."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = _set_after(seconds, done)
    done.add_done_callback(lambda _: timer.cancel())
    return done


@contextmanager
def awaited() -> Iterator[None]:
    """Skip nothing meanwhile: upkeep limits how long this may last."""
    loop = asyncio.get_running_loop()
    setattr(loop, _AWAITED, getattr(loop, _AWAITED, 0) + 1)
    try:
        yield
    finally:
        setattr(loop, _AWAITED, getattr(loop, _AWAITED) - 1)


def is_awaited(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether upkeep limits something that goes on."""
    return bool(getattr(loop, _AWAITED, 0))


def next_due_s(loop: Any) -> tuple[float, float]:
    """Return the seconds until the first timer that is not of upkeep, and until the first unmarked one.

    Each is infinite if there is none.
    """
    due, unmarked = float("inf"), float("inf")
    for timer in loop._scheduled:
        kind = _kind(timer)
        if kind != _UPKEEP and not timer.cancelled():
            due = min(due, timer.when())
            unmarked = unmarked if kind else min(unmarked, timer.when())
    now = loop.time()
    return due - now, unmarked - now


def skip(loop: Any, seconds: float) -> None:
    """Let no upkeep happen in the next seconds, which the caller adds to the time of the loop."""
    setattr(loop, _SKIPPED, getattr(loop, _SKIPPED, 0.0) + seconds)
    for timer in loop._scheduled:
        if _kind(timer) == _UPKEEP:
            timer._when += seconds
    heapq.heapify(loop._scheduled)


def _kind(timer: asyncio.TimerHandle) -> str:
    context: Any = timer._context  # type: ignore[attr-defined]
    return str(context.get(_KIND, ""))


@contextmanager
def _marked(kind: str) -> Iterator[None]:
    token = _KIND.set(kind)
    try:
        yield
    finally:
        _KIND.reset(token)


def _context() -> Context:
    """Return the context of a timer of upkeep."""
    context = copy_context()
    context.run(_KIND.set, _UPKEEP)
    return context


def _set_after(seconds: float, future: asyncio.Future[None]) -> asyncio.TimerHandle:
    """Let the future be done when this much time of upkeep has passed. An idle server does little else."""
    loop = asyncio.get_running_loop()
    return loop.call_at(loop.time() + seconds, _set, future, context=_context())


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
