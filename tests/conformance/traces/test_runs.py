"""Traces from runs of our brokers and name servers are behaviours of the models.

There are 30 of them, and 180 in the deep profile. The logs are from simulated runs with faults, and from one
run on real sockets and files. TLC runs once for each model. The other tests of this folder test that
corrupted logs are refused.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.conformance.subjects.pair_run import record
from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.report.model import Verdict
from mqproof.spec.events import Event
from tests.conformance.traces.event_logs import write
from tests.conformance.traces.routing_run import run as route

pytestmark = pytest.mark.xdist_group("traces")

SECONDS_MAX = 60.0


class _Site:
    """A name server, a synchronous master, its slave and a producer, on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime = production(AsyncioNetwork())
        self.events: list[Event] = []
        self._logs: dict[str, EventLog] = {}
        kept = str(folder / "kvConfig.json")
        config = NameServerConfig(port=0, kv_path=kept)
        self.name_server = NameServer(config, self.runtime, self.log("namesrv"))

    def log(self, node: str) -> EventLog:
        made = EventLog(self.events.append, node, self.runtime.clock)
        return self._logs.setdefault(node, made)

    async def start(self) -> None:
        self.address = await self.name_server.start()
        store = StoreConfig(flush_mode=FlushMode.SYNC_FLUSH, commit_log_segment_bytes=1 << 16)
        common = BrokerConfig(port=0, name_servers=(self.address,), store=store)
        role = ReplicationConfig(role=Role.SYNC_MASTER, ha_port=0)
        self.master_config = replace(common, store_directory=str(self.folder / "master"), replication=role)
        self.master = Broker(self.master_config, self.runtime, self.log("master"))
        await self.master.start()
        follows = ReplicationConfig(role=Role.SLAVE, ha_master=self.master.replicas.ha_address)
        self.slave_config = replace(
            common, broker_id=1, store_directory=str(self.folder / "slave"), replication=follows
        )
        await self.start_slave()
        self.session = Session([self.address], self.runtime)
        await self.session.start()
        self.producer = Producer(self.session, ProducerConfig("PG"))

    async def start_slave(self) -> None:
        self.slave = Broker(self.slave_config, self.runtime, self.log("slave"))
        await self.slave.start()
        await self.until(
            lambda: self.slave.replicas.client is not None and self.slave.replicas.client.is_following
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while not holds():
                await asyncio.sleep(0.01)

    async def send(self, count: int) -> list[object]:
        return [await self.producer.send(Message("T", b"."), timeout_ms=60_000) for _ in range(count)]

    async def stop(self) -> None:
        await self.session.stop()
        await self.slave.stop()
        await self.master.stop()
        await self.name_server.stop()


async def _on_sockets(folder: Path) -> list[Event]:
    site = _Site(folder)
    await site.start()
    try:
        sent = await site.send(6)
        await site.slave.stop()
        await site.start_slave()
        sent += await site.send(4)
    finally:
        await site.stop()
    assert all(isinstance(outcome, Sent) for outcome in sent)
    return site.events


@pytest.fixture(scope="module", params=[6, pytest.param(36, marks=pytest.mark.deep("TLC checks 36 logs"))])
def pairs(request: pytest.FixtureRequest) -> int:
    """Return the number of runs of a master with a slave; a third as many are of routing."""
    return int(request.param)


@pytest.fixture(scope="module")
def verdicts(pairs: int, tmp_path_factory: pytest.TempPathFactory) -> tuple[LogVerdict, ...]:
    folder = tmp_path_factory.mktemp("runs")
    logs = {f"pair-{seed}": record(seed) for seed in range(pairs)}
    logs |= {f"routing-{seed}": route(seed, steps=10) for seed in range(pairs // 3)}
    logs["sockets"] = asyncio.run(_on_sockets(folder))
    return check_logs([write(folder / name, events) for name, events in logs.items()])


def test_every_run_is_a_behaviour_of_its_models(verdicts: tuple[LogVerdict, ...]) -> None:
    judged = results(verdicts)
    assert [(r.name, r.witnesses) for r in judged if r.verdict is not Verdict.HELD] == []


def test_the_runs_give_at_least_five_traces_each(verdicts: tuple[LogVerdict, ...], pairs: int) -> None:
    assert sum(log.accepted for log in verdicts) >= 5 * pairs
    assert {log.model for log in verdicts} == {"Flush", "Replication", "Routing"}


def test_a_run_over_sockets_is_checked_against_all_three_models(verdicts: tuple[LogVerdict, ...]) -> None:
    of_sockets = [log for log in verdicts if log.path.name == "sockets"]
    checked = sorted((log.model, log.node) for log in of_sockets if log.events)
    assert checked == [("Flush", "master"), ("Flush", "slave"), ("Replication", ""), ("Routing", "")]
