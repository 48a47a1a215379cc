"""Work that is repeated periodically."""

import logging
from collections.abc import Awaitable, Callable

from mqproof.impl.runtime import upkeep

_log = logging.getLogger(__name__)


async def repeat(work: Callable[[], Awaitable[None]], seconds: float, first_s: float | None = None) -> None:
    """Do the work every `seconds`, for the first time after `first_s`, until cancelled.

    Exceptions are logged and do not end the repetition.
    """
    await upkeep.sleep(seconds if first_s is None else first_s)
    while True:
        try:
            await work()
        except Exception as error:  # the next attempt may succeed
            _log.error("a task that runs every %g s failed", seconds, exc_info=error)
        await upkeep.sleep(seconds)
