"""Sends and listeners are measured by spans and metrics with the names of the conventions."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from mqproof import Producer, ReceivedMessage, Refused, RetryLater, Sent, connect, new_message
from mqproof.integrations import Telemetry
from mqproof.testing import ThreadedBroker

TOPIC = "Orders"


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as broker:
        yield broker


class Measured:
    """A telemetry whose spans and metrics stay in memory."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        spans = TracerProvider()
        spans.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.telemetry = Telemetry(spans, MeterProvider([self._reader]))

    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def metrics(self) -> dict[str, Any]:
        """Return the one data point of each metric."""
        data = self._reader.get_metrics_data()
        assert isinstance(data, MetricsData)
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: next(iter(metric.data.data_points)) for metric in scope.metrics}

    def send(self, name_server: str, topic: str = TOPIC) -> Any:
        async def run() -> Any:
            async with connect(name_server) as session:
                message = new_message(topic, b"tea", keys=["7"], tag="new")
                return await self.telemetry.send(Producer(session), message)

        return asyncio.run(run())


def test_a_send_and_its_processing_are_one_trace_with_metrics(rocketmq: ThreadedBroker) -> None:
    measured = Measured()
    assert isinstance(measured.send(rocketmq.name_server), Sent)
    received = rocketmq.messages(TOPIC)

    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        assert [*messages] == received
        return None

    work: Any = measured.telemetry.listener(listener, "kitchen")
    assert asyncio.run(work(received)) is None
    sent, processed = measured.spans()
    assert sent.context is not None
    assert processed.context is not None
    assert processed.parent is not None
    assert processed.context.trace_id == sent.context.trace_id
    assert processed.parent.span_id == sent.context.span_id == processed.links[0].context.span_id
    for span in (sent, processed):
        assert span.attributes is not None
        assert span.attributes["messaging.system"] == "rocketmq"
        assert span.attributes["messaging.destination.name"] == TOPIC
        assert span.attributes["messaging.message.id"] == received[0].message_id
    assert sent.attributes is not None
    assert sent.attributes["messaging.rocketmq.message.keys"] == ("7",)
    assert sent.attributes["messaging.rocketmq.message.tag"] == "new"
    found = measured.metrics()
    assert found["messaging.client.sent.messages"].value == 1
    assert found["messaging.client.consumed.messages"].value == 1
    assert found["messaging.client.operation.duration"].count == 1
    assert found["messaging.process.duration"].attributes["messaging.consumer.group.name"] == "kitchen"
    assert all("error.type" not in point.attributes for point in found.values())


@pytest.mark.parametrize("is_async", [True, False])
def test_a_listener_that_fails_is_an_error_of_its_span(rocketmq: ThreadedBroker, is_async: bool) -> None:
    measured = Measured()
    measured.send(rocketmq.name_server, "Failing")
    received = rocketmq.messages("Failing")

    async def raises(messages: Sequence[ReceivedMessage]) -> None:
        raise LookupError("no cup")

    def later(messages: Sequence[ReceivedMessage]) -> RetryLater:
        return RetryLater(3)

    work: Any = measured.telemetry.listener(raises if is_async else later, "kitchen")
    if is_async:
        with pytest.raises(LookupError):
            asyncio.run(work(received))
    else:
        assert work(received) == RetryLater(3)
    assert measured.spans()[-1].status.status_code is StatusCode.ERROR
    problem = measured.metrics()["messaging.process.duration"].attributes["error.type"]
    assert problem == ("LookupError" if is_async else "RetryLater")


def test_a_send_that_is_not_confirmed_is_an_error_of_its_span(rocketmq: ThreadedBroker) -> None:
    measured = Measured()
    rocketmq.fail_next("send", 3, code="NO_PERMISSION")
    assert isinstance(measured.send(rocketmq.name_server, "Refused"), Refused)
    (span,) = measured.spans()
    assert span.status.status_code is StatusCode.ERROR
    assert measured.metrics()["messaging.client.sent.messages"].attributes["error.type"] == "NO_PERMISSION"
