"""Tests what a broker does from its start to its stop: its periodic work, its ports, and its upkeep."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.services import loop_ms
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.filter_servers import FilterServers
from mqproof.impl.broker.state.queue_locks import QueueLockTable
from mqproof.impl.broker.state.rolling_counts import RollingCounts
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.timers import LOG_READER
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.address_server import AddressServer
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedClock
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.message_store import MessageStore
from tests.impl.world import World, play

EVERY_S = {
    "_persist_offsets": 5,
    "_persist_delays": 10,
    "_drop_silent_clients": 10,
    "_roll": 10,
    "_check_holds": 5,
}


def test_each_periodic_work_is_done_at_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[str] = Counter()

    def counted(name: str, work: Callable[[Broker], Awaitable[None]]) -> Callable[[Broker], Awaitable[None]]:
        async def count(broker: Broker) -> None:
            done[name] += 1
            await work(broker)

        return count

    for name in EVERY_S:
        monkeypatch.setattr(Broker, name, counted(name, getattr(Broker, name)))

    async def scenario(world: World) -> None:
        done.clear()
        await asyncio.sleep(100.5)
        assert done == {name: 100 // seconds for name, seconds in EVERY_S.items()}

    play(scenario)


SERVES: Final = {
    "write of offsets": (5, None),
    "registration": (30, None),
    "write of delays": (10, None),
    "scan for silent clients": (10, None),
    "samples of statistics": (1, None),
    "periods of statistics": (10, None),
    "check of held pulls": (5, None),
}
"""What each broker does periodically: the interval, and the time of the first run if it is another one."""
FOLLOWS: Final = {
    "repair of damaged records": (5, None),
    "search for the master": (0.5, None),
    "copy of the master's tables": (10, 3),
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, SERVES),
        ({"long_polling": False}, {**SERVES, "check of held pulls": (1, None)}),
        ({"acl_enabled": True}, {**SERVES, "poll of the accounts": (5, None)}),
        ({"name_servers": AddressServer(Address("a", 80), "/ns")},
         {**SERVES, "fetch of name servers": (120, None)}),
        ({"replication": ReplicationConfig(role=Role.SLAVE, ha_port=0), "broker_id": 1},
         {**SERVES, **FOLLOWS}),
        ({"replication": ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)},
         {**SERVES, "repair of damaged records": (5, None)}),
    ],
)  # fmt: skip
def test_a_broker_does_the_periodic_work_of_its_role_and_settings(
    changes: dict[str, Any],
    expected: dict[str, tuple[float, float | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: dict[str, tuple[float, float | None]] = {}

    def noted(_: Broker, seconds: float, work: object, name: str, first_s: float | None = None) -> None:
        begun[name] = seconds, first_s

    async def scenario(world: World) -> None:
        disk = SimulatedDisk()
        write_durably(disk, "/store/config/plain_acl.yml", b"accounts: []")
        monkeypatch.setattr(Broker, "_every", noted)
        broker = Broker(replace(world.config, name="b-x", **changes), replace(world.runtime, disk=disk))
        await broker.start()
        await broker.stop()

    play(scenario)
    assert begun == expected


@pytest.mark.parametrize(
    ("first_s", "expected_s"), [(None, [5, 10, 15]), (3, [3, 8, 13]), (0, [0, 5, 10, 15])]
)
def test_periodic_work_begins_after_its_interval_unless_another_time_is_given(
    first_s: float | None, expected_s: list[float]
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        began_s, done_s = world.loop.time(), list[float]()

        async def work() -> None:
            done_s.append(round(world.loop.time() - began_s, 1))

        world.broker._every(5, work, "work of the test", first_s)
        await asyncio.sleep(15.5)
        assert done_s == expected_s

    play(scenario)


def test_held_pulls_are_checked_every_five_seconds_and_filter_servers_every_ten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[object] = []
    times: list[tuple[float, float]] = []

    def drop_silent(_: FilterServers, now_s: float) -> bool:
        times.append((now_s, loop_ms() / 1000))
        return False

    monkeypatch.setattr(PullHolds, "check", lambda _, end: ends.append(end))
    monkeypatch.setattr(FilterServers, "drop_silent", drop_silent)

    async def scenario(world: World) -> None:
        assert world.broker is not None
        await asyncio.sleep(20.5)
        assert ends == [world.broker.store.max_offset] * 4
        assert len(times) == 2
        assert all(given == now for given, now in times)

    play(scenario)


def test_periodic_work_gets_the_time_of_the_loop_and_that_of_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: set[tuple[str, bool]] = set()

    async def scenario(world: World) -> None:
        clock = world.runtime.clock
        assert isinstance(clock, SimulatedClock)
        clock.skew_us += 7_000_000

        def noted(kind: type, name: str, *now: Callable[[], float]) -> None:
            def note(_: object, *times: float) -> object:
                given.add((name, list(times) == [each() for each in now]))
                return ()

            monkeypatch.setattr(kind, name, note)

        def loop_s() -> float:
            return loop_ms() / 1000

        noted(Statistics, "sample", loop_s, lambda: now_ms(clock))
        noted(RollingCounts, "roll", loop_s)
        noted(QueueLockTable, "drop_expired", loop_ms)
        noted(ClientTable, "silent_since", lambda: loop_ms() - 120_000)
        noted(FilterServers, "drop_silent", loop_s)
        await asyncio.sleep(20.5)

    play(scenario)
    names = ("sample", "roll", "drop_expired", "silent_since", "drop_silent")
    assert given == {(name, True) for name in names}


def test_upkeep_is_awaited_while_a_connection_is_silent_for_forty_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        server, asked = world.broker._server, []
        assert server is not None
        assert not world.broker.awaits_upkeep()

        def has_silent(since_s: float) -> bool:
            asked.append(since_s)
            return True

        monkeypatch.setattr(server, "has_silent", has_silent)
        assert world.broker.awaits_upkeep()
        assert asked == [(loop_ms() - 40_000) / 1000]

    play(scenario)


@pytest.mark.parametrize(("mode", "is_warned"), [(0o644, True), (0o640, False)])
def test_a_file_with_the_brokers_own_account_is_not_readable_for_all(
    mode: int, is_warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await world.stop_broker()
        path = "/store/config/tools.yml"
        write_durably(world.disk, path, b"accessKey: a\nsecretKey: 12345678\n")
        monkeypatch.setattr(world.disk, "mode", {path: mode}.get)
        await world.start_broker()
        assert (f"{path} contains secrets" in caplog.text) is is_warned

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "name", "found"),
    [
        (Transactions, "open_count", property(lambda _: 1)),
        (ClientTable, "silent_since", lambda _, before_ms: [0] * (before_ms == loop_ms() - 40_000)),
    ],
)
def test_upkeep_is_awaited_while_a_transaction_is_open_or_a_client_is_missing(
    kind: type, name: str, found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert not world.broker.awaits_upkeep()
        with monkeypatch.context() as change:
            change.setattr(kind, name, found)
            assert world.broker.awaits_upkeep()
        assert not Broker(world.config, world.runtime).awaits_upkeep()

    play(scenario)


@pytest.mark.parametrize("role", [None, Role.SLAVE])
def test_the_whole_log_is_kept_until_the_timers_know_what_they_need(
    role: Role | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_from: list[object] = []
    start = MessageStore.start

    async def noted(store: MessageStore) -> None:
        kept_from.append(store._cleaner.readers[LOG_READER]())
        await start(store)

    async def scenario(world: World) -> None:
        monkeypatch.setattr(MessageStore, "start", noted)
        monkeypatch.setattr(MessageStore, "log_begin", 7)
        replication = ReplicationConfig(role=role, ha_port=0)
        config = replace(world.config, name="b-x", replication=replication, broker_id=int(role is Role.SLAVE))
        broker = Broker(config, replace(world.runtime, disk=SimulatedDisk()))
        await broker.start()
        await broker.stop()

    play(scenario)
    assert kept_from == [7]


def test_work_is_done_once_for_events_that_are_set_meanwhile_and_goes_on_after_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        event, runs = asyncio.Event(), 0

        async def work() -> None:
            nonlocal runs
            runs += 1
            await asyncio.sleep(1)
            if runs == 1:
                raise ValueError("of the test")

        running = asyncio.create_task(world.broker._whenever(event, work))
        event.set()
        for _ in range(2):
            await asyncio.sleep(0.4)
            event.set()
        await asyncio.sleep(5)
        running.cancel()
        assert runs == 2
        assert "work failed" in caplog.text

    play(scenario)


def test_the_topic_of_a_message_is_the_one_to_which_it_was_sent_also_while_it_waits() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        topics = []
        for topic, properties in (
            ("T", {"REAL_TOPIC": "U"}),
            (SCHEDULE_TOPIC, {"REAL_TOPIC": "U", "REAL_QID": "0"}),
            (SCHEDULE_TOPIC, {}),
        ):
            result = await world.broker.store.put(Message(topic, b"", properties))
            topics.append(world.broker._topic_at(result.commit_offset))
        topics.append(world.broker._topic_at(world.broker.store.log_end))
        assert topics == ["T", "U", SCHEDULE_TOPIC, None]

    play(scenario)


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_master_also_answers_on_the_port_two_below(
    is_taken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        role = ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)
        config = replace(world.config, name="b-x", replication=role, port=20_911)
        other = NameServer(NameServerConfig(port=20_909), world.runtime)
        if is_taken:
            await other.start()
        broker = Broker(config, replace(world.runtime, disk=SimulatedDisk()))
        address = await broker.start()
        assert ("slaves of released brokers do not learn topics: port 20909" in caplog.text) is is_taken
        if not is_taken:
            below, request = Address(address.host, 20_909), new_request(RequestCode.GET_ALL_TOPIC_CONFIG)
            assert (await world.session.remoting.invoke(below, request, 3.0)).code == 0
            await broker.stop()
            with pytest.raises(RemotingError):
                await world.session.remoting.invoke(below, request, 3.0)
            return
        await broker.stop()
        await other.stop()

    play(scenario)


def test_a_broker_notes_when_it_was_started() -> None:
    async def scenario(world: World) -> None:
        await asyncio.sleep(5.7)
        broker = Broker(replace(world.config, name="b-x"), replace(world.runtime, disk=SimulatedDisk()))
        began_ms = now_ms(world.runtime.clock)
        await broker.start()
        services = broker.services
        assert services is not None
        assert services.started_s == 5
        assert began_ms <= services.booted_ms <= began_ms + 100
        assert services.config_version == DataVersion(0, services.booted_ms)
        await broker.stop()

    play(scenario)


@pytest.mark.parametrize("property_filter", [False, True])
def test_events_have_the_properties_of_messages_if_consumers_can_filter_by_them(
    property_filter: bool,
) -> None:
    async def scenario(world: World) -> None:
        events = world.event_log("b-x")
        Broker(replace(world.config, name="b-x", property_filter=property_filter), world.runtime, events)
        assert events.records_properties is property_filter

    play(scenario)


def test_a_broker_is_ready_between_its_start_and_its_stop() -> None:
    async def scenario(world: World) -> None:
        broker = Broker(replace(world.config, name="b-x"), replace(world.runtime, disk=SimulatedDisk()))
        ready = [broker.is_ready]
        await broker.start()
        ready.append(broker.is_ready)
        stopping = asyncio.create_task(broker.stop())
        await asyncio.sleep(0)
        ready.append(broker.is_ready)
        await stopping
        assert [*ready, broker.is_ready] == [False, True, False, False]

    play(scenario)


def test_a_broker_without_slaves_does_not_answer_on_the_port_two_below() -> None:
    async def scenario(world: World) -> None:
        config = replace(world.config, name="b-x", port=20_911)
        broker = Broker(config, replace(world.runtime, disk=SimulatedDisk()))
        address = await broker.start()
        below, request = Address(address.host, 20_909), new_request(RequestCode.GET_ALL_TOPIC_CONFIG)
        with pytest.raises(RemotingError):
            await world.session.remoting.invoke(below, request, 3.0)
        await broker.stop()

    play(scenario)


def test_a_broker_that_cannot_start_leaves_nothing_running() -> None:
    async def scenario(world: World) -> None:
        disk = SimulatedDisk()
        config = replace(world.config, name="b-x", port=world.broker_address.port)
        broker = Broker(config, replace(world.runtime, disk=disk))
        with pytest.raises(OSError, match="in use"):
            await broker.start()
        await asyncio.sleep(0.1)
        assert (broker._tasks, broker.services, disk.exists("/store/abort")) == (set(), None, False)

    play(scenario)


def test_durations_are_measured_in_whole_milliseconds() -> None:
    async def scenario(_: World) -> None:
        before_ms = loop_ms()
        await asyncio.sleep(20)
        assert loop_ms() - before_ms == pytest.approx(20_000, abs=2)

    play(scenario)


@pytest.mark.parametrize(("trace_on", "text"), [(True, "true"), (False, "false")])
def test_a_broker_reports_its_region_and_whether_clients_may_trace(trace_on: bool, text: str) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        config = replace(world.config, region="R", trace_on=trace_on)
        services = replace(world.broker.services, config=config)
        assert services.tracing_fields() == {"MSG_REGION": "R", "TRACE_ON": text}

    play(scenario)
