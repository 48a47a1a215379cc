"""The time of upkeep: heartbeats, scans, leases, polls, and the time-outs of requests.

It is the event loop's time, except in a test that advances time. While nothing happens, upkeep changes
nothing, so such a test may skip most of it. Skipped time does not count here: a lease, a held pull or a
client is as old after it as before, and the next heartbeat is as far away.

What is due at a moment, such as a delayed message, uses the event loop itself, and is never skipped.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
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
    context = copy_context()
    context.run(_KIND.set, _UPKEEP)
    return loop.call_at(when_s + skipped_s, callback, *args, context=context)


async def sleep(seconds: float) -> None:
    """Sleep until this much time of upkeep has passed."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    timer = call_at(now_s(loop) + seconds, _set, done)
    try:
        await done
    finally:
        timer.cancel()


def end_after(limit: asyncio.Timeout, seconds: float) -> None:
    """Let the limit end when this much time of upkeep has passed."""
    with _marked(_UPKEEP):  # `reschedule` has no parameter for the context of its timer
        limit.reschedule(asyncio.get_running_loop().time() + seconds)


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
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    timer = call_at(now_s(loop) + seconds, _set, done)
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


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
