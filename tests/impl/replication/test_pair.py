"""Tests a master and a slave in a simulated world: statuses, faults, reads without the master.

Method: whole brokers, name server and client on simulated network, disks and time (`Pair`). Each test names
the invariant that it tests.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mqproof.conformance.hosts.simulated import MASTER, SLAVE, Cluster
from mqproof.conformance.subjects.pair import QUEUE, TOPIC, Pair, play
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import HaStatus, QueueLocks, SubscriptionGroup
from mqproof.impl.remoting.bodies import MessageQueue as Locked
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import RegisterBrokerResponse, TopicRequest
from mqproof.impl.remoting.message import DELAY, Message
from mqproof.impl.replication.config import LogCheck, Role
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.message_store import MessageStore
from mqproof.spec.events import Kind


async def send_all(pair: Pair, names: list[str]) -> list[str]:
    return [await pair.send(name) for name in names]


async def without_master(pair: Pair) -> None:
    """Kill the master and wait until clients have noticed."""
    pair.kill(MASTER)
    await asyncio.sleep(60)


def numbered(count: int, prefix: str = "m") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_repl_1_a_synchronous_master_answers_send_ok_only_when_the_slave_has_the_message() -> None:
    async def scenario(pair: Pair) -> tuple[list[str], list[str]]:
        await pair.followed()
        statuses = await send_all(pair, numbered(20))
        return statuses, pair.names_in(SLAVE)

    statuses, log = play(scenario)
    assert statuses == ["SEND_OK"] * 20
    assert log == numbered(20)


def test_repl_3_a_synchronous_master_without_a_slave_reports_that_at_once() -> None:
    async def scenario(pair: Pair) -> tuple[str, float, list[str]]:
        await pair.stop(SLAVE)
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        status = await pair.send("m0")
        return status, asyncio.get_running_loop().time() - began, pair.names_in(MASTER)

    status, seconds, log = play(scenario)
    assert status == "SLAVE_NOT_AVAILABLE"
    assert seconds < 1
    assert log == ["m0"]


def test_repl_3_a_silent_slave_is_waited_for_only_until_the_timeout() -> None:
    async def scenario(pair: Pair) -> tuple[list[str], float, list[str]]:
        await pair.followed()
        await pair.send("m0")
        pair.cut()
        loop = asyncio.get_running_loop()
        began = loop.time()
        statuses = await asyncio.gather(*(pair.send(name) for name in numbered(5, "late")))
        seconds = loop.time() - began
        pair.heal()
        await pair.followed()
        return list(statuses), seconds, [await pair.send("again")]

    statuses, seconds, again = play(scenario)
    assert statuses == ["FLUSH_SLAVE_TIMEOUT"] * 5
    assert 3 <= seconds < 4, "each has its own deadline"
    assert again == ["SEND_OK"]


def test_repl_3_a_send_that_does_not_wait_is_answered_without_a_slave() -> None:
    async def scenario(pair: Pair) -> str:
        await pair.stop(SLAVE)
        return await pair.send("m0", wait=False)

    assert play(scenario) == "SEND_OK"


def test_repl_3_an_asynchronous_master_does_not_wait_but_is_followed() -> None:
    async def scenario(pair: Pair) -> tuple[str, str, list[str]]:
        await pair.followed()
        pair.kill(SLAVE)
        alone = await pair.send("m0")
        await pair.start(SLAVE)
        together = await pair.send("m1")
        await pair.followed()
        return alone, together, pair.names_in(SLAVE)

    assert play(scenario, role=Role.ASYNC_MASTER) == ("SEND_OK", "SEND_OK", ["m0", "m1"])


def test_repl_3_a_slave_that_is_far_behind_is_not_waited_for() -> None:
    async def scenario(pair: Pair) -> list[str]:
        await pair.followed()
        await pair.send("m0")
        pair.cut()
        return await send_all(pair, numbered(4, "late"))

    assert play(scenario, fall_behind_bytes_max=580) == [
        "FLUSH_SLAVE_TIMEOUT",
        "FLUSH_SLAVE_TIMEOUT",
        "SLAVE_NOT_AVAILABLE",
        "SLAVE_NOT_AVAILABLE",
    ]


@pytest.mark.parametrize(
    ("in_sync", "status"), [(1, "SEND_OK"), (2, "FLUSH_SLAVE_TIMEOUT"), (3, "FLUSH_SLAVE_TIMEOUT")]
)
def test_repl_3_under_the_rule_of_5_x_a_master_waits_for_the_required_number(
    in_sync: int, status: str
) -> None:
    async def scenario(pair: Pair) -> str:
        await pair.stop(SLAVE)
        return await pair.send("m0")

    assert play(scenario, in_sync_replicas=in_sync) == status


@pytest.mark.parametrize(("in_sync", "status"), [(2, "SEND_OK"), (3, "FLUSH_SLAVE_TIMEOUT")])
def test_repl_3_under_the_rule_of_5_x_the_master_counts_itself(in_sync: int, status: str) -> None:
    async def scenario(pair: Pair) -> str:
        await pair.followed()
        return await pair.send("m0")

    assert play(scenario, in_sync_replicas=in_sync) == status


def test_repl_5_a_slave_that_is_killed_repeatedly_catches_up() -> None:
    async def scenario(pair: Pair) -> tuple[list[str], list[str]]:
        for number in range(60):
            await pair.send(f"m{number}", wait=False)
            if number % 7 == 3:
                (pair.kill if number % 2 else pair.crash)(SLAVE)
            if number % 7 == 5:
                await pair.start(SLAVE)
        if SLAVE not in pair.brokers:
            await pair.start(SLAVE)
        await pair.followed()
        return pair.names_in(MASTER), pair.names_in(SLAVE)

    master, slave = play(scenario)
    assert master == slave == numbered(60)


def test_repl_5_a_slave_reconnects_by_itself_after_a_network_failure() -> None:
    async def scenario(pair: Pair) -> list[str]:
        await pair.followed()
        pair.cut()
        for name in numbered(3):
            await pair.send(name, wait=False)
        await asyncio.sleep(60)
        assert pair.names_in(SLAVE) == []
        pair.heal()
        await pair.followed()
        return pair.names_in(SLAVE)

    assert play(scenario) == numbered(3)


def test_an_idle_connection_stays_open() -> None:
    async def scenario(pair: Pair) -> bool:
        await pair.followed()
        client = pair.slave.replicas.client
        assert client is not None
        before = client._receiver
        await asyncio.sleep(600)
        return client._receiver is before

    assert play(scenario)


def test_repl_2_a_master_that_lost_its_last_records_is_not_followed_and_that_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(pair: Pair) -> tuple[list[str], list[str], str]:
        await pair.followed()
        await send_all(pair, numbered(10))
        pair.kill(MASTER)
        pair.machines[MASTER].disk.lose_power()
        await pair.start(MASTER)
        for name in numbered(20, "new"):
            await pair.send(name, wait=False)
        client = pair.slave.replicas.client
        assert client is not None
        assert await pair.until(lambda: bool(client.refused))
        await asyncio.sleep(100)
        return pair.names_in(MASTER), pair.names_in(SLAVE), client.refused

    with caplog.at_level(logging.WARNING):
        master, slave, refused = play(scenario)
    assert master == numbered(20, "new")
    assert slave == numbered(10)
    assert "is not its master's" in refused
    assert sum("no longer follows" in record.message for record in caplog.records) == 1


def test_repl_2_a_slave_that_is_ahead_is_refused_and_the_master_logs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(pair: Pair) -> tuple[list[str], str]:
        await pair.followed()
        await send_all(pair, numbered(10))
        pair.lose_disk(MASTER)
        await pair.start(MASTER)
        await asyncio.sleep(100)
        return pair.names_in(SLAVE), await pair.send("m0")

    with caplog.at_level(logging.WARNING):
        log, status = play(scenario)
    assert log == numbered(10)
    assert status == "SLAVE_NOT_AVAILABLE"
    # The slave asks every second for 100 s; the master logs it once in 30 s.
    assert sum("lost its last records" in record.message for record in caplog.records) == 4


def test_repl_4_a_slave_adopts_no_tables_of_a_master_that_lost_its_disk() -> None:
    """Otherwise the slave would delete topics although it may have the last copy of their messages."""

    async def scenario(pair: Pair) -> tuple[int, int | None]:
        await pair.followed()
        await send_all(pair, numbered(5))
        await pair.consumer.commit(QUEUE, 2)
        await asyncio.sleep(30)
        pair.lose_disk(MASTER)
        await pair.start(MASTER)
        await asyncio.sleep(60)
        pair.kill(MASTER)
        await asyncio.sleep(60)
        found = await pair.consumer.pull(QUEUE, 0)
        return len(found.messages), await pair.consumer.committed(QUEUE)

    assert play(scenario) == (5, 2)


def test_as_shipped_the_loss_goes_unnoticed_and_is_acknowledged() -> None:
    async def scenario(pair: Pair) -> tuple[str, list[str], list[str]]:
        await pair.followed()
        await send_all(pair, ["m0", "m1"])
        pair.lose_power(MASTER)
        await pair.start(MASTER)
        await asyncio.sleep(30)
        status = await pair.send("n0")
        return status, pair.names_in(MASTER), pair.names_in(SLAVE)

    status, master, slave = play(scenario, log_check=LogCheck.AS_SHIPPED)
    assert status == "SEND_OK", "the slave's report of its own records passes for an acknowledgement"
    assert (master, slave) == (["n0"], ["m0", "m1"])


def test_repl_4_messages_of_the_slave_can_be_read_while_the_master_is_down() -> None:
    async def scenario(pair: Pair) -> tuple[list[bytes], str, int | None]:
        await pair.followed()
        await send_all(pair, numbered(40))
        await asyncio.sleep(30)  # the slave has fetched the topic
        await without_master(pair)
        found, offset = [], 0
        while offset < 40:
            result = await pair.consumer.pull(QUEUE, offset)
            found += [stored.message.body.rstrip(b".") for stored in result.messages]
            offset = result.next_offset
        with pytest.raises(ClientError, match="no master"):
            await pair.consumer.commit(QUEUE, offset)
        return found, await pair.send("refused"), await pair.consumer.committed(QUEUE)

    found, status, committed = play(scenario)
    assert found == [name.encode() for name in numbered(40)]
    assert status != "SEND_OK"
    assert committed == 0


def test_deliv_5_a_member_reports_its_offset_to_the_restarted_master_and_not_to_a_slave() -> None:
    """DELIV-5 OffsetMonotone."""

    async def scenario(pair: Pair) -> tuple[list[bytes], int | None, int | None]:
        await pair.followed()
        await send_all(pair, numbered(9))
        await pair.consumer.commit(QUEUE, 2)
        await asyncio.sleep(30)
        heard: list[bytes] = []
        listener = lambda messages: heard.extend(each.body.rstrip(b".") for each in messages)  # noqa: E731
        pair.kill(MASTER)
        async with PushConsumer(pair.client, "G", listener) as consumer:
            await consumer.subscribe(TOPIC)
            await asyncio.sleep(60)
            assert pair.slave.services is not None
            slaves = pair.slave.services.offsets.query("G", TOPIC, 0)
            await pair.start(MASTER)
            await asyncio.sleep(60)
            services = pair.brokers[MASTER].services
            assert services is not None
            return heard, slaves, services.offsets.query("G", TOPIC, 0)

    heard, slaves, masters = play(scenario)
    assert sorted(heard) == [name.encode() for name in numbered(9)[2:]]
    assert (slaves, masters) == (2, 9)


def test_a_slave_neither_grants_nor_releases_locks() -> None:
    async def scenario(pair: Pair) -> tuple[list[int], str, set[MessageQueue]]:
        await pair.followed()
        await pair.send("m0")
        await asyncio.sleep(30)
        assert pair.slave.services is not None
        body = java_json.write(QueueLocks("c1", "G", [Locked("broker-a", 0, TOPIC)]), standard=True)
        codes = []
        for code in (RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ):
            request = new_request(code, body=body)
            answer = await pair.client.remoting.invoke(pair.slave.services.address, request, 5)
            codes.append(answer.code)
        pair.kill(MASTER)
        await asyncio.sleep(60)
        with pytest.raises(ClientError) as caught:
            await pair.released.lock([QUEUE])
        await pair.start(MASTER)
        await asyncio.sleep(60)
        return codes, str(caught.value), await pair.consumer._calls.lock([QUEUE])

    codes, refusal, locked = play(scenario)
    assert codes == [ResponseCode.SERVICE_NOT_AVAILABLE] * 2
    assert "this broker is a slave" in refusal
    assert locked == {QUEUE}


@pytest.mark.parametrize(
    ("offset", "status"), [(3, "NO_NEW_MESSAGE"), (4, "NO_MATCHED_MESSAGE"), (100, "NO_MATCHED_MESSAGE")]
)
def test_a_slave_corrects_no_offset_and_directs_consumers_to_the_master(offset: int, status: str) -> None:
    """The slave cannot know the end of a queue, because its master may have more messages."""

    async def scenario(pair: Pair) -> tuple[str, int, int]:
        await pair.followed()
        await send_all(pair, numbered(3))
        await asyncio.sleep(30)
        await without_master(pair)
        assert pair.slave.services is not None
        await pair.slave.services.groups.put(SubscriptionGroup(group_name="G", broker_id=3))
        result = await pair.consumer.pull(QUEUE, offset)
        return result.status, result.next_offset, pair.consumer._calls._suggested[QUEUE]

    assert play(scenario) == (status, offset, 3 if status == "NO_MATCHED_MESSAGE" else 0)


def test_a_consumer_ahead_of_the_slave_asks_at_intervals() -> None:
    async def scenario(pair: Pair) -> int:
        await pair.followed()
        await send_all(pair, numbered(3))
        await pair.consumer.commit(QUEUE, 7)
        await asyncio.sleep(30)
        pair.kill(MASTER)
        async with PushConsumer(pair.client, "G", lambda _: None) as consumer:
            await consumer.subscribe(TOPIC)
            await asyncio.sleep(60)
            assert pair.slave.services is not None
            missed = pair.slave.services.statistics.missed
            before = missed.total
            await asyncio.sleep(60)
            return missed.total - before

    assert 30 <= play(scenario) <= 90


def test_a_consumer_at_the_slave_continues_past_what_the_master_has_not_synced() -> None:
    """Under SYNC_FLUSH the slave may show a record before its master does."""

    async def scenario(pair: Pair) -> tuple[list[str], int, list[str]]:
        await pair.followed()
        await send_all(pair, numbered(3))
        store = pair.brokers[MASTER].store
        assert isinstance(store, MessageStore)
        offload, synced = store._flusher._offload, asyncio.Event()

        async def late(function: Callable[[], Any]) -> Any:
            await synced.wait()
            return await offload(function)

        store._flusher._offload = late
        await pair.send("m3", wait=False)
        assert await pair.until(lambda: pair.slave.store.max_offset(TOPIC, 0) == 4)
        assert store.max_offset(TOPIC, 0) == 3
        held = asyncio.create_task(pair.consumer.pull(QUEUE, 4, hold_ms=30_000))
        await asyncio.sleep(10)
        at_once = await pair.consumer.pull(QUEUE, 4)
        beyond = await pair.consumer.pull(QUEUE, 5)
        synced.set()
        await pair.send("m4", wait=False)
        came = await held
        return [at_once.status, beyond.status], at_once.next_offset, [one.message_id for one in came.messages]

    (at_once, beyond), next_offset, came = play(scenario, flush=FlushMode.SYNC_FLUSH)
    assert (at_once, next_offset) == ("NO_NEW_MESSAGE", 4)
    assert beyond == "OFFSET_ILLEGAL"
    assert came == ["m4"]


def test_offsets_committed_to_the_slave_reach_the_master_and_never_decrease() -> None:
    async def scenario(pair: Pair) -> tuple[list[int | None], int | None]:
        await pair.followed()
        await send_all(pair, numbered(9))
        await pair.consumer.commit(QUEUE, 2)
        await asyncio.sleep(30)
        await without_master(pair)
        await pair.released.commit(QUEUE, 7)
        await pair.start(MASTER)
        seen = []
        for _ in range(60):
            offsets = pair.slave.services.offsets if pair.slave.services else None
            seen.append(offsets.query("G", TOPIC, 0) if offsets else None)
            await asyncio.sleep(1)
        assert pair.brokers[MASTER].services is not None
        assert pair.slave.services is not None
        assert pair.slave.services.offsets.unsent == set(), "it is sent once"
        return seen, pair.brokers[MASTER].services.offsets.query("G", TOPIC, 0)

    seen, masters = play(scenario)
    assert set(seen) == {7}
    assert masters == 7


def test_a_group_that_is_reset_at_the_master_is_reset_at_the_slave() -> None:
    async def scenario(pair: Pair) -> list[int | None]:
        await pair.followed()
        await send_all(pair, numbered(9))
        seen = []
        for offset in (7, 2):
            await pair.consumer.commit(QUEUE, offset)
            await asyncio.sleep(30)
            assert pair.slave.services is not None
            seen.append(pair.slave.services.offsets.query("G", TOPIC, 0))
        return seen

    assert play(scenario) == [7, 2]


def test_a_slave_has_the_progress_of_delayed_messages_and_delivers_none() -> None:
    async def scenario(pair: Pair) -> tuple[dict[int, int], int, int]:
        await pair.followed()
        await pair.producer.send(Message(TOPIC, b"late", {DELAY: "1"}))
        await asyncio.sleep(30)
        assert pair.slave.services is not None
        reported = pair.slave.services.delays.offsets().offset_table
        return (
            reported,
            pair.brokers[MASTER].store.max_offset(TOPIC, 0),
            pair.slave.store.max_offset(TOPIC, 0),
        )

    assert play(scenario) == ({1: 1}, 1, 1)


def test_a_slave_has_the_topics_groups_and_offsets_of_its_master() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.followed()
        await pair.send("m0")
        await pair.consumer.commit(QUEUE, 1)
        await asyncio.sleep(30)
        master, slave = pair.brokers[MASTER].services, pair.slave.services
        assert master is not None
        assert slave is not None
        assert slave.topics.snapshot() == master.topics.snapshot()
        assert slave.groups.snapshot() == master.groups.snapshot()
        assert slave.offsets.query("G", TOPIC, 0) == 1
        await pair.stop(SLAVE)
        await pair.stop(MASTER)
        await pair.start(SLAVE)
        assert pair.slave.services is not None
        assert pair.slave.services.offsets.query("G", TOPIC, 0) == 1
        assert pair.slave.services.topics.get(TOPIC)

    play(scenario)


async def delete_topic(pair: Pair) -> None:
    assert pair.brokers[MASTER].services is not None
    request = new_request(RequestCode.DELETE_TOPIC_IN_BROKER, headers.write(TopicRequest(TOPIC)))
    answer = await pair.client.remoting.invoke(pair.brokers[MASTER].services.address, request, 10.0)
    assert answer.code == ResponseCode.SUCCESS


def test_a_slave_deletes_a_topic_that_its_master_deleted_with_queues_and_offsets() -> None:
    """The topic is recreated before the slave learns of the deletion."""

    other = replace(QUEUE, queue_id=1)

    async def scenario(pair: Pair) -> tuple[int, int | None, list[bytes]]:
        await pair.followed()
        for body in (b"old 0", b"old 1"):
            await pair.producer.send(Message(TOPIC, body), QUEUE)
        await pair.consumer.commit(QUEUE, 2)
        await asyncio.sleep(30)
        slave = pair.slave
        assert slave.services is not None
        assert (slave.store.max_offset(TOPIC, 0), slave.services.offsets.query("G", TOPIC, 0)) == (2, 2)
        await delete_topic(pair)
        await pair.producer.send(Message(TOPIC, b"new"), other)
        await asyncio.sleep(30)
        await without_master(pair)
        found = (await pair.consumer.pull(other, 0)).messages
        offset = slave.services.offsets.query("G", TOPIC, 0)
        return slave.store.max_offset(TOPIC, 0), offset, [each.message.body for each in found]

    assert play(scenario, queues=2) == (0, None, [b"new"])


def test_the_restarted_slave_of_a_missing_master_serves_reads() -> None:
    async def scenario(pair: Pair) -> int:
        await pair.followed()
        await send_all(pair, numbered(5))
        await asyncio.sleep(30)
        pair.kill(MASTER)
        pair.kill(SLAVE)
        await pair.start(SLAVE)
        await asyncio.sleep(60)
        return len((await pair.consumer.pull(QUEUE, 0)).messages)

    assert play(scenario) == 5


def test_a_consumer_reads_old_messages_from_the_slave_if_allowed() -> None:
    async def scenario(pair: Pair) -> list[int]:
        await pair.followed()
        await send_all(pair, numbered(3))
        await asyncio.sleep(30)
        suggested = []
        for node in (MASTER, SLAVE):
            services = pair.brokers[node].services
            assert services is not None
            object.__setattr__(services.runtime, "memory_bytes", 300)  # the newest record only
        for _ in range(2):
            await pair.consumer.pull(QUEUE, 0)
            suggested.append(pair.consumer._calls._suggested[QUEUE])
        return suggested

    async def readable(pair: Pair) -> list[int]:
        for node in (MASTER, SLAVE):
            services = pair.brokers[node].services
            assert services is not None
            services.config = replace(services.config, slave_readable=True)
        return await scenario(pair)

    assert play(scenario) == [0, 0]
    assert play(readable)[0] == 1


@pytest.mark.parametrize("flush", FlushMode)
def test_the_event_log_has_transfers_and_acknowledgements(flush: FlushMode) -> None:
    async def scenario(pair: Pair) -> list[tuple[Kind, int | None]]:
        await pair.followed()
        await send_all(pair, numbered(2))
        kinds = (Kind.HA_TRANSFER, Kind.HA_ACK)
        return [(event.kind, event.commit_offset) for event in pair.events if event.kind in kinds]

    reported = play(scenario, flush=flush)
    positions = [position or 0 for kind, position in reported if kind is Kind.HA_ACK]
    assert positions == sorted(positions)
    for number, (kind, position) in enumerate(reported):
        if kind is Kind.HA_ACK and position:
            assert any(
                before is Kind.HA_TRANSFER and (sent or 0) >= position for before, sent in reported[:number]
            )
    assert [kind for kind, _ in reported].count(Kind.HA_TRANSFER) == 2


def test_an_offset_reported_by_a_slave_never_lowers_the_masters() -> None:
    async def scenario(pair: Pair) -> list[int | None]:
        await pair.followed()
        await send_all(pair, numbered(9))
        services = pair.brokers[MASTER].services
        assert services is not None
        found = []
        for offset, only_forward in ((7, None), (5, True), (8, True), (6, None)):
            header = headers.UpdateOffsetRequest("G", TOPIC, 0, offset, only_forward)
            request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header))
            answer = await pair.client.remoting.invoke(services.address, request, 5)
            assert answer.code == ResponseCode.SUCCESS
            found.append(services.offsets.query("G", TOPIC, 0))
        return found

    assert play(scenario) == [7, 7, 8, 6]


def test_a_slave_refuses_direct_puts() -> None:
    """A slave accepts records only from its master, because its log is a copy of the master's."""

    async def scenario(pair: Pair) -> tuple[str, str, int]:
        await pair.followed()
        await pair.send("m0")
        await asyncio.sleep(30)
        end = pair.slave.store.log_end
        assert pair.slave.services is not None
        result = await pair.slave.store.put(Message(TOPIC, b"x", store_host=pair.slave.services.address))
        assert pair.slave.store.log_end == end == pair.brokers[MASTER].store.log_end
        return result.status, result.reason, result.queue_offset

    assert play(scenario) == ("SERVICE_NOT_AVAILABLE", "this broker is a slave", -1)


