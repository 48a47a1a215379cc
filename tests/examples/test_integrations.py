"""The examples for other libraries run with a broker inside the test."""

import asyncio
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from celery.contrib.testing.worker import start_worker
from faststream import TestApp
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from taskiq.receiver import Receiver

from mqproof.impl.integrations.cluster_site import ClusterSite
from mqproof.integrations import Telemetry
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
        broker._site = ClusterSite(name_server)
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


def test_a_send_and_its_processing_are_spans_of_one_trace() -> None:
    example = importlib.import_module("opentelemetry_tracing")
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with ThreadedBroker() as rocketmq:
        telemetry = Telemetry(provider, MeterProvider([reader]))
        asyncio.run(example.run(rocketmq.name_server, telemetry))
        (message,) = rocketmq.messages(example.TOPIC)
    sent, processed = exporter.get_finished_spans()
    assert (sent.name, processed.name) == ("send example_traced", "process example_traced")
    assert processed.attributes is not None
    assert processed.attributes["messaging.message.id"] == message.message_id


def test_the_application_of_faststream_bills_an_order_and_answers_a_request() -> None:
    example = importlib.import_module("faststream_app")

    async def run(name_server: str) -> None:
        example.broker.config.broker_config.site = ClusterSite(name_server)
        async with TestApp(example.app):
            await example.broker.publish(example.Order(number="7", item="tea"), "example_orders")
            await example.broker.publish(example.Order(number="8", item="soup"), "example_orders")
            (bill,) = await asyncio.to_thread(rocketmq.expect, "example_bills", within_s=SECONDS_MAX)
            assert (bill.body, bill.keys) == (b'{"number":"7","amount":2}', ["7"])
            (dead,) = await asyncio.to_thread(rocketmq.expect, "%DLQ%example_billing", within_s=SECONDS_MAX)
            assert b"soup" in dead.body
            reply = await example.broker.request("coffee", "example_prices", timeout=SECONDS_MAX)
            assert await reply.decode() == 3

    with ThreadedBroker() as rocketmq:
        asyncio.run(run(rocketmq.name_server))


@pytest.mark.deep("Celery starts three processes, and the pause between its looks at them is long")
def test_a_celery_worker_ends_when_its_whole_group_is_asked_to(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "celery_tasks",
        "worker",
        "--concurrency",
        "2",
        "-l",
        "INFO",
    ]
    with ThreadedBroker() as rocketmq, log.open("w") as output:
        environment = os.environ | {"NAMESRV_ADDR": rocketmq.name_server}
        worker = subprocess.Popen(
            command, cwd=EXAMPLES, env=environment, stderr=output, stdout=output, start_new_session=True
        )
        try:
            until = time.monotonic() + SECONDS_MAX
            while "ready." not in log.read_text() and time.monotonic() < until:
                time.sleep(0.1)
            os.killpg(worker.pid, signal.SIGTERM)
            assert worker.wait(SECONDS_MAX) == 0, log.read_text()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def test_the_task_of_celery_returns_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadedBroker() as rocketmq:
        monkeypatch.setenv("NAMESRV_ADDR", rocketmq.name_server)
        example = importlib.import_module("celery_tasks")
        with start_worker(example.app, perform_ping_check=False, shutdown_timeout=SECONDS_MAX):
            result = example.total.delay([3, 4])
            assert result.get(timeout=SECONDS_MAX) == 7
        example.app.pool.force_close_all()  # otherwise its client looks for the broker after the test
        (message,) = rocketmq.messages("kombu_example_celery")
        assert message.keys == [result.id]
