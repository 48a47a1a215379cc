"""Tests the metrics of a broker: each one occurs in a scrape, and changes with what it reports."""

import asyncio
import errno
import re
from operator import attrgetter
from types import SimpleNamespace
from typing import cast

import pytest

from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.subjects import pair
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.broker_metrics import BEHIND, BROKER_METRICS, IN_SYNC, SLAVES, BrokerMetrics
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.services import Services
from mqproof.impl.metrics.families import Metric
from mqproof.impl.metrics.metrics_server import READY
from mqproof.impl.metrics.process_metrics import ProcessMetrics
from mqproof.impl.namesrv.namesrv_metrics import NAMESRV_METRICS, NameServerMetrics
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.security.peer_network import PeerConfig
from mqproof.impl.runtime.supervision import Supervisor
from mqproof.impl.store.damage import Damage, DamageKind, Outcome
from tests.impl.broker import group
from tests.impl.metrics.scrapes import all_pages, broker_page, page_of, parsed, samples_of, value
from tests.impl.world import SMALL_STORE, World, play

NAME = attrgetter("name")
DECLARED = {*BROKER_METRICS, *NAMESRV_METRICS, *ProcessMetrics(Supervisor()).metrics, READY}


def test_every_metric_that_is_declared_occurs_with_its_labels_and_no_other_does() -> None:
    common = {"cluster", "node_type", "node_id", "le"}
    found = {
        name: [set(labels) - common for labels in sets] for name, sets in samples_of(all_pages()).items()
    }
    names = {metric.name: set(metric.labels) for metric in DECLARED}
    assert {name for name in names if name not in found and f"{name}_count" not in found} == set()
    for sample, all_labels in found.items():
        base = sample if sample in names else sample.rpartition("_")[0]
        assert all(labels == names[base] for labels in all_labels), sample


@pytest.mark.parametrize("metric", sorted(DECLARED, key=NAME), ids=NAME)
def test_a_metric_has_a_name_a_meaning_in_words_and_names_of_labels(metric: Metric) -> None:
    assert re.fullmatch(r"(mqproof|rocketmq|process)_[a-z_]+", metric.name)
    assert re.fullmatch(r"[A-Z1].*[a-z0-9]\.", metric.meaning)
    assert isinstance(metric.labels, tuple)
    assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels)


def test_no_page_has_a_metric_twice() -> None:
    for page in all_pages():
        heads = [line for line in page.splitlines() if line.startswith("# TYPE")]
        assert len(heads) == len(set(heads)) == len(parsed(page))


def test_a_full_disk_is_reported_and_does_not_make_the_broker_unready() -> None:
    async def scenario(world: World) -> tuple[str, str, str]:
        world.disk.room = Space(100, 5)
        await asyncio.sleep(15)
        assert world.broker is not None
        full, why = await broker_page(world), BrokerMetrics(world.broker).unready()
        await world.producer.send(Message("T", b"refused"), timeout_ms=100)
        world.disk.room = Space(100, 50)
        await asyncio.sleep(15)
        return full, why, await broker_page(world)

    full, why, free = play(scenario)
    assert [value(page, "mqproof_disk_full") for page in (full, free)] == [1, 0]
    assert value(full, "mqproof_disk_used_ratio") == pytest.approx(0.95)
    assert why == ""
    assert value(free, "mqproof_failed_sends_total") >= 1


def test_a_read_only_store_is_reported_and_makes_the_broker_unready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> tuple[str, str]:
        assert world.broker is not None
        world.broker.store._fail(OSError(errno.EIO, "input/output error"))
        return await broker_page(world), BrokerMetrics(world.broker).unready()

    page, why = play(scenario)
    assert value(page, "mqproof_store_read_only") == 1
    assert value(page, "mqproof_ready", server="broker") == 0
    assert "the store is read-only" in why
    assert "accepts no message until it is restarted" in caplog.text


def test_damage_is_reported_by_kind_and_outcome(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> str:
        assert world.broker is not None
        damage = Damage(DamageKind.QUEUE_ENTRY, "queue 0 at 7", "it is zero", Outcome.REPAIRED)
        world.broker.store.damage.add(damage)
        return await broker_page(world)

    page = play(scenario)
    assert value(page, "mqproof_damage_total", kind="queue_entry", outcome="repaired") == 1
    assert value(page, "mqproof_damage_total", kind="record", outcome="skipped") == 0
    assert "damaged queue entry" in caplog.text


class Peer:
    remote = ("10.0.0.1", 1)

    def received(self, data: bytes) -> None: ...
    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None: ...


def test_held_pulls_and_refused_sends_are_reported() -> None:
    async def scenario(world: World) -> str:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        services.holds.hold("T", 0, 0, (), 60.0, Peer())
        services.sends.refused_full, services.sends.refused_slow = 3, 4
        return await broker_page(world)

    page = play(scenario)
    assert value(page, "mqproof_budget_used", budget="held_pulls", node_type="broker") == 1
    assert value(page, "mqproof_refused_sends_total", reason="overload") == 3
    assert value(page, "mqproof_refused_sends_total", reason="slow_disk") == 4


def test_a_refused_peer_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> str:
        assert world.broker is not None
        assert world.broker.replicas.ha_address is not None
        for _ in range(2):
            await world.network.connect(world.broker.replicas.ha_address, lambda _: Peer())
        await asyncio.sleep(1)
        return await broker_page(world)

    role = ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)
    peers = PeerConfig(peer_addresses=("10.9.9.9",))
    config = BrokerConfig(
        store_directory="/store", port=0, store=SMALL_STORE, replication=role, peer_access=peers
    )
    assert value(play(scenario, config=config), "mqproof_refused_peers_total", port="ha") == 2
    assert "its address is not among peerAddresses" in caplog.text