def test_a_slave_with_a_configured_master_follows_no_other() -> None:
    async def scenario(pair: Pair) -> tuple[Address | None, Address]:
        master = Address(pair.machines[MASTER].host, 10912)
        reported = replace(pair.config(SLAVE).replication, ha_master=master)
        slave = replace(pair.config(SLAVE), replication=reported)
        pair.config = lambda node: slave if node == SLAVE else Cluster.config(pair, node)  # type: ignore[method-assign]
        await pair.stop(SLAVE)
        await pair.start(SLAVE)
        await pair.followed()
        pair.slave.replicas.learned(RegisterBrokerResponse("10.9.9.9:10912", "10.9.9.9:10911"))
        client = pair.slave.replicas.client  # checked before the name server can report anything else
        return client.master if client else None, master

    followed, reported = play(scenario)
    assert followed == reported


def test_a_slave_that_was_started_before_its_master_is_ready_two_seconds_after_it() -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[str, float]:
        async with Pair(loop) as pair:
            await pair.stop(SLAVE)
            await pair.stop(MASTER)
            await pair.start(SLAVE)
            await asyncio.sleep(47)
            await pair.start(MASTER)
            started_s = asyncio.get_running_loop().time()
            while (status := await pair.send("m")) != "SEND_OK":
                assert asyncio.get_running_loop().time() < started_s + 60, status
                await asyncio.sleep(0.05)
            return status, asyncio.get_running_loop().time() - started_s

    status, seconds = run_simulated(main(), loop)
    assert status == "SEND_OK"
    assert seconds < 2


