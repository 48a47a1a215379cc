"""Reports the calls of a consumer's listener: one record before and one after, for each message."""

from collections.abc import Sequence

from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import CallBegan, CallEnded, Context
from mqproof.impl.remoting.message import KEYS, UniqueKeys
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.runtime import Runtime


class TracedCalls:
    """The calls of one consumer. A message whose broker has tracing off is left out."""

    def __init__(self, dispatcher: TraceDispatcher, group: str, runtime: Runtime) -> None:
        self._dispatcher = dispatcher
        self._group = group
        self._clock = runtime.clock
        self._ids = UniqueKeys(runtime.random, runtime.clock)

    def began(self, messages: Sequence[ReceivedMessage]) -> str:
        """Report that the listener is called; return the id of the call, for `ended`."""
        request_id, time_ms = self._ids.take(), now_ms(self._clock)
        self._dispatcher.add(
            CallBegan(
                time_ms=time_ms,
                region=message.properties.get("MSG_REGION"),
                group=self._group,
                request_id=request_id,
                message_id=message.message_id,
                redeliveries=message.reconsume_times,
                keys=message.properties.get(KEYS),
            )
            for message in self._traced(messages)
        )
        return request_id

    def ended(
        self, request_id: str, messages: Sequence[ReceivedMessage], took_s: float, done: int, *, raised: bool
    ) -> None:
        """Report that the call has ended: the first `done` messages are consumed."""
        failed = Context.EXCEPTION if raised else Context.FAILED
        good = {message.message_id for message in messages[:done]}
        time_ms, took_ms = now_ms(self._clock), round(took_s * 1000 / max(1, len(messages)))
        self._dispatcher.add(
            CallEnded(
                request_id=request_id,
                message_id=message.message_id,
                took_ms=took_ms,
                ok=message.message_id in good,
                keys=message.properties.get(KEYS),
                context=Context.SUCCESS if message.message_id in good else failed,
                time_ms=time_ms,
                group=self._group,
            )
            for message in self._traced(messages)
        )

    def _traced(self, messages: Sequence[ReceivedMessage]) -> list[ReceivedMessage]:
        return [
            message
            for message in messages
            if message.properties.get("TRACE_ON") != "false" and self._dispatcher.traces(message.topic)
        ]
