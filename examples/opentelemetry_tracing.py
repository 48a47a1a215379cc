"""OpenTelemetry: a span for each send and for each call of a listener, in one trace, and metrics of both.

The context of the sender travels in a property of the message. Names and attributes follow the semantic
conventions for messaging. All is printed here; an exporter of the SDK sends it elsewhere.

    pip install 'mqproof[opentelemetry]' opentelemetry-sdk
    mqproof serve --store /tmp/example-store &
    python examples/opentelemetry_tracing.py
"""

import asyncio
import os
from collections.abc import Sequence

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from mqproof import Producer, PushConsumer, ReceivedMessage, RetryLater, connect, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig
from mqproof.integrations import Telemetry

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
TOPIC, GROUP = "example_traced", "example_traced_group"


async def run(name_servers: str, telemetry: Telemetry) -> None:
    """Send a message and consume it."""
    consumed = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        print(messages[0].body, flush=True)
        consumed.set()
        return None

    async with connect(name_servers) as session:
        await telemetry.send(Producer(session), new_message(TOPIC, b"coffee", keys="order-7"))
        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        measured = telemetry.listener(listener, GROUP)
        async with PushConsumer(session, GROUP, measured, config) as consumer:
            await consumer.subscribe(TOPIC)
            await consumed.wait()


def main() -> None:
    spans = TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    metrics = MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())])
    asyncio.run(run(NAMESRV, Telemetry(spans, metrics)))
    metrics.shutdown()  # prints the metrics


if __name__ == "__main__":
    main()