def test_the_log_says_once_that_a_slave_follows_and_once_that_it_has_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(pair: Pair) -> None:
        await pair.followed()
        await send_all(pair, numbered(3))
        await asyncio.sleep(30)
        await pair.stop(SLAVE)
        await asyncio.sleep(1)

    play(scenario)
    lines = [line for line in caplog.messages if "slave" in line and "port" not in line]
    assert len(lines) == 3, lines
    assert all(any(words in line for line in lines) for words in ("this slave follows", "has left"))


def test_a_slave_whose_disk_was_full_follows_again_without_a_restart() -> None:
    async def scenario(pair: Pair) -> tuple[list[str], list[str], list[str]]:
        await pair.followed()
        disk = pair.machines[SLAVE].disk
        disk.room = Space(100, 1)
        await asyncio.sleep(15)
        await pair.send("m0")
        await asyncio.sleep(15)
        behind = pair.names_in(SLAVE)
        disk.room = Space(100, 50)
        await asyncio.sleep(60)
        await pair.send("m1")
        return behind, pair.names_in(SLAVE), [pair.slave.store.failure]

    assert play(scenario) == ([], ["m0", "m1"], [""])


async def ha_status(pair: Pair, node: str) -> HaStatus:
    services = pair.brokers[node].services
    assert services is not None
    request = new_request(RequestCode.GET_BROKER_HA_STATUS)
    answer = await pair.client.remoting.invoke(services.address, request, 5)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return java_json.read(HaStatus, answer.body)


