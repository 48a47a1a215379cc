"""Tests brokers that elect their master, in a simulated world: fail-over and permissions of clients.

Sources: docs/reference/protocol/dledger.md, "Broker of a DLedger group", and
docs/explanation/dledger-group.md.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from types import SimpleNamespace
from typing import cast

import pytest

from mqproof.conformance.hosts.simulated import Cluster, Setup
from mqproof.impl.broker.elected_role import ElectedRole
from mqproof.impl.broker.processors.pull import pull_message
from mqproof.impl.broker.services import Services
from mqproof.impl.client.connection.session import SessionConfig
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import MessageQueue, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import QueueLocks, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import PullResponse
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from mqproof.impl.store.results import PutStatus
from mqproof.spec.events import Kind
from tests.impl.broker.group import IDS, Group, play
from tests.impl.broker.test_broker import PULL, altered


async def _received(group: Group) -> list[StoredMessage]:
    """Return everything that can be pulled from T, queue by queue."""
    found: list[StoredMessage] = []
    for queue in await group.consumer.queues("T"):
        offset = 0
        while True:
            result = await group.consumer.pull(queue, offset)
            if not result.messages:
                break
            found += result.messages
            offset = result.next_offset
    return found


def _bodies(messages: list[StoredMessage]) -> list[str]:
    return sorted(stored.message.body.decode() for stored in messages)


def _is_ok(outcome: Outcome) -> bool:
    return isinstance(outcome, Sent) and outcome.status == "SEND_OK"


def test_a_group_elects_one_master_and_delivers_messages() -> None:
    async def scenario(group: Group) -> tuple[list[str], list[str]]:
        master = await group.master()
        for number in range(5):
            await group.send(f"m{number}")
        assert group.masters() == [master]
        return _bodies(await _received(group)), [master]

    bodies, _ = play(scenario)
    assert bodies == [f"m{number}" for number in range(5)]


def test_every_acknowledged_message_survives_the_loss_of_two_masters() -> None:
    async def scenario(group: Group) -> tuple[list[str], list[str]]:
        masters = []
        for life in range(3):
            masters.append(await group.master())
            for number in range(10):
                await group.send(f"{life}{number}")
            if life < 2:
                group.kill(masters[-1])
                await group.master()
                await group.start(masters[-1])
        return masters, _bodies(await _received(group))

    masters, bodies = play(scenario)
    assert masters[0] != masters[1]
    assert masters[1] != masters[2]
    assert sorted(set(bodies)) == [f"{life}{number}" for life in range(3) for number in range(10)]


def test_a_rolling_restart_causes_no_election_timeout_and_loses_no_acknowledged_message() -> None:
    """A member waits six seconds before it gives up a silent leader."""

    async def scenario(group: Group) -> tuple[list[float], list[str]]:
        loop = asyncio.get_running_loop()
        waits = []
        for number in range(3):
            master = await group.master()
            for letter in "abc":
                await group.send(f"{number}{letter}")
            began = loop.time()
            await group.stop(master)
            await group.master()
            waits.append(loop.time() - began)
            await group.start(master)
            await asyncio.sleep(10)  # until it catches up
        return waits, _bodies(await _received(group))

    waits, bodies = play(scenario)
    assert max(waits) < 1.0
    assert sorted(set(bodies)) == [f"{number}{letter}" for number in range(3) for letter in "abc"]


def test_every_acknowledged_message_survives_a_power_failure_of_all_members() -> None:
    async def scenario(group: Group) -> list[str]:
        for number in range(20):
            await group.send(f"m{number}")
        for id_ in IDS:
            group.kill(id_)
            group.disks[id_].lose_power()
        for id_ in IDS:
            await group.start(id_)
        await group.send("after")
        return _bodies(await _received(group))

    bodies = play(scenario)
    assert sorted(set(bodies)) == sorted(["after", *(f"m{number}" for number in range(20))])


def test_all_members_finally_have_the_same_log_and_queues() -> None:
    async def scenario(group: Group) -> list[tuple[int, list[bytes]]]:
        for number in range(20):
            await group.send(f"m{number}")
        group.kill(await group.master())
        killed = next(id_ for id_ in IDS if id_ not in group.brokers)
        await group.send("after")
        await group.start(killed)
        async with asyncio.timeout(60):
            while len({broker.store.log_end for broker in group.brokers.values()}) > 1:
                await asyncio.sleep(0.1)
        seen = []
        for broker in group.brokers.values():
            records: list[bytes] = []
            for queue_id in range(broker.store.topics()["T"]):
                records += broker.store.get("T", queue_id, 0).records
            seen.append((broker.store.log_end, records))
        return seen

    first, second, third = play(scenario)
    assert len(first[1]) >= 21
    assert first == second == third


def test_a_record_contains_its_position_in_the_data_of_the_ledger() -> None:
    async def scenario(group: Group) -> tuple[int, int, str]:
        sent = await group.send("hello")
        broker = group.brokers[await group.master()]
        (data,) = broker.store.get("T", sent.queue.queue_id, 0).records
        stored = record.decode(data)
        found = broker.store.record_at(stored.commit_offset)
        assert found == data
        return stored.commit_offset, len(data), sent.offset_message_id

    offset, size, message_id = play(scenario)
    # After the no-op of the first term and the header of the entry.
    assert offset == 48 + 48
    assert size > 0
    assert int(message_id[-16:], 16) == offset


def test_a_member_that_is_not_the_leader_refuses_messages() -> None:
    async def scenario(group: Group) -> list[int]:
        master = await group.master()
        await group.send("hello")
        codes = []
        for id_ in IDS:
            if id_ != master:
                services = group.brokers[id_].services
                assert services is not None
                fields = {"a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0"}
                fields |= {"h": "0", "i": "", "j": "0", "k": "false", "m": "false"}
                request = new_request(RequestCode.SEND_MESSAGE_V2, fields, b"x")
                answer = await group.session.remoting.invoke(services.address, request, 30.0)
                codes.append(answer.code)
        return codes

    assert play(scenario) == [ResponseCode.SERVICE_NOT_AVAILABLE] * 2


async def _lock_codes(group: Group, ids: Collection[str]) -> list[int]:
    """Return the answers of these members to a lock request."""
    body = java_json.write(QueueLocks("c1", "G", []), standard=True)
    codes = []
    for id_ in ids:
        services = group.brokers[id_].services
        assert services is not None
        request = new_request(RequestCode.LOCK_BATCH_MQ, body=body)
        codes.append((await group.session.remoting.invoke(services.address, request, 30.0)).code)
    return codes


def test_deliv_6_only_the_leader_grants_locks() -> None:
    """DELIV-6 OneOwner."""

    async def scenario(group: Group) -> tuple[list[int], list[int]]:
        master = await group.master()
        await group.send("hello")
        return await _lock_codes(group, [master]), await _lock_codes(group, set(IDS) - {master})

    assert play(scenario) == ([ResponseCode.SUCCESS], [ResponseCode.SERVICE_NOT_AVAILABLE] * 2)


def test_deliv_6_a_leader_without_a_quorum_grants_no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """DELIV-6 OneOwner: another member may lead by then, for example after this one was paused."""

    async def scenario(group: Group) -> list[int]:
        master = await group.master()
        await group.send("hello")
        monkeypatch.setattr(LedgerStore, "has_all", False)
        return await _lock_codes(group, [master])

    assert play(scenario) == [ResponseCode.SERVICE_NOT_AVAILABLE]


def test_a_master_without_a_quorum_acknowledges_nothing_and_soon_steps_down() -> None:
    async def scenario(group: Group) -> tuple[list[str], list[str], list[str]]:
        master = await group.master()
        await group.send("before")
        for id_ in [id_ for id_ in IDS if id_ != master]:
            group.kill(id_)
        services = group.brokers[master].services
        assert services is not None
        of_master = services.offsets.unsent
        assert of_master is None, "those of a master are its own"
        outcome = await group.producer.send(_message("alone"))
        async with asyncio.timeout(60):
            while group.masters():
                await asyncio.sleep(0.1)
        assert services.offsets.unsent == set(), "a later master gets what is committed here from now on"
        alone = _bodies(await _received(group))
        for id_ in [id_ for id_ in IDS if id_ != master]:
            await group.start(id_)
        await group.send("after")
        return [str(getattr(outcome, "status", "none"))], alone, _bodies(await _received(group))

    status, alone, after = play(scenario)
    assert status != ["SEND_OK"]
    assert alone == ["before"]  # only committed messages are still served
    assert {"before", "after"} <= set(after)


def test_a_master_that_was_paused_sends_no_consumer_back() -> None:
    """In its first turn it does not know yet that another member leads and has more messages."""

    async def scenario() -> Command:
        cluster = Cluster(loop, 1, Setup(elected=True))
        await cluster.start_all()
        assert await cluster.until(lambda: cluster.master is not None, 60)
        stopped = str(cluster.master)
        first = cluster.brokers[stopped]
        session = cluster.session("client", SessionConfig(route_refresh_ms=1000))
        await session.start()
        consumer, producer = PullConsumer(session, "G"), Producer(session)

        queue = MessageQueue("T", "broker-a", 0)

        async def sent(body: str) -> None:
            async with asyncio.timeout(120):
                while not _is_ok(await producer.send(Message("T", body.encode()), queue)):
                    await asyncio.sleep(1)

        await sent("a")
        cluster.pause(stopped)
        await sent("b")
        assert cluster.brokers[str(cluster.master)] is not first
        assert (await consumer.pull(queue, 0)).next_offset == 2
        assert first.services is not None
        cluster.go_on(stopped)
        assert not first.services.is_slave  # it has done nothing yet
        request = new_request(RequestCode.PULL_MESSAGE, altered(PULL, queueOffset=2))
        answer = pull_message(first.services, request, None)  # type: ignore[arg-type]  # no pull is held
        assert isinstance(answer, Command)
        await session.stop()
        return answer

    loop = SimulatedLoop()
    answer = run_simulated(scenario(), loop)
    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert headers.read(PullResponse, answer.fields).next_begin_offset == 2


def test_a_topic_with_messages_exists_after_a_change_of_masters() -> None:
    async def scenario(group: Group) -> tuple[TopicConfig | None, list[str]]:
        master = await group.master()
        await group.send("hello")  # the send creates the topic, and no slave has fetched topics since
        group.kill(master)
        services = group.brokers[await group.master()].services
        assert services is not None
        return services.topics.get("T"), _bodies(await _received_at(group))

    topic, bodies = play(scenario)
    assert topic is not None
    assert bodies == ["hello"]


def test_a_master_lets_all_queues_with_messages_be_read_whatever_its_topic_table_has() -> None:
    async def scenario(group: Group) -> tuple[int, int]:
        master = await group.master()
        await group.send("hello")
        of_master = group.brokers[master].services
        assert of_master is not None
        await of_master.topics.put(TopicConfig(topic_name="T", read_queue_nums=30, write_queue_nums=30))
        result = await of_master.store.put(Message("T", b"far", queue_id=29))
        assert result.status is PutStatus.PUT_OK
        for id_ in IDS:  # the others have an older table
            services = group.brokers[id_].services
            assert services is not None
            if id_ != master:
                await services.topics.put(TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4))
        group.kill(master)
        services = group.brokers[await group.master()].services
        assert services is not None
        topic = services.topics.get("T")
        assert topic is not None
        return topic.read_queue_nums, topic.write_queue_nums

    assert play(scenario) == (30, 4)


async def _received_at(group: Group) -> list[StoredMessage]:
    """Return the topics of the new master without using the name server."""
    store = group.brokers[await group.master()].store
    found = [store.get("T", queue_id, 0).records for queue_id in range(store.topics()["T"])]
    return [record.decode(data) for records in found for data in records]


def _message(body: str) -> Message:
    return Message("T", body.encode())


def test_a_new_master_adds_the_topics_and_read_queues_that_only_the_log_has() -> None:
    known = {name: TopicConfig(name, read_queue_nums=4, write_queue_nums=2) for name in ("same", "grown")}
    in_log = {"few": 3, "many": 9, "%RETRY%G": 1, "same": 4, "grown": 5}
    services = SimpleNamespace(
        topics=SimpleNamespace(get=known.get), config=SimpleNamespace(default_topic_queues=8)
    )
    store = SimpleNamespace(topics=lambda: in_log)
    role = ElectedRole(cast("LedgerStore", store), cast("Services", services), lambda: None)
    queues = {
        each.topic_name: (each.read_queue_nums, each.write_queue_nums) for each in role._topics_of_log()
    }
    assert queues == {"few": (8, 8), "many": (9, 9), "%RETRY%G": (1, 1), "grown": (5, 2)}


def test_delayed_messages_are_delivered_by_the_next_master() -> None:
    async def scenario(group: Group) -> list[str]:
        await group.send("now")
        await group.send("later", DELAY="3")  # 10 s
        group.kill(await group.master())
        await group.master()
        async with asyncio.timeout(120):
            while "later" not in (bodies := _bodies(await _received(group))):
                await asyncio.sleep(1)
        return bodies

    assert play(scenario) == ["later", "now"]


def test_a_delayed_message_without_timely_quorum_is_stored_again_and_the_event_log_shows_it() -> None:
    async def scenario(group: Group) -> tuple[Counter[Kind], int]:
        master = await group.master()
        await group.send("later", DELAY="3")  # 10 s
        await asyncio.sleep(9.9)
        group.network.delay_s = 1.4  # in both directions, for longer than a put waits
        await asyncio.sleep(2.7)
        group.network.delay_s = 0.001
        await asyncio.sleep(20)
        reported = Counter(
            event.kind for event in group.events if event.topic == "T" and event.node == f"broker-a-{master}"
        )
        return reported, _bodies(await _received(group)).count("later")

    reported, copies = play(scenario)
    assert (reported[Kind.RETRY], reported[Kind.APPEND], copies) == (1, 2, 2)


def test_each_member_also_answers_two_ports_below() -> None:
    async def scenario(group: Group) -> list[int]:
        request = new_request(RequestCode.GET_BROKER_RUNTIME_INFO)
        ports = [group.config(id_).port - 2 for id_ in IDS]
        invoke = group.session.remoting.invoke
        return [(await invoke(Address("10.0.0.1", port), request, 3.0)).code for port in ports]

    assert play(scenario) == [ResponseCode.SUCCESS] * 3


def test_name_servers_report_the_master_of_the_latest_term() -> None:
    async def scenario(group: Group) -> tuple[str, dict[int, str]]:
        first = await group.master()
        await group.send("hello")
        group.kill(first)
        await group.send("again")
        await group.start(first)
        async with asyncio.timeout(60):
            while len(addresses := await _addresses(group)) < 3:
                await asyncio.sleep(1)
        services = group.brokers[await group.master()].services
        assert services is not None
        return str(services.address), addresses

    master, addresses = play(scenario)
    assert addresses[0] == master
    # The ids of the other two are their positions in the group plus one.
    numbers = {f"10.0.0.1:{10_911 + 10 * number}": number + 1 for number in range(3)}
    assert {address: id_ for id_, address in addresses.items() if id_} == {
        address: id_ for address, id_ in numbers.items() if address != master
    }


async def _addresses(group: Group, topic: str = "T") -> dict[int, str]:
    await group.session.routes.refresh(topic)
    replicas = group.session.routes.replicas(topic, "broker-a")
    return {id_: str(address) for id_, address in replicas.items()}


@pytest.mark.parametrize("preferred", IDS)
def test_a_preferred_member_becomes_the_master_while_messages_are_sent(preferred: str) -> None:
    async def scenario(group: Group) -> list[str]:
        sent: list[str] = []
        async with asyncio.timeout(120):
            while group.masters() != [preferred]:
                sent.append(f"m{len(sent)}")
                await group.send(sent[-1])
        sent.append("last")
        await group.send("last")
        assert group.masters() == [preferred]
        assert set(sent) <= set(_bodies(await _received(group)))
        return group.masters()

    assert play(scenario, preferred=(preferred,)) == [preferred]


def test_a_new_master_registers_at_once() -> None:
    async def scenario(group: Group) -> tuple[str, str]:
        services = group.brokers[await group.master()].services
        assert services is not None
        async with asyncio.timeout(5):  # the next periodic registration is due in 30 s
            while 0 not in (addresses := await _addresses(group, "TBW102")):
                await asyncio.sleep(0.1)
        return str(services.address), addresses[0]

    master, registered = play(scenario)
    assert registered == master


def test_the_master_of_an_earlier_term_does_not_replace_the_current_one() -> None:
    async def scenario(group: Group) -> tuple[str, str]:
        master = await group.master()
        await group.send("hello")
        old = group.brokers[next(id_ for id_ in IDS if id_ != master)]
        services, registrar = group.brokers[master].services, old._registrar
        assert services is not None
        assert old.services is not None
        assert registrar is not None
        old.services.config = old.services.config.with_role(leads=True)
        old.services.term = lambda: 0
        await registrar.register()
        return str(services.address), (await _addresses(group))[0]

    master, registered = play(scenario)
    assert registered == master


def test_a_change_of_the_configuration_does_not_undo_an_election(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(group: Group) -> bool:
        services = group.brokers[await group.master()].services
        assert services is not None

        async def keep(*_: object) -> None:  # it is deposed while the file is written
            services.config = services.config.with_role(leads=False)

        monkeypatch.setattr(ConfigFile, "keep", keep)
        request = new_request(RequestCode.UPDATE_BROKER_CONFIG, {}, b"traceOn=false")
        answer = await group.session.remoting.invoke(services.address, request, 30.0)
        assert answer.code == ResponseCode.SUCCESS
        assert not services.config.trace_on
        return services.is_slave

    assert play(scenario)


def test_a_member_that_lost_its_queues_rebuilds_them_from_committed_entries() -> None:
    async def scenario(group: Group) -> int:
        for number in range(30):
            await group.send(f"m{number}")
        follower = next(id_ for id_ in IDS if id_ != group.masters()[0])
        await asyncio.sleep(10)  # meanwhile a checkpoint is written, which contains the end of the queues
        end = group.brokers[follower].store.log_end
        group.kill(follower)
        disk = group.disks[follower]
        for topic in disk.names("/store/consumequeue"):
            for queue in disk.names(f"/store/consumequeue/{topic}"):
                for name in disk.names(f"/store/consumequeue/{topic}/{queue}"):
                    disk.remove(f"/store/consumequeue/{topic}/{queue}/{name}")
        store = (await group.start(follower)).store
        assert store.log_end == end
        return sum(store.max_offset("T", queue) for queue in range(store.topics()["T"]))

    assert play(scenario) == 30


def test_each_change_of_the_leader_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(group: Group) -> tuple[str, str]:
        first = await group.master()
        await group.stop(first)
        return first, await group.master()

    first, second = play(scenario)
    lines = [line for line in caplog.messages if "its group" in line]
    assert [line.partition(" in term ")[0] for line in lines][:3] == [
        f"broker-a-{first} leads its group",
        f"broker-a-{first} does not lead its group any more",
        f"broker-a-{second} leads its group",
    ]
