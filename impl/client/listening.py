"""Calls the application's listener: in the event loop if it is a coroutine function, else in a thread."""

import inspect
import logging
from collections.abc import Sequence
from typing import cast

from impl.client.model import Listener, ReceivedMessage, RetryLater
from impl.runtime.runtime import Offload

_log = logging.getLogger(__name__)


class Listening:
    """A listener that always answers. Its mistakes are its own, and make the messages come again."""

    def __init__(self, listener: Listener, offload: Offload) -> None:
        self._listener = listener
        self._offload = offload
        is_async = inspect.iscoroutinefunction
        self._in_loop = is_async(listener) or is_async(getattr(listener, "__call__", None))  # noqa: B004  # asks for its kind

    async def consume(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        """What the listener says of the messages."""
        try:
            if self._in_loop:
                answer = self._listener(messages)
                assert inspect.isawaitable(answer)
                return _checked(await answer)
            in_thread = await self._offload(lambda: self._listener(messages))
            return _checked(cast(RetryLater | None, in_thread))
        except Exception as error:  # whatever the application does, its consumer lives on
            ids = ", ".join(message.message_id for message in messages)
            _log.error("the listener failed on %s", ids, exc_info=error)
            return RetryLater()


def _checked(answer: RetryLater | None) -> RetryLater | None:
    if answer is not None and not isinstance(answer, RetryLater):
        raise TypeError(f"a listener returned {answer!r}, None or RetryLater expected")
    return answer
