"""Tests what a session sends to brokers, when, and what it logs. The brokers are scripted.

Source: docs/reference/protocol/groups.md, "Client registration".
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.address_server import AddressServer
from mqproof.impl.remoting.bodies import BrokerData, ConsumerData, Heartbeat, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

A, B = Address("10.0.0.1", 10911), Address("10.0.0.2", 10911)


class Brokers:
    """Stands for the remoting client: two brokers, each with its connection and its next responses."""

    def __init__(self) -> None:
        self.asked: list[tuple[Address, str, float]] = []
        self.requests: list[Command] = []
        self.codes: dict[Address, int | None] = {A: ResponseCode.SUCCESS, B: ResponseCode.SUCCESS}
        """The response code of each broker; None for a broker that does not respond."""
        self.channels: dict[Address, object | None] = {A: object(), B: object()}
        self.is_closed = False

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        self.asked.append((address, RequestCode(request.code).name, timeout_s))
        self.requests.append(request)
        code = self.codes[address]
        if code is None:
            raise RemotingError("silent")
        return request.answer(code)

    def is_connected(self, address: Address) -> bool:
        return self.channels[address] is not None

    def channel(self, address: Address) -> object | None:
        return self.channels[address]

    async def close(self) -> None:
        self.is_closed = True

    def beaten(self) -> list[Address]:
        """Return the brokers that received a heartbeat since the last call."""
        found = [address for address, name, _ in self.asked if name == "HEART_BEAT"]
        self.asked.clear()
        return found


def play(
    scenario: Callable[[Session, Brokers], Awaitable[None]], config: SessionConfig | None = None
) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        session = Session([Address("n", 1)], simulated(loop, SimulatedNetwork()), "me", config)
        brokers = Brokers()
        session.remoting = cast(Any, brokers)
        addresses = {"a": {0: str(A)}, "b": {0: str(B)}}
        session.routes._routes["T"] = TopicRoute(
            [BrokerData(address, name, "C") for name, address in addresses.items()], []
        )
        session.routes.refresh_all = nothing  # type: ignore[method-assign]
        async with asyncio.timeout(1000):
            await scenario(session, brokers)

    run_simulated(main(), loop)


async def nothing() -> None:
    """Does nothing."""


def heartbeat(request: Command) -> Heartbeat:
    return java_json.read(Heartbeat, request.body)


def test_a_heartbeat_names_the_client_and_its_groups_and_goes_to_each_broker() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        session.join_as_producer("P")
        session.join_as_consumer(ConsumerData("G"))
        await session.heartbeat()
        assert brokers.asked == [(A, "HEART_BEAT", 3.0), (B, "HEART_BEAT", 3.0)]
        beat = heartbeat(brokers.requests[0])
        assert beat.client_id == "me"
        assert [group.group_name for group in beat.producer_data_set] == ["P"]
        assert [group.group_name for group in beat.consumer_data_set] == ["G"]
        session.client_id = "m\u00e9"
        await session.heartbeat()
        assert b"m\\u00e9" in brokers.requests[-1].body  # standard JSON, with escapes

    play(scenario)


def test_heartbeats_are_sent_at_their_interval_until_the_stop() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        await session.start()
        await asyncio.sleep(0.01)
        for _ in range(2):
            await asyncio.sleep(29.98)
            assert brokers.beaten() == []
            await asyncio.sleep(0.02)
            assert brokers.beaten() == [A, B]
        await session.stop()
        await asyncio.sleep(60)
        assert brokers.beaten() == []
        assert len(asyncio.all_tasks()) == 1

    play(scenario)


def test_routes_are_refreshed_at_their_own_interval() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        refreshed_s: list[float] = []

        async def refresh() -> None:
            refreshed_s.append(round(asyncio.get_running_loop().time() - begun_s, 3))

        begun_s = asyncio.get_running_loop().time()
        session.routes.refresh_all = refresh  # type: ignore[method-assign]
        async with session:
            await asyncio.sleep(61)
        assert refreshed_s == [30, 60]
        assert brokers.is_closed

    play(scenario)


def test_the_intervals_can_be_set() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        async with session:
            await asyncio.sleep(5.1)
            assert brokers.beaten() == [A, B]

    play(scenario, SessionConfig(heartbeat_ms=5000))


def test_only_an_address_server_is_queried_periodically() -> None:
    async def scenario(session: Session, _brokers: Brokers) -> None:
        fetched = Session(AddressServer(A, "/"), session.runtime, "me")
        for each, tasks in ((session, 2), (fetched, 3)):
            await each.start()
            assert len(each._tasks) == tasks
            await each.stop()
            assert each._tasks == []

    play(scenario)


def test_greeting_leaves_out_brokers_that_know_the_client_on_this_connection() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        await session.greet()
        assert brokers.beaten() == [A, B]
        await session.greet()
        assert brokers.beaten() == []
        brokers.channels[A] = object()  # a new connection
        await session.greet()
        assert brokers.beaten() == [A]
        brokers.channels[B] = None
        await session.greet()
        await session.greet()
        assert brokers.beaten() == [B, B]

    play(scenario)


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_a_new_group_is_greeted_again_and_a_known_producer_group_is_not(kind: str) -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        def join() -> None:
            if kind == "producer":
                session.join_as_producer("P")
            else:
                session.join_as_consumer(ConsumerData("G"))

        join()
        await session.greet()
        brokers.beaten()
        join()
        await session.greet()
        assert brokers.beaten() == ([] if kind == "producer" else [A, B])

    play(scenario)


def test_a_waiting_request_greets_new_connections_every_second() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        await session.greet()
        brokers.beaten()
        with session.replies.expecting("one"):
            session.greet_while_waiting()
            session.greet_while_waiting()
            brokers.channels[A] = object()
            await asyncio.sleep(0.99)
            assert brokers.beaten() == []
            await asyncio.sleep(0.02)
            assert brokers.beaten() == [A]
            brokers.channels[B] = None
            await asyncio.sleep(2)
            assert brokers.beaten() == [B, B]
        await asyncio.sleep(1)  # the last check
        brokers.beaten()
        await asyncio.sleep(5)
        assert brokers.beaten() == []
        with session.replies.expecting("two"):
            session.greet_while_waiting()
            await asyncio.sleep(1.1)
            assert brokers.beaten() == [B]
            await session.stop()  # while it waits
            assert len(asyncio.all_tasks()) == 1

    play(scenario)


def test_a_refusal_is_logged_once_until_a_heartbeat_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        refused, accepted = ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS
        for code in (accepted, refused, refused, accepted, refused):
            brokers.codes[A] = code
            await session.heartbeat()

    play(scenario)
    line = "broker 10.0.0.1:10911 refuses the heartbeats: NO_PERMISSION: no remark"
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [("WARNING", line)] * 2


def test_a_failed_heartbeat_is_logged_and_the_other_brokers_get_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        brokers.codes[A] = None
        await session.greet()
        assert brokers.beaten() == [A, B]
        await session.greet()
        assert brokers.beaten() == [A]  # it does not know the client yet

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert caplog.messages == ["a heartbeat failed: silent"] * 2


def test_a_stop_leaves_all_groups_at_the_connected_brokers(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        async def last() -> None:
            assert not brokers.is_closed
            done.append("last work")

        done: list[str] = []
        session.at_stop(last)
        session.join_as_producer("P")
        session.join_as_consumer(ConsumerData("G"))
        brokers.channels[A], brokers.codes[B] = None, None
        await session.stop()
        assert brokers.asked == [(B, "UNREGISTER_CLIENT", 3.0)] * 2
        producer, consumer = (request.fields for request in brokers.requests)
        assert (producer["clientID"], producer["producerGroup"]) == ("me", "P")
        assert (consumer["clientID"], consumer["consumerGroup"]) == ("me", "G")
        assert brokers.is_closed
        assert done == ["last work"]
        await session.leave_as_consumer("G")
        assert len(brokers.asked) == 2

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert caplog.messages == ["unregistering failed: silent"] * 2


def test_only_a_broker_that_accepted_a_heartbeat_gets_one_after_a_reconnect() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        session._greet_again(A)
        assert not session._greetings
        await session.greet()
        brokers.beaten()
        session._greet_again(A)
        await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        assert brokers.beaten() == [A]
        assert not session._greetings

    play(scenario)


def test_one_producer_of_a_group_answers_checks() -> None:
    async def scenario(session: Session, _brokers: Brokers) -> None:
        first, second = cast(Any, SimpleNamespace()), cast(Any, SimpleNamespace(other=True))
        session.join_as_producer("P")
        session.join_as_producer("P", first)
        with pytest.raises(ClientError, match="group P has a transaction producer in this session already"):
            session.join_as_producer("P", second)
        session.leave_checks("P", second)
        assert session._checked == {"P": first}
        session.leave_checks("P", first)
        session.leave_checks("P", first)
        session.join_as_producer("P", second)
        assert session._checked == {"P": second}

    play(scenario)


def test_a_consumer_that_only_pulls_shares_the_registration_of_a_member() -> None:
    async def scenario(session: Session, brokers: Brokers) -> None:
        member, other = cast(Any, SimpleNamespace()), cast(Any, SimpleNamespace(other=True))
        session.join_as_consumer(ConsumerData("G", consume_type="CONSUME_ACTIVELY"))
        session.join_as_consumer(ConsumerData("G", message_model="BROADCASTING"), member)
        session.join_as_consumer(ConsumerData("G"))
        await session.heartbeat()
        (group,) = heartbeat(brokers.requests[0]).consumer_data_set
        assert group.message_model == "BROADCASTING"
        with pytest.raises(ClientError, match="group G already has a consumer with client id me"):
            session.join_as_consumer(ConsumerData("G"), other)
        await session.leave_as_consumer("G")
        session.join_as_consumer(ConsumerData("G"), other)

    play(scenario)


def test_administrators_see_the_version_the_kind_and_the_name_servers() -> None:
    async def scenario(session: Session, _brokers: Brokers) -> None:
        found: Mapping[str, str] = session.properties("CONSUME_ACTIVELY")
        assert re.fullmatch(r"V\d_\d+_\d+", found["PROP_CLIENT_VERSION"])
        assert found["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
        assert found["PROP_NAMESERVER_ADDR"] == "n:1"

    play(scenario)


def test_a_session_without_an_id_has_48_random_bits_as_its_instance() -> None:
    async def scenario(session: Session, _brokers: Brokers) -> None:
        session.runtime.random.seed(1)
        ids = [Session([A], session.runtime).client_id for _ in range(64)]
        assert all(re.fullmatch(r"127\.0\.0\.1@[0-9a-f]{12}", each) for each in ids)
        assert len(set(ids)) == 64
        assert max(int(each[-12:], 16) for each in ids).bit_length() == 48

    play(scenario)
