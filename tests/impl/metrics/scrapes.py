"""Scrapes of servers in simulated worlds: a broker, a name server, a pair, and a member of a group."""

import asyncio
from collections.abc import Iterable
from functools import cache

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from mqproof.conformance.subjects import pair
from mqproof.impl.broker.broker_metrics import BrokerMetrics
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.metrics.config import MetricsConfig
from mqproof.impl.metrics.families import Source
from mqproof.impl.metrics.metrics_server import MetricsServer
from mqproof.impl.metrics.process_metrics import ProcessMetrics
from mqproof.impl.namesrv.namesrv_metrics import NameServerMetrics
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.headers import SendBackRequest, UpdateOffsetRequest
from mqproof.impl.remoting.message import DELAY, Message
from mqproof.impl.runtime.runtime import Runtime
from tests.impl.broker import group
from tests.impl.world import World, play

LIVE = MetricsConfig(metrics_port=0)


async def page_of(runtime: Runtime, **sources: Source) -> str:
    """Return the page of metrics of these sources."""
    server = MetricsServer(LIVE, runtime, sources)
    server.sources |= sources
    return (await server.answer("/metrics"))[2].decode()


def parsed(page: str) -> dict[str, Metric]:
    """Return the metrics of a page by name, as Prometheus' own parser reads them."""
    return {metric.name: metric for metric in text_string_to_metric_families(page)}


def value(page: str, sample_name: str, **labels: str) -> float:
    """Return the only sample with these labels; it may have others."""
    (found,) = [
        sample.value
        for metric in parsed(page).values()
        for sample in metric.samples
        if sample.name == sample_name and labels.items() <= sample.labels.items()
    ]
    return found


async def broker_page(world: World) -> str:
    assert world.broker is not None
    return await page_of(
        world.runtime,
        broker=BrokerMetrics(world.broker),
        namesrv=NameServerMetrics(world.namesrv),
        process=ProcessMetrics(world.runtime.supervisor),
    )


async def do_everything(world: World) -> None:
    """Send messages of all types, consume, end transactions, and make a dead letter."""
    for properties in ({}, {"__SHARDINGKEY": "k"}, {DELAY: "1"}):
        await world.producer.send(Message("T", b"body", dict(properties)))
    transactions = TransactionProducer(world.session, lambda *_: TransactionState.UNKNOWN)
    for state in (TransactionState.COMMIT, TransactionState.ROLLBACK):
        await transactions.send(Message("T", b"in a transaction"), lambda *_, state=state: state)
    assert world.broker is not None
    queue = next(number for number in range(8) if world.broker.store.max_offset("T", number))
    first = world.broker.store.commit_offset_at("T", queue, 0)
    await world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, SendBackRequest(first or 0, "G", -1))
    await world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateOffsetRequest("G", "T", queue, 0))
    await world.consumer.pull(MessageQueue("T", BrokerConfig().name, queue), 0)
    await transactions.stop()


@cache
def all_pages() -> tuple[str, ...]:
    """Return scrapes that together have every metric."""

    async def alone(world: World) -> str:
        await do_everything(world)
        return await broker_page(world)

    async def replicated(two: pair.Pair) -> list[str]:
        await two.followed()
        runtimes = {node: two.machines[node].runtime() for node in two.brokers}
        return [
            await page_of(runtimes[node], broker=BrokerMetrics(broker))
            for node, broker in two.brokers.items()
        ]

    async def elected(three: group.Group) -> str:
        master = await three.master()
        await asyncio.sleep(1)
        return await page_of(three.runtimes[master], broker=BrokerMetrics(three.brokers[master]))

    return (play(alone), *pair.play(replicated), group.play(elected))


def samples_of(pages: Iterable[str]) -> dict[str, set[frozenset[str]]]:
    """Return the names of all samples, each with the sets of label names that occur."""
    found: dict[str, set[frozenset[str]]] = {}
    for page in pages:
        for metric in parsed(page).values():
            for sample in metric.samples:
                found.setdefault(sample.name, set()).add(frozenset(sample.labels))
    return found
