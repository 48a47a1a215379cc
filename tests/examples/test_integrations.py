"""The examples for other libraries run with a broker inside the test."""

import asyncio
import importlib

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from taskiq.receiver import Receiver

from mqproof.testing import ThreadedBroker
from tests.examples.programs import EXAMPLES

SECONDS_MAX = 60


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests import the examples."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def test_tasks_run_in_a_worker_also_after_a_delay() -> None:
    example = importlib.import_module("taskiq_broker")

    async def run(name_server: str) -> None:
        broker = example.broker
        broker._name_servers = name_server
        finish = asyncio.Event()
        await broker.startup()
        await example.serve.kiq("coffee")
        await example.serve.kicker().with_labels(delay_s=3600).kiq("tea")
        working = asyncio.create_task(Receiver(broker, max_async_tasks=2, run_startup=False).listen(finish))
        async with asyncio.timeout(SECONDS_MAX):
            while example.served != ["coffee"]:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(rocketmq.advance, hours=2)
            while example.served != ["coffee", "tea"]:
                await asyncio.sleep(0.01)
            finish.set()
            await working
        await broker.shutdown()

    with ThreadedBroker() as rocketmq:
        asyncio.run(run(rocketmq.name_server))


def test_a_send_and_its_processing_are_spans_of_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    example = importlib.import_module("opentelemetry_tracing")
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(example, "TRACER", provider.get_tracer("test"))
    with ThreadedBroker() as rocketmq:
        asyncio.run(example.run(rocketmq.name_server))
        (message,) = rocketmq.messages(example.TOPIC)
    sent, processed = exporter.get_finished_spans()
    assert (sent.name, processed.name) == ("send example_traced", "process example_traced")
    assert sent.context is not None
    assert processed.context is not None
    assert processed.parent is not None
    assert processed.context.trace_id == sent.context.trace_id
    assert processed.parent.span_id == sent.context.span_id == processed.links[0].context.span_id
    for span in (sent, processed):
        assert span.attributes is not None
        assert span.attributes["messaging.system"] == "rocketmq"
        assert span.attributes["messaging.destination.name"] == "example_traced"
        assert span.attributes["messaging.message.id"] == message.message_id
