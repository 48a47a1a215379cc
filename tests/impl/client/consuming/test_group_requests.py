"""Tests the requests of a consumer to brokers: the choice of the replica, and the use of answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import BrokerData, LockedQueues, QueueData, TopicRoute
from mqproof.impl.remoting.bodies import MessageQueue as NamedQueue
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PullResponse
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

T = TypeVar("T")

QUEUE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


class Site:
    """A master and its slaves with scripted answers. Pulls are answered with a suggested broker."""

    def __init__(self) -> None:
        self.suggested = 0
        self.pulled_at: list[int] = []
        self.asked: list[tuple[int, int]] = []
        """Codes of the other requests, and the ids of the brokers that were asked."""
        self.routes_asked = 0
        self.answers: dict[int, Command | bytes] = {}
        self.servers: dict[int, RemotingServer] = {}
        self.addresses: dict[int, str] = {}

    def processors(self, broker_id: int) -> dict[int, object]:
        def pull(request: Command, channel: Channel) -> Reply:
            self.pulled_at.append(broker_id)
            return request.answer(19, headers.write(PullResponse(self.suggested, 0, 0, 0)))

        def route(request: Command, channel: Channel) -> Reply:
            self.routes_asked += 1
            data = BrokerData(dict(self.addresses), "b", "C")
            return request.answer(0, body=java_json.write(TopicRoute([data], [QueueData("b", 6, 2, 0, 2)])))

        def other(request: Command, channel: Channel) -> Reply:
            answer = self.answers[request.code]
            self.asked.append((request.code, broker_id))
            return (
                request.answer(0, body=answer)
                if isinstance(answer, bytes)
                else request.answer(answer.code, answer.fields)
            )

        codes = (
            RequestCode.UNLOCK_BATCH_MQ,
            RequestCode.QUERY_CONSUMER_OFFSET,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            RequestCode.LOCK_BATCH_MQ,
            RequestCode.GET_MAX_OFFSET,
        )
        return {
            RequestCode.PULL_MESSAGE: pull,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
            **dict.fromkeys(codes, other),
        }


def with_site(scenario: Callable[[Site, GroupRequests], Awaitable[T]], *broker_ids: int) -> T:
    loop = SimulatedLoop()

    async def main() -> T:
        network, site = SimulatedNetwork(), Site()
        for broker_id in broker_ids:
            server = RemotingServer(network, handler(site.processors(broker_id)))  # type: ignore[arg-type]  # of our own making
            site.addresses[broker_id] = str(await server.start("127.0.0.1", 0))
            site.servers[broker_id] = server
        name_server = Address.parse(site.addresses[min(broker_ids)])  # it answers route queries too
        session = Session([name_server], simulated(loop, network))
        try:
            return await scenario(site, GroupRequests(session, "G"))
        finally:
            await session.stop()
            for server in site.servers.values():
                await server.stop()

    return run_simulated(main(), loop)


@pytest.mark.parametrize(
    ("there", "suggested", "second"),
    [((0, 1), 0, 0), ((0, 1), 1, 1), ((0, 2), 1, 2), ((0, 3), 1, 0), ((1, 2), 0, 1)],
)
def test_a_pull_goes_to_the_suggested_broker_or_the_next_slave_or_any_broker(
    there: tuple[int, ...], suggested: int, second: int
) -> None:
    async def scenario(site: Site, calls: GroupRequests) -> list[int]:
        site.suggested = suggested
        await calls.pull(QUEUE, 0)
        await calls.pull(QUEUE, 0)
        await calls.pull(OTHER, 0)  # the answer says nothing about another queue
        return site.pulled_at

    assert with_site(scenario, *there) == [min(there), second, min(there)]


def test_only_locks_that_were_requested_are_taken_from_the_answer() -> None:
    async def scenario(site: Site, calls: GroupRequests) -> set[MessageQueue]:
        given = [NamedQueue("b", 1, "T"), NamedQueue("b", 7, "T")]
        site.answers[RequestCode.LOCK_BATCH_MQ] = java_json.write(LockedQueues(given))
        return await calls.lock([QUEUE, OTHER])

    assert with_site(scenario, 0) == {OTHER}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"lockOKMQSet":7,"consumerIdList":7}'])
def test_invalid_bodies_are_one_clear_error(body: bytes) -> None:
    async def scenario(site: Site, calls: GroupRequests) -> None:
        site.answers = {RequestCode.LOCK_BATCH_MQ: body, RequestCode.GET_CONSUMER_LIST_BY_GROUP: body}
        with pytest.raises(ClientError, match="is invalid"):
            await calls.lock([QUEUE])
        with pytest.raises(ClientError, match="is invalid"):
            await calls.members("T")

    with_site(scenario, 0)


LOCK, UNLOCK = RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ
COMMIT, QUERY = RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.QUERY_CONSUMER_OFFSET
OF_MASTER: dict[RequestCode, Callable[[GroupRequests], Awaitable[object]]] = {
    LOCK: lambda calls: calls.lock([QUEUE]),
    UNLOCK: lambda calls: calls.unlock([QUEUE]),
    COMMIT: lambda calls: calls.commit(QUEUE, 7),
}


@pytest.mark.parametrize("code", OF_MASTER)
def test_locks_and_commits_go_to_the_master_only(code: RequestCode) -> None:
    """DELIV-6 OneOwner, DELIV-5 OffsetMonotone:

    a slave knows neither the holder of a queue nor the offsets committed to its master.
    """

    async def scenario(site: Site, calls: GroupRequests) -> tuple[list[tuple[int, int]], int]:
        site.answers[code] = java_json.write(LockedQueues([NamedQueue("b", 0, "T")]))
        master = site.addresses.pop(0)
        with pytest.raises(ClientError, match="no master"):
            await OF_MASTER[code](calls)
        assert site.asked == []
        await asyncio.sleep(1)
        before = site.routes_asked
        with pytest.raises(ClientError, match="no master"):
            await OF_MASTER[code](calls)
        site.addresses[0] = master
        await asyncio.sleep(1)
        again = site.routes_asked - before
        await OF_MASTER[code](calls)
        return site.asked, again

    assert with_site(scenario, 0, 1) == ([(code, 0)], 1)


@pytest.mark.parametrize("code", [ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND])
def test_without_a_master_a_slaves_offset_counts_but_not_its_lack_of_one(code: ResponseCode) -> None:
    """DELIV-1 NoAckedLost: a member that believed the slave would begin at the end of the queue."""

    async def scenario(site: Site, calls: GroupRequests) -> int | None:
        del site.addresses[0]
        site.answers[QUERY] = Command(code, 0, fields={"offset": "7"})
        return await calls.committed(QUEUE)

    if code is ResponseCode.SUCCESS:
        assert with_site(scenario, 0, 1) == 7
    else:
        with pytest.raises(ClientError, match="its master may have one"):
            with_site(scenario, 0, 1)


def test_a_master_without_an_offset_is_believed() -> None:
    async def scenario(site: Site, calls: GroupRequests) -> int | None:
        site.answers[QUERY] = Command(ResponseCode.QUERY_NOT_FOUND, 0)
        return await calls.committed(QUEUE)

    assert with_site(scenario, 0, 1) is None


def test_a_refusal_names_the_queue_and_the_code() -> None:
    async def scenario(site: Site, calls: GroupRequests) -> str:
        site.answers[RequestCode.GET_MAX_OFFSET] = Command(ResponseCode.SYSTEM_BUSY, 0)
        with pytest.raises(ClientError) as caught:
            await calls.max_offset(QUEUE)
        return str(caught.value)

    assert with_site(scenario, 0) == "T@b:0: SYSTEM_BUSY: no remark"


def test_a_missing_answer_is_an_error_within_the_time_limit() -> None:
    async def scenario(site: Site, calls: GroupRequests) -> float:
        await calls.pull(QUEUE, 0)
        began_s = asyncio.get_running_loop().time()
        await site.servers[0].stop()
        with pytest.raises(ClientError, match="T@b:0"):
            await calls.pull(QUEUE, 0, hold_ms=1000)
        return asyncio.get_running_loop().time() - began_s

    assert with_site(scenario, 0) < 12
