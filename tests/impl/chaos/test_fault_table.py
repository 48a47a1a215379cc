"""Each fault changes what a client observes, in a scenario in which nothing else happens.

A scenario runs twice: with the fault, and without. The first run must have the expected result, and the
second one must not. So a fault that does nothing fails its test, and so does a scenario that cannot tell.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import pytest

from mqproof.impl.chaos.fault_table import ANY_OF, FAULTS, FROM_BROKER, POINTS, Point
from mqproof.impl.chaos.group_changes import GHOST
from mqproof.impl.chaos.plan import Plan
from mqproof.impl.chaos.proxy import ChaosConfig, ChaosProxy
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import LockedQueues, MessageQueue, QueueLocks, TopicRoute
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import SYS_TRANSACTION_PREPARED
from mqproof.spec.catalogue import catalogue
from tests.impl.chaos.faulted import GROUP, QUEUES, TOPIC, Faulted, Stub, outcome, plan
from tests.impl.world import World, play

Scenario = Callable[[Faulted], Awaitable[object]]


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _sent(it: Faulted) -> object:
    answered = await outcome(it.send())
    await asyncio.sleep(0.1)
    return answered, await it.stored()


async def _send_takes(it: Faulted) -> object:
    began = _now()
    return await outcome(it.send()), await it.stored(), _now() - began >= 0.02


async def _pull_answered(it: Faulted) -> object:
    await _fill(it, 3)
    return await outcome(it.pull())


async def _pull_takes(it: Faulted) -> object:
    await _fill(it, 3)
    began = _now()
    return len(await _pulled(it)), _now() - began >= 0.02


async def _pull_again(it: Faulted) -> object:
    await _fill(it, 3)
    answer = await it.pull()
    return answer.code, answer.fields["nextBeginOffset"]


async def _pulled_offsets(it: Faulted) -> object:
    await _fill(it, 3)
    return await _pulled(it)


async def _pulled_twice(it: Faulted) -> object:
    await _fill(it, 1)
    first = await _pulled(it)
    await _fill(it, 1)
    return [*first, *await _pulled(it, 1)]


async def _order_of_queues(it: Faulted) -> object:
    for queue in range(QUEUES):
        await _fill(it, 1, queue)
    done: list[int] = []

    async def pull(queue: int) -> None:
        await it.pull(queue)
        done.append(queue)

    first = asyncio.create_task(pull(0))
    await asyncio.sleep(0.01)
    await asyncio.gather(first, *(pull(queue) for queue in range(1, QUEUES)))
    return done


async def _suggested(it: Faulted) -> object:
    await _fill(it, 1)
    return (await it.pull()).fields["suggestWhichBrokerId"]


async def _committed(it: Faulted) -> object:
    await _fill(it, 9)
    return await outcome(it.commit(5)), await it.committed()


async def _committed_oneway(it: Faulted) -> object:
    await _fill(it, 9)
    header = headers.UpdateOffsetRequest(GROUP, TOPIC, 0, 5)
    request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header), oneway=True)
    await it.client.send_oneway(it.broker, request)
    await asyncio.sleep(0.1)
    return await it.committed()


async def _query(it: Faulted) -> object:
    await _fill(it, 9)
    await it.commit(5)
    header = headers.QueryOffsetRequest(GROUP, TOPIC, 0)
    answer = await it.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    return answer.code, answer.fields.get("offset")


async def _offset_after_crash(it: Faulted) -> object:
    await _fill(it, 9)
    await it.commit(3)
    await asyncio.sleep(6)
    await it.commit(5)
    third = await outcome(it.commit(7))
    await asyncio.sleep(2)
    return third, await it.committed()


async def _ghost(it: Faulted) -> object:
    await it.join()
    await asyncio.sleep(0.1)
    it.received.clear()
    during = await it.members()
    await asyncio.sleep(5)
    return GHOST in during, GHOST in await it.members(), it.received.count(40)


async def _unknown_member(it: Faulted) -> object:
    await it.join("c1")
    other = Faulted(it.world, Plan())
    async with other:
        await other.join("c2")
        await asyncio.sleep(0.1)
        it.received.clear()
        during = len(await it.members())
        await asyncio.sleep(5)
        return during, len(await it.members()), 40 in it.received


async def _notifications(it: Faulted) -> object:
    await it.join()
    await asyncio.sleep(0.1)
    await it.members()
    it.received.clear()
    await asyncio.sleep(5)
    return it.received.count(40), await it.members()


async def _heartbeat(it: Faulted) -> object:
    return await outcome(it.join()), await it.members()


async def _locked(it: Faulted) -> object:
    await _fill(it, 1)
    locks = QueueLocks("c1", GROUP, [MessageQueue("broker-a", 0, TOPIC)])
    answer = await it.ask(RequestCode.LOCK_BATCH_MQ, body=java_json.write(locks, standard=True))
    return len(java_json.read(LockedQueues, answer.body).lock_ok_mq_set)


async def _sent_back(it: Faulted) -> object:
    await it.join()
    await _fill(it, 1)
    header = headers.SendBackRequest(0, GROUP, 3, "m0", TOPIC)
    answered = await outcome(it.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header))
    return answered, await it.stored(2, "SCHEDULE_TOPIC_XXXX")


async def _transaction(it: Faulted) -> object:
    answer = await it.send(flags=SYS_TRANSACTION_PREPARED)
    commit_offset = int(answer.fields["msgId"][16:], 16)
    header = headers.EndTransactionRequest("P", int(answer.fields["queueOffset"]), commit_offset, 8, "m")
    request = new_request(RequestCode.END_TRANSACTION, headers.write(header), oneway=True)
    await it.client.send_oneway(it.broker, request)
    await asyncio.sleep(0.1)
    return await it.stored()


async def _route(it: Faulted) -> object:
    await it.send()
    return await outcome(it.route())


async def _route_after_change(it: Faulted) -> object:
    await it.send()
    await it.route()
    header = headers.UpdateTopicRequest(TOPIC, "TBW102", 8, 8, 6)
    await it.world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    await asyncio.sleep(1)
    (data,) = java_json.read(TopicRoute, (await it.route()).body).queue_datas
    return data.read_queue_nums


async def _restarted(it: Faulted) -> object:
    first = await outcome(it.send("m1"))
    during = await outcome(it.send("m2"))
    await asyncio.sleep(10)
    return first, during, await outcome(it.send("m3")), await it.stored()


async def _switched(it: Faulted) -> object:
    before = it.broker
    lost = await outcome(it.send("m1"))
    await asyncio.sleep(10)
    old = await outcome(it.send("m2"))
    (it.broker,) = it.proxy.brokers.values()
    third = await outcome(it.send("m3"))
    (data,) = java_json.read(TopicRoute, (await it.route()).body).broker_datas
    return lost, old, third, before == it.broker, data.broker_addrs[0] == str(it.broker)


async def _second_send(it: Faulted) -> object:
    first = await it.send("m1")
    second = await it.send("m2")
    return first.fields["queueOffset"] == second.fields["queueOffset"], await it.stored()


async def _fill(it: Faulted, count: int, queue: int = 0) -> None:
    """Store messages at the broker itself, without the proxy."""
    through, it.broker = it.broker, it.world.broker_address
    for number in range(count):
        await it.send(f"m{queue}-{number}", queue)
    it.broker = through


async def _pulled(it: Faulted, offset: int = 0) -> list[int]:
    """Return the offsets of the pulled messages."""
    body, at, found = (await it.pull(0, offset)).body, 0, list[int]()
    while at < len(body):
        found.append(int.from_bytes(body[at + 20 : at + 28], "big"))
        at += int.from_bytes(body[at : at + 4], "big")
    return found


CASES: Final[dict[str, tuple[Scenario, object, dict[str, Any]]]] = {
    "send_answer_lost": (_sent, ("lost", 1), {}),
    "send_answer_late": (_send_takes, ("SUCCESS", 1, True), {}),
    "send_answer_delayed": (_send_takes, ("SUCCESS", 1, True), {}),
    "send_request_lost": (_sent, ("lost", 0), {}),
    "send_stored_twice": (_sent, ("SUCCESS", 2), {}),
    "flush_disk_timeout": (_sent, ("FLUSH_DISK_TIMEOUT", 1), {}),
    "flush_slave_timeout": (_sent, ("FLUSH_SLAVE_TIMEOUT", 1), {}),
    "slave_not_available": (_sent, ("SLAVE_NOT_AVAILABLE", 1), {}),
    "send_busy": (_sent, ("SYSTEM_BUSY", 0), {}),
    "send_unavailable": (_sent, ("SERVICE_NOT_AVAILABLE", 0), {}),
    "pull_answer_lost": (_pull_answered, "lost", {}),
    "pull_delayed": (_pull_takes, (3, True), {}),
    "queues_reordered": (_order_of_queues, [1, 2, 0, 3], {"limit": 1}),
    "pull_retry": (_pull_again, (20, "0"), {}),
    "pull_fewer": (_pulled_offsets, [0], {}),
    "pull_busy": (_pull_answered, "SYSTEM_BUSY", {}),
    "slave_suggested": (_suggested, "1", {}),
    "commit_lost": (_committed, ("SYSTEM_BUSY", 0), {}),
    "offset_query_busy": (_query, (2, None), {}),
    "offsets_go_back": (_offset_after_crash, ("lost", 3), {"at": [3]}),
    "member_joins": (_ghost, (True, False, 2), {"at": [1]}),
    "member_unknown": (_unknown_member, (1, 2, True), {"at": [1]}),
    "rebalance_storm": (_notifications, (7, ["c1"]), {"at": [1]}),
    "heartbeat_busy": (_heartbeat, ("SYSTEM_BUSY", []), {}),
    "lock_refused": (_locked, 0, {}),
    "send_back_busy": (_sent_back, ("SYSTEM_BUSY", 0), {}),
    "send_back_answer_lost": (_sent_back, ("lost", 1), {}),
    "end_of_transaction_lost": (_transaction, 0, {}),
    "route_missing": (_route, "TOPIC_NOT_EXIST", {}),
    "route_stale": (_route_after_change, 4, {}),
    "broker_restart": (_restarted, ("lost", "refused", "SUCCESS", 1), {"at": [1], "delay_ms": 3000}),
    "broker_switch": (_switched, ("lost", "refused", "SUCCESS", False, True), {"at": [1]}),
    "connection_cut": (_sent, ("lost", 0), {}),
    "sent_not_stored": (_second_send, (True, 1), {}),
    "message_skipped": (_pulled_offsets, [0, 2], {}),
    "queue_reordered": (_pulled_offsets, [2, 1, 0], {}),
    "delivered_again": (_pulled_twice, [0, 0, 1], {}),
    "offset_forgotten": (_query, (0, "0"), {}),
}
"""For each fault that acts on requests of clients: the scenario, its result with the fault, and the plan."""


def observed(scenario: Scenario, chosen: Plan) -> object:
    async def run(world: World) -> object:
        async with Faulted(world, chosen) as it:
            return await scenario(it)

    return play(run)


@pytest.mark.parametrize("name", CASES)
def test_a_client_observes_the_fault(name: str) -> None:
    scenario, expected, options = CASES[name]
    assert observed(scenario, plan(name, **options)) == expected
    assert observed(scenario, plan()) != expected


def test_a_commit_without_an_answer_can_be_lost_too() -> None:
    assert observed(_committed_oneway, plan("commit_lost")) == 0
    assert observed(_committed_oneway, plan()) == 5


def pushed(code: int, chosen: Plan) -> tuple[list[int], list[float]]:
    """Return the requests that a client received from a stub, and when the stub got an answer."""

    async def run(world: World) -> tuple[list[int], list[float]]:
        async with Stub(world.runtime, code) as stub:
            world.namesrv_address = stub.address
            it = Faulted(world, chosen)
            it.name_server = await it.proxy.start()
            it.broker = it.proxy.brokers[str(stub.address)]
            await it.join()
            await asyncio.sleep(30)
            await it.__aexit__()
            return it.received, stub.answers

    return play(run)


@pytest.mark.parametrize(("name", "code", "count"), [("notification_lost", 40, 0), ("check_repeated", 39, 2)])
def test_a_client_observes_the_fault_in_a_request_of_a_broker(name: str, code: int, count: int) -> None:
    assert pushed(code, plan(name))[0] == [code] * count
    assert pushed(code, plan())[0] == [code]


def test_a_reply_can_be_late() -> None:
    assert pushed(326, plan("reply_late", delay_ms=20_000))[1][0] >= 20
    assert pushed(326, plan())[1][0] < 20


def test_a_route_can_lack_one_of_its_brokers() -> None:
    async def run(world: World, chosen: Plan) -> tuple[int, int]:
        async with Stub(world.runtime, 40) as stub:
            proxy = ChaosProxy(ChaosConfig(stub.address), chosen, world.runtime)
            it = Faulted(world, Plan())
            it.proxy, it.name_server = proxy, await proxy.start()
            route = java_json.read(TopicRoute, (await it.route()).body)
            await it.__aexit__()
            return len(route.broker_datas), len(route.queue_datas)

    assert play(lambda world: run(world, plan("route_partial"))) == (1, 1)
    assert play(lambda world: run(world, plan())) == (2, 2)


def test_every_fault_is_observed_by_a_test() -> None:
    tested = {*CASES, "notification_lost", "check_repeated", "reply_late", "route_partial"}
    assert tested == FAULTS.keys()


def test_every_fault_names_the_catalogue_entries_that_permit_it_or_that_it_breaks() -> None:
    known = catalogue()
    for fault in FAULTS.values():
        ids = fault.permitted_by or fault.breaks
        assert ids, fault.name
        assert not (fault.permitted_by and fault.breaks), fault.name
        assert set(ids) <= known.keys(), fault.name
        assert 0 < fault.probability < 1, fault.name
    assert sum(fault.is_lawful for fault in FAULTS.values()) >= 20


def test_every_point_belongs_to_a_request_code() -> None:
    assert {*POINTS.values(), Point.ANY} == set(Point)
    assert set(POINTS.values()) >= ANY_OF | FROM_BROKER
    assert {fault.point for fault in FAULTS.values()} == set(Point)
    assert msgspec.json.encode([fault.effect for fault in FAULTS.values()])


def test_a_stale_route_is_at_most_a_minute_old() -> None:
    async def later(it: Faulted) -> object:
        await it.send()
        await it.route()
        header = headers.UpdateTopicRequest(TOPIC, "TBW102", 8, 8, 6)
        await it.world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        await asyncio.sleep(61)
        await it.route()
        (data,) = java_json.read(TopicRoute, (await it.route()).body).queue_datas
        return data.read_queue_nums

    assert observed(later, plan("route_stale")) == 8
