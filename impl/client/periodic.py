"""Work that is done again and again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)


async def repeat(work: Callable[[], Awaitable[None]], seconds: float, first_s: float | None = None) -> None:
    """Do the work every so many seconds, at first after `first_s`, until cancelled.

    What it raises is logged: one time that failed must not be the last.
    """
    await asyncio.sleep(seconds if first_s is None else first_s)
    while True:
        try:
            await work()
        except Exception as error:  # whatever it is, the next time may go well
            _log.error("work that is repeated every %g s failed", seconds, exc_info=error)
        await asyncio.sleep(seconds)
