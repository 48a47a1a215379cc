"""Spans and metrics of OpenTelemetry for sends and listeners, by the semantic conventions for messaging.

    telemetry = Telemetry()
    outcome = await telemetry.send(producer, new_message("Orders", b"..."))
    consumer = PushConsumer(session, "kitchen", telemetry.listener(cook, "kitchen"))

The context of the sender travels in properties of the message, so the spans of both sides are one trace.

| metric | kind | |
|---|---|---|
| messaging.client.sent.messages | counter | messages that a send tried |
| messaging.client.operation.duration | histogram, s | the time of a send |
| messaging.client.consumed.messages | counter | messages passed to a listener |
| messaging.process.duration | histogram, s | the time of a call of a listener |
"""

import inspect
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final, cast

from msgspec.structs import replace
from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import Link, SpanKind, StatusCode

from mqproof.impl.client.model import Listener, Outcome, ReceivedMessage, RetryLater, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.message import KEYS, TAGS, Message

_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""The bounds that the conventions recommend."""

_Attributes = dict[str, str | int | Sequence[str]]


class Telemetry:
    """The instruments of a process."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        """Create the instruments. The providers are by default the global ones."""
        self._tracer = trace.get_tracer("mqproof", version("mqproof"), tracer_provider)
        meter = metrics.get_meter("mqproof", version("mqproof"), meter_provider)
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}")
        self._send_s = meter.create_histogram(
            "messaging.client.operation.duration", "s", explicit_bucket_boundaries_advisory=_BUCKETS_S
        )
        self._process_s = meter.create_histogram(
            "messaging.process.duration", "s", explicit_bucket_boundaries_advisory=_BUCKETS_S
        )

    async def send(self, producer: Producer, message: Message) -> Outcome:
        """Send a message in a span, whose context the message carries."""
        measured = _operation(message.topic, "send", "send")
        attributes: _Attributes = {**measured}
        if keys := message.properties.get(KEYS, "").split():
            attributes["messaging.rocketmq.message.keys"] = keys
        if tag := message.properties.get(TAGS):
            attributes["messaging.rocketmq.message.tag"] = tag
        begun_s = time.perf_counter()
        name = f"send {message.topic}"
        with self._tracer.start_as_current_span(name, None, SpanKind.PRODUCER, attributes) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            try:
                outcome = await producer.send(replace(message, properties={**message.properties, **carrier}))
            except Exception as error:
                measured["error.type"] = type(error).__qualname__
                raise
            else:
                span.set_attribute("messaging.message.id", outcome.message_id)
                if not isinstance(outcome, Sent):
                    problem = getattr(outcome, "status", "UNKNOWN")
                    measured["error.type"] = problem
                    span.set_attribute("error.type", problem)
                    span.set_status(StatusCode.ERROR, outcome.remark)
                return outcome
            finally:
                self._sent.add(1, measured)
                self._send_s.record(time.perf_counter() - begun_s, measured)

    def listener(self, listener: Listener, group: str) -> Listener:
        """Return a listener that runs in a span, in the trace of the first message's sender.

        The result is a coroutine function if `listener` is one.
        """
        if inspect.iscoroutinefunction(listener):

            async def waits(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
                with self._processing(messages, group) as answers:
                    answers.append(await listener(messages))
                return answers[0]

            return waits

        def blocks(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            with self._processing(messages, group) as answers:
                answers.append(cast(RetryLater | None, listener(messages)))
            return answers[0]

        return blocks

    @contextmanager
    def _processing(
        self, messages: Sequence[ReceivedMessage], group: str
    ) -> Iterator[list[RetryLater | None]]:
        """Measure a call of a listener. The block appends its answer; an exception is recorded and raised."""
        topic, answers = messages[0].topic, list[RetryLater | None]()
        measured = _operation(topic, "process", "process") | {"messaging.consumer.group.name": group}
        contexts = [propagate.extract(dict(each.properties)) for each in messages]
        senders = [trace.get_current_span(context).get_span_context() for context in contexts]
        attributes: _Attributes = {
            **measured,
            "messaging.batch.message_count": len(messages),
            "messaging.message.id": messages[0].message_id,
        }
        links = [Link(each) for each in senders if each.is_valid]
        begun_s = time.perf_counter()
        try:
            with self._tracer.start_as_current_span(
                f"process {topic}", contexts[0], SpanKind.CONSUMER, attributes, links
            ) as span:
                yield answers
                if answers[0] is not None:
                    measured["error.type"] = "RetryLater"
                    span.set_status(StatusCode.ERROR, "delivered again later")
        except Exception as error:
            measured["error.type"] = type(error).__qualname__
            raise
        finally:
            self._consumed.add(len(messages), measured)
            self._process_s.record(time.perf_counter() - begun_s, measured)


def _operation(topic: str, name: str, kind: str) -> dict[str, str]:
    return {
        "messaging.system": "rocketmq",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": topic,
    }
