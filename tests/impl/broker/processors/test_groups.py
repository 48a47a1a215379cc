"""Tests the clients of a broker: registration, notifications, and limits on what a client can store.

Sources: docs/reference/protocol/groups.md, "Client registration", "Queue locks" and "Subscription groups".
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors.groups import (
    heartbeat,
    lock_queues,
    members_left,
    notify,
    unlock_queues,
)
from mqproof.impl.broker.services import loop_ms
from mqproof.impl.broker.state.clients import ConsumerGroup, Member
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ClientCheck,
    ConsumerConnection,
    ConsumerData,
    ConsumerIds,
    Heartbeat,
    LockedQueues,
    MessageQueue,
    ProducerConnection,
    ProducerData,
    ProducerTable,
    QueueLocks,
    Subscription,
    SubscriptionGroup,
    TopicConfig,
)
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import ConsumerGroupRequest, ProducerGroupRequest, UnregisterClientRequest
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.broker.processors.test_send import CONFIG
from tests.impl.broker.test_broker import QUEUE, message
from tests.impl.world import World, play


class Client:
    """A client with its own connection, which counts the notifications that it receives."""

    def __init__(self, world: World, client_id: str) -> None:
        self.world = world
        self.client_id = client_id
        self.reported: list[str] = []
        self.remoting = RemotingClient(world.network, self._notified)

    def _notified(self, request: Command, _: object) -> None:
        assert request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        self.reported.append(request.fields["consumerGroup"])

    async def beat(self, *groups: str, topics: tuple[str, ...] = ("T",), model: str = "CLUSTERING") -> int:
        subscriptions = [Subscription(topic) for topic in topics]
        consumers = [
            ConsumerData(group, message_model=model, subscription_data_set=subscriptions) for group in groups
        ]
        beat = Heartbeat(self.client_id, consumers, [ProducerData("PG")])
        request = new_request(RequestCode.HEART_BEAT, body=java_json.write(beat, standard=True))
        return (await self.remoting.invoke(self.world.broker_address, request, 3.0)).code

    async def leave(self, group: str) -> None:
        fields = headers.write(UnregisterClientRequest(self.client_id, None, group))
        request = new_request(RequestCode.UNREGISTER_CLIENT, fields)
        await self.remoting.invoke(self.world.broker_address, request, 3.0)

    async def heard(self) -> list[str]:
        await asyncio.sleep(0.1)
        reported, self.reported = self.reported, []
        return reported


async def group_put(world: World, group: SubscriptionGroup) -> None:
    assert world.broker is not None
    assert world.broker.services is not None
    await world.broker.services.groups.put(group)


def test_members_are_notified_only_of_joins_leaves_and_new_topics() -> None:
    async def scenario(world: World) -> None:
        first, second = Client(world, "c1"), Client(world, "c2")
        await first.beat("G")
        assert await first.heard() == ["G"]
        await first.beat("G")
        assert await first.heard() == []
        await second.beat("G", "H")
        assert (await first.heard(), sorted(await second.heard())) == (["G"], ["G", "H"])
        await second.beat("G", topics=("T", "U"))
        assert await first.heard() == ["G"]
        await second.heard()
        await second.leave("G")
        assert (await first.heard(), await second.heard()) == (["G"], [])
        await second.beat("G")
        await first.heard()
        await second.remoting.close()
        assert await first.heard() == ["G"]
        await first.remoting.close()

    play(scenario)


def test_a_group_that_disabled_notifications_receives_none() -> None:
    async def scenario(world: World) -> list[str]:
        await group_put(world, SubscriptionGroup(group_name="G", notify_consumer_ids_changed_enable=False))
        client = Client(world, "c1")
        await client.beat("G")
        reported = await client.heard()
        await client.remoting.close()
        return reported

    assert play(scenario) == []


def test_a_member_that_does_not_read_is_not_notified() -> None:
    async def scenario(world: World) -> list[tuple[str, int, bool, str]]:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        await group_put(world, SubscriptionGroup(group_name="A", notify_consumer_ids_changed_enable=False))
        reported: list[tuple[str, int, bool, str]] = []

        class Peer:
            def __init__(self, name: str, *, takes: bool) -> None:
                self.name, self.takes, self.remote = name, takes, ("127.0.0.1", 1)

            def send_oneway(self, note: Command) -> None:
                reported.append((self.name, note.code, note.is_oneway, note.fields["consumerGroup"]))

        beat = Heartbeat("c", [ConsumerData("A"), ConsumerData("G")])
        member = Member("c", "JAVA", 409, loop_ms())
        for peer in (Peer("reads", takes=True), Peer("does not", takes=False)):
            services.clients.heartbeat(peer, beat, member)  # type: ignore[arg-type]
        notify(services, ["G", "A"])
        return reported

    assert play(scenario) == [("reads", RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, True, "G")]


def test_the_newest_subscription_replaces_the_older_ones() -> None:
    group = ConsumerGroup()

    def beat(**versions: int) -> bool:
        wanted = [
            Subscription(topic, f"v{version}", sub_version=version) for topic, version in versions.items()
        ]
        return group.update(ConsumerData("G", subscription_data_set=wanted))

    def known() -> dict[str, str | None]:
        return {topic: subscription.sub_string for topic, subscription in group.subscriptions.items()}

    assert beat(T=5, U=5)
    assert not beat(T=4, U=6)
    assert known() == {"T": "v5", "U": "v6"}
    assert beat(T=5)
    assert known() == {"T": "v5"}
    assert beat(T=5, U=1)
    assert known() == {"T": "v5", "U": "v1"}, "the earlier subscription is dropped"


def test_a_silent_client_is_removed_and_its_connection_is_closed() -> None:
    async def scenario(world: World) -> None:
        client = Client(world, "c1")
        await client.beat("G")
        for _ in range(12):
            await asyncio.sleep(10)
            await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("G"))
            fields = headers.write(ConsumerGroupRequest("G"))
            alive = new_request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields)
            await client.remoting.invoke(world.broker_address, alive, 3.0)
        await asyncio.sleep(11)
        answer = await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("G"))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        await client.remoting.close()

    play(scenario, config=replace(CONFIG, client_expiry_ms=120_000))


def test_a_client_that_reconnects_before_its_lost_connection_is_noticed_is_one_member() -> None:
    async def scenario(world: World) -> None:
        before, other, again = Client(world, "c1"), Client(world, "c2"), Client(world, "c1")
        for client in (before, other):
            await client.beat("G")
        await asyncio.sleep(10)
        await again.beat("G")
        answer = await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("G"))
        assert java_json.read(ConsumerIds, answer.body).consumer_id_list == ["c1", "c2"]
        assert world.broker is not None
        assert world.broker.services is not None
        group = world.broker.services.clients.consumer_group("G")
        assert group is not None
        newest = group.channel_of("c1")
        assert newest is list(group.members)[2]
        for client in (before, other, again):
            await client.remoting.close()

    play(scenario)


def test_the_connections_of_groups_are_listed_with_client_versions() -> None:
    async def scenario(world: World) -> None:
        client = Client(world, "c1")
        await client.beat("G", model="BROADCASTING")
        answer = await world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest("G"))
        group = java_json.read(ConsumerConnection, answer.body)
        assert (group.message_model, group.consume_type) == ("BROADCASTING", "CONSUME_PASSIVELY")
        assert list(group.subscription_table) == ["T"]
        (connection,) = group.connection_set
        assert (connection.client_id, connection.language, connection.version) == ("c1", "PYTHON", 409)
        answer = await world.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, ProducerGroupRequest("PG"))
        producers = java_json.read(ProducerConnection, answer.body).connection_set
        assert connection in producers
        answer = await world.ask(RequestCode.GET_ALL_PRODUCER_INFO)
        (info,) = [
            one for one in java_json.read(ProducerTable, answer.body).data["PG"] if one.client_id == "c1"
        ]
        assert info.remote_ip == f"/{connection.client_addr}"
        assert abs(info.last_update_timestamp - world.runtime.clock.now_us() // 1000) < 100
        await client.remoting.close()

    play(scenario)


CPP_HEARTBEAT = (
    b'{"clientID":"8908-127.0.0.1@DEFAULT","consumerDataSet":[{"consumeFromWhere":0,"consumeType":1,'
    b'"groupName":"G","messageModel":1,"subscriptionDataSet":['
    b'{"subString":"*","subVersion":"1795310808099","topic":"%RETRY%G"},'
    b'{"codeSet":[0,0],"subString":"A || B","subVersion":"1795311016914","tagsSet":["A","B"],'
    b'"topic":"T"}]}]}\n'
)
"""A heartbeat as a released C++ client sends it (recorded from rocketmq-client-python 0.5.0rc2)."""


def test_constants_that_cpp_clients_send_as_numbers_are_accepted() -> None:
    async def scenario(world: World) -> ConsumerConnection:
        assert (await world.ask(RequestCode.HEART_BEAT, body=CPP_HEARTBEAT)).code == 0
        answer = await world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest("G"))
        return java_json.read(ConsumerConnection, answer.body)

    group = play(scenario)
    assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert group.consume_from_where == "CONSUME_FROM_LAST_OFFSET"
    assert group.subscription_table["T"].sub_string == "A || B"
    assert group.subscription_table["T"].sub_version == 1795311016914


@pytest.mark.parametrize(
    ("old", "new"), [(b'"consumeType":1', b'"consumeType":3'), (b'"messageModel":1', b'"messageModel":-1')]
)
def test_a_number_that_no_constant_has_is_refused(old: bytes, new: bytes) -> None:
    async def scenario(world: World) -> Command:
        return await world.ask(RequestCode.HEART_BEAT, body=CPP_HEARTBEAT.replace(old, new))

    answer = play(scenario)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "or a name expected" in (answer.remark or "")


def test_groups_without_members_have_no_connections() -> None:
    async def scenario(world: World) -> list[int]:
        consumers = await world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest("G"))
        producers = await world.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, ProducerGroupRequest("none"))
        return [consumers.code, producers.code]

    assert play(scenario) == [ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.SYSTEM_ERROR]


@pytest.mark.parametrize(
    ("subscription", "code"),
    [
        (None, ResponseCode.SUCCESS),
        (Subscription("T", "a"), ResponseCode.SUCCESS),
        (Subscription("T", "a", expression_type=None), ResponseCode.SUCCESS),
        (Subscription("T", "a > 1", expression_type="SQL92"), ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_filter_is_checked_before_a_consumer_starts(subscription: Subscription | None, code: int) -> None:
    async def scenario(world: World) -> int:
        body = java_json.write(ClientCheck("c1", "G", subscription), standard=True)
        return (await world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)).code

    assert play(scenario) == code


def test_the_answer_to_a_lock_is_standard_json() -> None:
    """A broker's name may have letters beyond ASCII, which standard JSON escapes."""

    async def scenario(world: World) -> None:
        queue = MessageQueue("br\u00f6k", 0, "T")
        await world.producer.send(message("x"))
        body = java_json.write(QueueLocks("c1", "G", [queue]), standard=True)
        answer = await world.ask(RequestCode.LOCK_BATCH_MQ, body=body)
        expected = rb'{"lockOKMQSet":[{"brokerName":"br\u00f6k","queueId":0,"topic":"T"}]}'
        assert answer.body == expected

    play(scenario, config=BrokerConfig(name="br\u00f6k", store_directory="/store", port=0))


