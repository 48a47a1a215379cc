"""Calls the application's listener: a coroutine function in the event loop, another function in a thread."""

import asyncio
import inspect
import logging
from collections.abc import Sequence
from typing import cast

from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.model import Listener, ReceivedMessage, RetryLater
from mqproof.impl.client.tracing.traced_calls import TracedCalls
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.runtime import Offload

_log = logging.getLogger(__name__)


class SafeListener:
    """Calls the listener and always returns an answer.

    If the listener raises, the messages are delivered again.
    """

    def __init__(
        self, listener: Listener, offload: Offload, rates: ConsumeRates, traced: TracedCalls | None = None
    ) -> None:
        self._listener = listener
        self._offload = offload
        self._rates = rates
        self._traced = traced
        is_async = inspect.iscoroutinefunction
        self._in_loop = is_async(listener) or is_async(getattr(listener, "__call__", None))  # noqa: B004  # inspected, not called

    async def consume(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        """Call the listener and return its answer; an exception is logged and counts as RetryLater."""
        begun_s, raised = _now_s(), False
        call = self._traced.began(messages) if self._traced is not None else ""
        try:
            answer = await self.attempt(messages)
        except Exception as error:  # an error of the application must not end its consumer
            ids = ", ".join(message.message_id for message in messages)
            _log.error("the listener failed on %s", ids, exc_info=error)
            answer, raised = RetryLater(), True
        ended_s = _now_s()
        ok = len(messages) if answer is None else min(answer.done, len(messages))
        if self._traced is not None:
            self._traced.ended(call, messages, ended_s - begun_s, ok, raised=raised)
        self._rates.consumed(messages[0].topic, ok, len(messages) - ok, ended_s - begun_s, upkeep.now_s())
        return answer

    async def attempt(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        """Call the listener and return its answer; its exceptions propagate."""
        if self._in_loop:
            answer = self._listener(messages)
            assert inspect.isawaitable(answer)
            return _checked(await answer)
        in_thread = await self._offload(lambda: self._listener(messages))
        return _checked(cast(RetryLater | None, in_thread))


def _checked(answer: RetryLater | None) -> RetryLater | None:
    if answer is not None and not isinstance(answer, RetryLater):
        raise TypeError(f"a listener returned {answer!r}, None or RetryLater expected")
    return answer


def _now_s() -> float:
    return asyncio.get_running_loop().time()
