"""Limits how many tasks do something at once. The limit can change while they do it."""

import asyncio
from types import TracebackType


class Slots:
    """`async with` waits for a free slot. A lower limit takes effect as tasks leave."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._changed = asyncio.Condition()

    async def resize(self, limit: int) -> None:
        """Allow this many tasks from now on."""
        async with self._changed:
            self._limit = limit
            self._changed.notify_all()

    async def __aenter__(self) -> None:
        async with self._changed:
            try:
                await self._changed.wait_for(lambda: self._taken < self._limit)
            except asyncio.CancelledError:
                # The free slot may have been reported to this task only: another one takes it.
                self._changed.notify()
                raise
            self._taken += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._changed:
            self._taken -= 1
            self._changed.notify()