def test_master_and_slave_report_their_state_of_replication() -> None:
    async def scenario(pair: Pair) -> tuple[HaStatus, HaStatus, HaStatus, HaStatus]:
        await pair.followed()
        await send_all(pair, numbered(20))
        await asyncio.sleep(11)  # a rate needs ten seconds
        master, slave = await ha_status(pair, MASTER), await ha_status(pair, SLAVE)
        pair.kill(SLAVE)
        await asyncio.sleep(5)
        alone = await ha_status(pair, MASTER)
        await pair.start(SLAVE)
        pair.kill(MASTER)
        await asyncio.sleep(60)
        return master, slave, alone, await ha_status(pair, SLAVE)

    master, slave, alone, without_master = play(scenario)
    assert (master.master, slave.master) == (True, False)
    (connection,) = master.ha_connection_info
    end = master.master_commit_log_max_offset
    assert end > 0
    assert (connection.slave_ack_offset, connection.transfer_from_where, connection.diff) == (end, end, 0)
    assert connection.in_sync
    assert connection.transferred_byte_in_second > 0
    assert master.in_sync_slave_nums == 1
    client = slave.ha_client_runtime_info
    assert (client.max_offset, client.is_activated) == (end, True)
    assert client.master_addr is not None
    assert client.last_read_timestamp > 0 < client.last_write_timestamp
    assert alone.ha_connection_info == []
    assert alone.in_sync_slave_nums == 0
    assert not without_master.ha_client_runtime_info.is_activated
    assert without_master.ha_client_runtime_info.last_read_timestamp == 0
