"""Compares the names, types and labels of our metrics with those that a released broker serves.

`python -m tests.interop.test_metrics` prints what `golden/5.5.0/metrics.txt` contains.
"""

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqproof.client import (
    ConsumeFrom,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
    RetryLater,
    TransactionProducer,
    TransactionState,
    connect,
    new_message,
)
from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.hosts.processes import free_port

pytestmark = pytest.mark.apache

RELEASE: Final = "5.5.0"
GOLDEN: Final = Path(__file__).parent / "golden" / RELEASE / "metrics.txt"
NOT_ALWAYS: Final = ("rocketmq_pop_", "rocketmq_timer_")
"""Metrics of features that our broker does not have. A released broker shows them once they are used."""


def page(folder: Path) -> str:
    """Return a scrape after messages, transactions and dead letters."""
    port = free_port()
    properties = {
        "metricsExporterType": "PROM",
        "metricsPromExporterHost": "127.0.0.1",
        "metricsPromExporterPort": str(port),
    }
    names = servers.name_server(RELEASE, folder)
    broker = servers.broker(RELEASE, folder, names.address, properties=properties)
    with servers.running(names, broker):
        return asyncio.run(_work(str(names.address), port))


async def _work(namesrv: str, port: int) -> str:
    async def fail(_: object) -> RetryLater:
        return RetryLater(delay_level=1)

    def scrape() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    async with connect(namesrv) as session:
        producer = TransactionProducer(session, lambda *_: TransactionState.UNKNOWN, ProducerConfig("p"))
        for state in TransactionState:
            await producer.send(new_message("T", b"x"), lambda *_, state=state: state)
        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET, reconsume_max=0)
        async with PushConsumer(session, "g", fail, config) as consumer:
            await consumer.subscribe("T")
            async with asyncio.timeout(120):
                while "rocketmq_send_to_dlq_messages_total" not in (text := await asyncio.to_thread(scrape)):
                    await asyncio.sleep(1)
        await producer.stop()
    return text


def lines(text: str) -> Iterator[str]:
    """Yield `name type labels` for each metric of a scrape."""
    for metric in text_string_to_metric_families(text):
        labels = {label for sample in metric.samples for label in sample.labels} - {"otel_scope_name", "le"}
        name = metric.name + ("_total" if metric.type == "counter" else "")
        if labels:
            yield f"{name} {metric.type} {','.join(sorted(labels))}"


def test_a_released_broker_has_the_metrics_that_ours_are_compared_with(tmp_path: Path) -> None:
    def kept(each: str) -> bool:
        return not each.startswith((*NOT_ALWAYS, "#"))

    golden = {line for line in GOLDEN.read_text(encoding="utf-8").splitlines() if kept(line)}
    assert golden - set(lines(page(tmp_path))) == set()


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        print(*sorted(lines(page(Path(place)))), sep="\n")