def test_a_broker_is_not_ready_before_its_start_and_has_no_metrics() -> None:
    async def scenario(world: World) -> tuple[str, int]:
        source = BrokerMetrics(Broker(BrokerConfig(store_directory="/other"), world.runtime))
        return source.unready(), len(await source.collect())

    assert play(scenario) == ("starting or stopping", 0)


def test_a_server_that_stops_is_not_ready_any_more() -> None:
    async def scenario(world: World) -> list[str]:
        assert world.broker is not None
        sources = BrokerMetrics(world.broker), NameServerMetrics(world.namesrv)
        before = [source.unready() for source in sources]
        stopping = asyncio.ensure_future(world.broker.stop())
        await asyncio.sleep(0)
        during = sources[0].unready()
        await stopping
        world.broker = None
        await world.namesrv.stop()
        return [*before, during, sources[1].unready()]

    assert play(scenario) == ["", "", "starting or stopping", "starting or stopping"]


def test_a_slave_that_follows_is_in_sync_until_it_stops() -> None:
    async def scenario(two: pair.Pair) -> tuple[str, str, str]:
        await two.followed()
        await two.send("m0")
        runtime = two.machines[MASTER].runtime()
        before = await page_of(runtime, broker=BrokerMetrics(two.brokers[MASTER]))
        slave = await page_of(runtime, broker=BrokerMetrics(two.brokers[SLAVE]))
        await two.stop(SLAVE)
        await asyncio.sleep(1)
        return before, slave, await page_of(runtime, broker=BrokerMetrics(two.brokers[MASTER]))

    before, slave, after = pair.play(scenario)
    assert [value(page, "mqproof_ha_slaves_in_sync") for page in (before, after)] == [1, 0]
    assert [value(page, "mqproof_ha_slaves_connected") for page in (before, after)] == [1, 0]
    assert value(before, "mqproof_role", role="SYNC_MASTER") == 1
    assert value(slave, "mqproof_role", role="SLAVE") == 1
    assert value(slave, "mqproof_ha_following") == 1


def test_one_member_of_a_group_leads() -> None:
    async def scenario(three: group.Group) -> list[str]:
        await three.master()
        return [
            await page_of(three.runtime, broker=BrokerMetrics(broker)) for broker in three.brokers.values()
        ]

    pages = group.play(scenario)
    assert sum(value(page, "mqproof_dledger_role", role="LEADER") for page in pages) == 1
    assert sum(value(page, "mqproof_dledger_role", role="FOLLOWER") for page in pages) == 2
    assert len({value(page, "mqproof_dledger_term") for page in pages}) == 1


@pytest.mark.parametrize(
    ("positions", "expected"),
    [((), (0, 0, 0)), ((100, 90, 89), (3, 2, 11)), ((101,), (1, 1, 0))],
)
def test_slaves_are_in_sync_up_to_the_configured_distance(
    positions: tuple[int, ...], expected: tuple[int, int, int]
) -> None:
    replication = SimpleNamespace(fall_behind_bytes_max=10)
    services = SimpleNamespace(
        store=SimpleNamespace(log_end=100), config=SimpleNamespace(replication=replication)
    )
    found = BrokerMetrics(cast("Broker", None))._slaves(cast("Services", services), positions)
    values = [found[metric] for metric in (SLAVES, IN_SYNC, BEHIND)]
    assert values == [{(): number} for number in expected]


def test_the_counts_of_the_store_are_reported() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        services = world.broker.services
        assert services is not None
        services.store.scrub.records, services.store.scrub.passes = 7, 2
        services.statistics.failed_puts.add(3)
        page = await broker_page(world)
        found = {
            name: value(page, f"mqproof_{name}")
            for name in ("scrubbed_records_total", "scrub_passes_total", "failed_sends_total")
        }
        assert found == {"scrubbed_records_total": 7, "scrub_passes_total": 2, "failed_sends_total": 3}
        assert value(page, "mqproof_open_transactions") == value(page, "mqproof_store_read_only") == 0
        roles = {role.value: value(page, "mqproof_role", role=role.value) for role in Role}
        assert roles == {"ASYNC_MASTER": 1, "SYNC_MASTER": 0, "SLAVE": 0}

    play(scenario)