def test_a_queue_is_locked_for_one_client_until_it_is_unlocked() -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(message("x"), QUEUE)
        queues = [MessageQueue("broker-a", 0, "T"), MessageQueue("broker-a", 3, "T")]
        others = [
            MessageQueue("broker-a", 4, "T"),
            MessageQueue("other", 0, "T"),
            MessageQueue("broker-a", 0, "U"),
        ]

        async def lock(client: str) -> list[MessageQueue]:
            body = java_json.write(QueueLocks(client, "G", queues + others), standard=True)
            answer = await world.ask(RequestCode.LOCK_BATCH_MQ, body=body)
            return java_json.read(LockedQueues, answer.body).lock_ok_mq_set

        assert (await lock("c1"), await lock("c2")) == (queues, [])
        body = java_json.write(QueueLocks("c1", "G", queues[:1]), standard=True)
        assert (await world.ask(RequestCode.UNLOCK_BATCH_MQ, body=body)).code == 0
        assert await lock("c2") == queues[:1]
        await asyncio.sleep(61)
        assert await lock("c1") == queues

    play(scenario)


def test_the_memory_that_one_client_can_occupy_is_bounded() -> None:
    async def scenario(world: World) -> list[int]:
        client = Client(world, "c1")
        codes = [
            await client.beat("G", topics=tuple(f"T{number}" for number in range(20_000))),
            await client.beat(*(f"G{number}" for number in range(1001))),
            await client.beat(*(f"G{number}" for number in range(900))),
            await client.beat(*(f"H{number}" for number in range(900))),
            await client.beat("I"),
        ]
        await client.remoting.close()
        return codes

    assert play(scenario) == [1, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("named", "joined", "is_refused"),
    [(1000, 1000, False), (0, 1001, True), (1001, 0, True), (1001, 1001, True), (1000, 0, False)],
)
def test_a_client_is_in_at_most_1000_groups(named: int, joined: int, is_refused: bool) -> None:
    services = SimpleNamespace(
        clients=SimpleNamespace(membership_count=lambda _: joined),
        groups={f"G{number}": SubscriptionGroup(group_name=f"G{number}") for number in range(1000)},
        topics=SimpleNamespace(ensure_all=_nothing),
    )
    consumers = [ConsumerData(f"G{number}") for number in range(named - named // 2)]
    producers = [ProducerData(f"P{number}") for number in range(named // 2)]
    body = java_json.write(Heartbeat("c1", consumers, producers), standard=True)
    beat = heartbeat(
        cast("Any", services),
        new_request(RequestCode.HEART_BEAT, body=body),
        cast("Any", SimpleNamespace(is_open=False)),
    )
    if is_refused:
        with pytest.raises(RefusedError, match="a client can be in at most 1000 groups"):
            run_simulated(beat)
    else:
        answer = run_simulated(beat)
        assert answer is not None
        assert answer.code == ResponseCode.SUCCESS


async def _nothing(*_: object) -> None:
    """Accept any topics."""


@pytest.mark.parametrize("group", ["", "a b", "a@b", "g" * 121])
def test_an_invalid_group_is_refused_and_creates_no_topic(group: str) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        topics = len(world.broker.services.topics.snapshot().topic_config_table)
        client = Client(world, "c1")
        assert await client.beat(group) == ResponseCode.SYSTEM_ERROR
        assert len(world.broker.services.topics.snapshot().topic_config_table) == topics
        await client.remoting.close()

    play(scenario)


def test_an_automatically_created_group_exists_after_a_restart() -> None:
    async def scenario(world: World) -> int:
        client = Client(world, "c1")
        await client.beat("G")
        await client.remoting.close()
        await asyncio.sleep(6)
        world.disk.lose_power()
        await world.stop_broker()
        world.config = replace(CONFIG, auto_create_groups=False)
        await world.start_broker()
        client = Client(world, "c1")
        code = await client.beat("G")
        await client.remoting.close()
        return code

    assert play(scenario) == ResponseCode.SUCCESS


# Each step of a request, with recorded calls.


class Calls:
    """Records each call of its methods with the arguments; it answers with `answers[name]`, or None."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.kept: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.kept.append((name, *arguments))
            return self.answers.get(name)

        return call


class Steps:
    """Services whose parts record their calls; the groups G, H and I have 1, 0 and 2 retry queues."""

    def __init__(self, *, filters: bool = True, refusal: str | None = None, **more: Any) -> None:
        self.created: list[tuple[dict[str, int], object]] = []
        self.config = SimpleNamespace(property_filter=filters, name="broker-a")
        self.groups = {
            name: SubscriptionGroup(group_name=name, retry_queue_nums=queues)
            for name, queues in (("G", 1), ("H", 0), ("I", 2))
        }
        self.topics: Any = SimpleNamespace(ensure_all=self._create)
        self.clients: Any = SimpleNamespace(
            membership_count=lambda _: 0,
            refusal=lambda _channel, _beat: refusal,
            heartbeat=self._heartbeat,
            consumer_group=lambda name: SimpleNamespace(subscriptions={name: 1}) if name != "I" else None,
            consumer_channels=lambda _: (),
        )
        self.members: list[tuple[object, Heartbeat, Member]] = []
        self.announced, self.filters, self.resets, self.locks = Calls(), Calls(), Calls(), Calls(lock=[])
        self.runtime = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: 5_000_999))
        self.is_slave = False
        self.store = SimpleNamespace(has_all=True, refusal="this broker is a slave")
        vars(self).update(more)

    async def _create(self, topics: dict[str, int], by: object) -> None:
        self.created.append((topics, by))

    def _heartbeat(self, channel: object, beat: Heartbeat, member: Member) -> set[str]:
        self.members.append((channel, beat, member))
        return set()


BEAT = Heartbeat("c1", [ConsumerData(name, subscription_data_set=[Subscription("T")]) for name in "GHI"])
OPEN: Any = SimpleNamespace(is_open=True)


def beaten(steps: Steps) -> None:
    request = new_request(RequestCode.HEART_BEAT, body=java_json.write(BEAT, standard=True))

    async def main() -> None:
        await asyncio.sleep(7)
        answer = await heartbeat(cast("Any", steps), request, OPEN)
        assert answer is not None
        assert answer.code == ResponseCode.SUCCESS

    run_simulated(main(), SimulatedLoop())


@pytest.mark.parametrize("filters", [False, True])
def test_a_heartbeat_creates_retry_topics_and_records_the_member_and_its_subscriptions(filters: bool) -> None:
    steps = Steps(filters=filters)
    beaten(steps)
    assert steps.created == [({"%RETRY%G": 1, "%RETRY%I": 2}, OPEN)]
    assert steps.members == [(OPEN, BEAT, Member("c1", "PYTHON", 409, 7000))]
    assert steps.announced.kept == [("update", "G", {"G": 1}, "c1"), ("update", "H", {"H": 1}, "c1")]
    registered = [("register", name, [Subscription("T")], 5000) for name in "GHI"]
    assert steps.filters.kept == (registered if filters else [])


def test_a_heartbeat_that_needs_too_much_memory_is_refused_and_not_recorded() -> None:
    steps = Steps(refusal="too many memberships")
    with pytest.raises(RefusedError, match="too many memberships") as refused:
        beaten(steps)
    assert (refused.value.code, steps.members) == (ResponseCode.SYSTEM_BUSY, [])


def test_what_belongs_to_a_group_is_forgotten_when_its_last_member_leaves() -> None:
    steps = Steps()
    members_left(cast("Any", steps), ["I", "G"])
    assert steps.filters.kept == [("group_left", "I", 5000)]
    assert (steps.announced.kept, steps.resets.kept) == ([("group_left", "I")], [("drop", "I")])


@pytest.mark.parametrize(
    ("more", "group", "code"),
    [
        ({"is_slave": True}, "G", ResponseCode.SERVICE_NOT_AVAILABLE),
        ({"store": SimpleNamespace(has_all=False)}, "G", ResponseCode.SERVICE_NOT_AVAILABLE),
        ({}, "a b", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_broker_that_may_not_know_all_locks_refuses_to_lock(
    more: dict[str, Any], group: str, code: ResponseCode
) -> None:
    steps = Steps(**more)
    body = java_json.write(QueueLocks("c1", group, []), standard=True)
    with pytest.raises(RefusedError) as refused:
        lock_queues(cast("Any", steps), new_request(RequestCode.LOCK_BATCH_MQ, body=body), OPEN)
    assert refused.value.code == code
    if more:
        with pytest.raises(RefusedError):
            unlock_queues(cast("Any", steps), new_request(RequestCode.UNLOCK_BATCH_MQ, body=body), OPEN)
    assert steps.locks.kept == []


@pytest.mark.parametrize(("reads", "writes"), [(2, 1), (1, 2)])
def test_only_the_queues_that_exist_are_locked(reads: int, writes: int) -> None:
    topic = TopicConfig("T", read_queue_nums=reads, write_queue_nums=writes)
    steps = Steps(topics={"T": topic})
    queues = [MessageQueue("broker-a", queue_id, "T") for queue_id in (-1, 0, 1, 2)]
    others = [MessageQueue("broker-b", 0, "T"), MessageQueue("broker-a", 0, "U")]
    body = java_json.write(QueueLocks("c1", "G", queues + others), standard=True)

    async def main() -> None:
        await asyncio.sleep(7)
        lock_queues(cast("Any", steps), new_request(RequestCode.LOCK_BATCH_MQ, body=body), OPEN)
        unlock_queues(cast("Any", steps), new_request(RequestCode.UNLOCK_BATCH_MQ, body=body), OPEN)

    run_simulated(main(), SimulatedLoop())
    assert steps.locks.kept == [
        ("lock", "G", "c1", queues[1:3], 7000),
        ("unlock", "G", "c1", queues + others),
    ]
