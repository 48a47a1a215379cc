"""The name server's tables by themselves. Source: docs/protocol.md, "Name server"."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from impl.namesrv.route_table import BrokerKey, LiveBroker, RouteTable
from impl.remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigs

MASTER = BrokerKey("C", "b-a", 0, "10.0.0.1:10911")
SLAVE = BrokerKey("C", "b-a", 1, "10.0.0.2:10911")
OTHER = BrokerKey("C", "b-b", 0, "10.0.0.3:10911")
EXPIRY_MS = 120_000


def topics(*names: str, version: int = 1, queues: int = 4) -> TopicConfigs:
    return TopicConfigs(
        DataVersion(version),
        {name: TopicConfig(name, read_queue_nums=queues, write_queue_nums=queues) for name in names},
    )


def register(
    table: RouteTable,
    key: BrokerKey,
    configs: TopicConfigs | None = None,
    *,
    connection: int = 1,
    now_ms: int = 0,
    acting: bool | None = None,
    filter_servers: tuple[str, ...] = (),
) -> LiveBroker | None:
    return table.register(
        key,
        RegisterBrokerBody(configs, list(filter_servers)) if configs else None,
        ha_address="ha:1",
        connection=connection,
        now_ms=now_ms,
        expiry_ms=EXPIRY_MS,
        enable_acting_master=acting,
    )


def route_text(table: RouteTable, topic: str) -> str:
    route = table.route(topic)
    if route is None:
        return "none"
    queues = " ".join(f"{data.broker_name}:{data.write_queue_nums}" for data in route.queue_datas)
    brokers = " ".join(f"{broker.broker_name}{sorted(broker.broker_addrs)}" for broker in route.broker_datas)
    return f"{queues} at {brokers}"


def test_a_topic_nobody_registered_has_no_route() -> None:
    assert RouteTable().route("T") is None


def test_a_route_has_the_queues_and_brokers_of_the_topic_and_no_others() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"))
    register(table, OTHER, topics("T", "U", queues=2))
    assert route_text(table, "T") == "b-a:4 b-b:2 at b-a[0] b-b[0]"
    assert route_text(table, "U") == "b-b:2 at b-b[0]"


def test_a_registration_adds_topics_and_leaves_others_alone() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"))
    register(table, MASTER, topics("U", version=2))
    assert (route_text(table, "T"), route_text(table, "U")) == ("b-a:4 at b-a[0]", "b-a:4 at b-a[0]")


def test_queues_change_with_the_data_version_only() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T", version=1))
    register(table, MASTER, topics("T", version=1, queues=8))
    assert route_text(table, "T") == "b-a:4 at b-a[0]"
    register(table, MASTER, topics("T", version=2, queues=8))
    assert route_text(table, "T") == "b-a:8 at b-a[0]"


def test_a_slave_is_told_its_master_and_brings_no_queues() -> None:
    table = RouteTable()
    assert register(table, SLAVE, topics("T")) is None
    assert table.route("T") is None
    register(table, MASTER, topics("T"))
    master = register(table, SLAVE, topics("U"))
    assert master is not None
    assert master.key == MASTER
    assert route_text(table, "T") == "b-a:4 at b-a[0, 1]"
    assert table.route("U") is None


def test_without_its_master_a_broker_name_keeps_its_queues() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"))
    register(table, SLAVE)
    assert table.unregister(MASTER)
    assert route_text(table, "T") == "b-a:4 at b-a[1]"
    assert table.unregister(SLAVE)
    assert table.route("T") is None


def test_unregistering_under_another_id_changes_nothing() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"))
    assert not table.unregister(BrokerKey("C", "b-a", 1, MASTER.address))
    assert route_text(table, "T") == "b-a:4 at b-a[0]"


def test_an_address_has_one_id_only() -> None:
    table = RouteTable()
    register(table, SLAVE)
    register(table, BrokerKey("C", "b-a", 0, SLAVE.address), topics("T"))
    assert route_text(table, "T") == "b-a:4 at b-a[0]"


def test_a_silent_broker_expires_after_its_time_and_not_before() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"), now_ms=1000)
    assert table.expire(1000 + EXPIRY_MS) == []
    assert [live.key for live in table.expire(1001 + EXPIRY_MS)] == [MASTER]
    assert table.route("T") is None


def test_a_heartbeat_keeps_a_known_broker_alive_and_makes_no_unknown_one() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"))
    assert table.heartbeat("C", MASTER.address, now_ms=100_000)
    assert table.expire(150_000) == []
    assert table.heartbeat("C", OTHER.address, now_ms=0) is None
    assert table.cluster_info().cluster_addr_table == {"C": ["b-a"]}


def test_a_closed_connection_takes_its_brokers_along_and_no_others() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"), connection=1)
    register(table, OTHER, topics("T"), connection=2)
    assert [live.key for live in table.connection_closed(1)] == [MASTER]
    assert route_text(table, "T") == "b-b:4 at b-b[0]"


def test_a_broker_that_registered_again_survives_the_end_of_its_old_connection() -> None:
    table = RouteTable()
    register(table, MASTER, topics("T"), connection=1)
    register(table, MASTER, topics("T"), connection=2)
    assert table.connection_closed(1) == []
    assert route_text(table, "T") == "b-a:4 at b-a[0]"


class TablesAgree(RuleBasedStateMachine):
    """ROUTE-1 TablesAgree: after any sequence of steps each queue entry names a known broker, each known
    address is a living broker, and each living broker has its address."""

    keys = st.builds(
        BrokerKey,
        cluster=st.sampled_from(["C", "D"]),
        broker_name=st.sampled_from(["a", "b"]),
        broker_id=st.integers(0, 1),
        address=st.sampled_from(["1:1", "2:1", "3:1"]),
    )

    def __init__(self) -> None:
        super().__init__()
        self.table = RouteTable()
        self.now_ms = 0

    @rule(key=keys, names=st.lists(st.sampled_from("TU"), max_size=2), connection=st.integers(0, 2))
    def register(self, key: BrokerKey, names: list[str], connection: int) -> None:
        register(
            self.table, key, topics(*names, version=self.now_ms), connection=connection, now_ms=self.now_ms
        )

    @rule(key=keys)
    def unregister(self, key: BrokerKey) -> None:
        self.table.unregister(key)

    @rule(key=keys)
    def heartbeat(self, key: BrokerKey) -> None:
        self.table.heartbeat(key.cluster, key.address, self.now_ms)

    @rule(connection=st.integers(0, 2))
    def close(self, connection: int) -> None:
        self.table.connection_closed(connection)

    @rule(seconds=st.integers(1, 100))
    def expire(self, seconds: int) -> None:
        self.now_ms += seconds * 1000
        self.table.expire(self.now_ms)

    @invariant()
    def tables_agree(self) -> None:
        brokers = self.table.cluster_info().broker_addr_table
        for topic in self.table.topics():
            route = self.table.route(topic)
            assert route is not None, f"{topic} has queues of nobody"
            assert {data.broker_name for data in route.queue_datas} <= set(brokers)
        addresses = sorted(
            (broker.broker_name, id_, address)
            for broker in brokers.values()
            for id_, address in broker.broker_addrs.items()
        )
        living = sorted(
            (live.key.broker_name, live.key.broker_id, live.key.address) for live in self.table.living()
        )
        assert addresses == living


TestTablesAgree = TablesAgree.TestCase
TestTablesAgree.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_the_machine_notices_a_table_that_forgets_to_forget() -> None:
    """The check can fail: with the rule about moved brokers taken out, it does."""
    machine = TablesAgree()
    machine.table._forget_impostors = lambda key: None  # type: ignore[method-assign]  # noqa: ARG005  # planted
    machine.register(BrokerKey("C", "a", 0, "1:1"), ["T"], 0)
    machine.register(BrokerKey("C", "b", 0, "1:1"), ["T"], 0)
    with pytest.raises(AssertionError):
        machine.tables_agree()
