"""A reply that its handler makes later. It takes a fraction of the time of a future with a callback."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from mqproof.impl.remoting.command import Command


class Later:
    """A reply that a handler returns at once and sets later. It can be awaited, as other replies can."""

    __slots__ = ("_on_end", "is_ended", "reply")

    def __init__(self) -> None:
        self.is_ended = False
        self.reply: Command | None = None
        self._on_end: Callable[[Later], None] = _nothing

    def set(self, reply: Command | None) -> None:
        """Answer with the reply, unless the answer is no longer awaited. It is sent within this call."""
        if not self.is_ended:
            self.is_ended = True
            self.reply = reply
            self._on_end(self)

    def cancel(self) -> None:
        """End without an answer, because it is no longer awaited."""
        self.set(None)

    def when_ended(self, call: "Callable[[Later], None]") -> None:
        """Call the function when the reply is set or cancelled, which must not have happened yet."""
        self._on_end = call

    def __await__(self) -> Generator[Any, None, Command | None]:
        if not self.is_ended:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_ended(lambda _: None if ended.done() else ended.set_result(None))
            yield from ended
        return self.reply


def _nothing(_later: Later) -> None:
    """What happens at the end of a reply that is not awaited yet."""
