"""Traces with OpenTelemetry: a span for each send and for each call of a listener, in one trace.

The context of the sender travels in a property of the message. Span names and attributes follow the semantic
conventions for messaging. The spans are printed here; an exporter of the SDK sends them elsewhere.

    pip install opentelemetry-sdk
    mqproof serve --store /tmp/example-store &
    python examples/opentelemetry_tracing.py
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind

from mqproof import (
    Producer,
    PushConsumer,
    ReceivedMessage,
    RetryLater,
    Sent,
    connect,
    new_message,
)
from mqproof.client import ConsumeFrom, Outcome, PushConsumerConfig

Listener = Callable[[Sequence[ReceivedMessage]], Awaitable[RetryLater | None]]

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
TOPIC, GROUP = "example_traced", "example_traced_group"
TRACER = trace.get_tracer("mqproof.example")


async def send_traced(producer: Producer, topic: str, body: bytes, keys: Sequence[str] = ()) -> Outcome:
    """Send a message in a span, whose context the message carries."""
    attributes = {**_attributes(topic, "send", "send"), "messaging.rocketmq.message.keys": tuple(keys)}
    with TRACER.start_as_current_span(f"send {topic}", None, SpanKind.PRODUCER, attributes) as span:
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        outcome = await producer.send(new_message(topic, body, keys=keys, properties=carrier))
        span.set_attribute("messaging.message.id", outcome.message_id)
        if not isinstance(outcome, Sent):
            span.set_attribute("error.type", outcome.status)
            span.set_status(trace.StatusCode.ERROR, outcome.status)
        return outcome


def traced(listener: Listener, group: str) -> Listener:
    """Return a listener that runs in a span, which continues the trace of the first message's sender."""

    async def in_span(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        contexts = [propagate.extract(dict(each.stored.message.properties)) for each in messages]
        spans = [trace.get_current_span(context).get_span_context() for context in contexts]
        topic = messages[0].queue.topic
        attributes = {
            **_attributes(topic, "process", "process"),
            "messaging.consumer.group.name": group,
            "messaging.batch.message_count": len(messages),
            "messaging.message.id": messages[0].message_id,
        }
        with TRACER.start_as_current_span(
            f"process {topic}",
            contexts[0],
            SpanKind.CONSUMER,
            attributes,
            [Link(each) for each in spans if each.is_valid],
        ) as span:
            answer = await listener(messages)  # an exception is recorded in the span
            if answer is not None:
                span.set_status(trace.StatusCode.ERROR, "delivered again later")
            return answer

    return in_span


def _attributes(topic: str, name: str, kind: str) -> dict[str, str]:
    return {
        "messaging.system": "rocketmq",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": topic,
    }


async def run(name_servers: str) -> None:
    """Send a message and consume it."""
    consumed = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        print(messages[0].body, flush=True)
        consumed.set()
        return None

    async with connect(name_servers) as session:
        await send_traced(Producer(session), TOPIC, b"coffee", ["order-7"])
        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        async with PushConsumer(session, GROUP, traced(listener, GROUP), config) as consumer:
            await consumer.subscribe(TOPIC)
            await consumed.wait()


if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    trace.set_tracer_provider(provider)
    asyncio.run(run(NAMESRV))
