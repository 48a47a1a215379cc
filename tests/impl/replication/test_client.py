"""Tests how a slave keeps its connection: its retries, the choice of the master, and its log lines.

Method: a network whose masters are played by the test, in simulated time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import TypeVar

import pytest

from mqproof.impl.replication.client import SlaveClient
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.stream import Transfer, write_transfer
from mqproof.impl.runtime.network import Address, Connection, Listener, ReceiverFactory, SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.replication.site import RECORD_BYTES_MAX, store

MASTER = Address("127.0.0.1", 10912)
OTHER = Address("127.0.0.1", 10922)

T = TypeVar("T")


class Attempts:
    """A network that records connection requests, and may not answer them."""

    def __init__(self) -> None:
        self.network = SimulatedNetwork()
        self.at_s: list[float] = []
        self.hangs = False

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        return await self.network.listen(host, port, on_connection)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        self.at_s.append(asyncio.get_running_loop().time())
        if self.hangs:
            await asyncio.sleep(1e6)
        return await self.network.connect(address, on_connection)


class Master:
    """The other end of a slave's connection: sends heartbeats on request, and records the received data."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.heard = bytearray()
        self.is_closed = False

    def received(self, data: bytes) -> None:
        self.heard += data
        self.connection.write(write_transfer(Transfer(0, b"")))

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        self.is_closed = True


Scenario = Callable[[Attempts, SlaveClient], Awaitable[T]]


def play(scenario: Scenario[T]) -> T:
    """Run a scenario with an empty slave that looks for its master."""
    loop = SimulatedLoop()

    async def main() -> T:
        attempts = Attempts()
        config = ReplicationConfig(role=Role.SLAVE, ha_master=MASTER)
        client = SlaveClient(attempts, store(), config, RECORD_BYTES_MAX)
        running = asyncio.create_task(client.run())
        try:
            return await scenario(attempts, client)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    return run_simulated(main(), loop)


async def serve(attempts: Attempts, address: Address = MASTER) -> tuple[Listener, list[Master]]:
    masters: list[Master] = []

    def accepted(connection: Connection) -> Master:
        masters.append(Master(connection))
        return masters[-1]

    return await attempts.listen(address.host, address.port, accepted), masters


def test_a_master_that_is_down_is_tried_every_second() -> None:
    async def scenario(attempts: Attempts, _: SlaveClient) -> list[float]:
        await asyncio.sleep(70)
        return attempts.at_s

    at_s = play(scenario)
    pauses = [round(later - earlier) for earlier, later in pairwise(at_s)]
    assert pauses[:60] == [1] * 60


def test_a_master_that_was_followed_is_tried_again_at_once() -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> float:
        await asyncio.sleep(40)
        _, masters = await serve(attempts)
        while not client.is_following:
            await asyncio.sleep(0.1)
        masters[0].connection.abort()
        lost_s = asyncio.get_running_loop().time()
        await asyncio.sleep(5)
        assert client.is_following
        return attempts.at_s[-1] - lost_s

    assert play(scenario) < 1


def test_the_log_says_again_that_the_slave_follows_after_it_lost_its_master(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> None:
        _, masters = await serve(attempts)
        await asyncio.sleep(40)
        masters[0].connection.abort()
        await asyncio.sleep(40)
        assert client.is_following

    with caplog.at_level("WARNING"):
        play(scenario)
    assert [line for line in caplog.messages if "slave follows" in line] == [
        f"this slave follows its master {MASTER}"
    ] * 2
    assert caplog.messages.count(f"the connection to master {MASTER} was lost") == 1


def test_a_slave_follows_only_after_it_has_fetched_the_masters_tables() -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> tuple[bool, list[int], bool]:
        known = False

        async def prepare() -> None:
            if not known:
                raise OSError("the tables are unavailable")

        client.prepare = prepare
        _, masters = await serve(attempts)
        await asyncio.sleep(40)
        before = client.is_following, [len(master.heard) for master in masters]
        known = True
        await asyncio.sleep(20)
        return *before, client.is_following

    followed, heard, follows = play(scenario)
    assert not followed
    assert len(heard) > 1
    assert not any(heard)
    assert follows


def test_a_master_that_does_not_answer_is_called_again() -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> bool:
        attempts.hangs = True
        await serve(attempts)
        await asyncio.sleep(10)
        attempts.hangs = False
        await asyncio.sleep(10)
        return client.is_following

    assert play(scenario)


def test_a_slave_leaves_its_master_when_another_is_reported() -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> tuple[bool, bool]:
        _, first = await serve(attempts)
        _, second = await serve(attempts, OTHER)
        while not client.is_following:
            await asyncio.sleep(0.1)
        client.master = OTHER
        await asyncio.sleep(10)
        return first[0].is_closed, bool(second) and client.is_following

    assert play(scenario) == (True, True)


def test_the_loss_of_a_master_is_logged_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> None:
        for _ in range(2):
            listener, masters = await serve(attempts)
            while not client.is_following:
                await asyncio.sleep(0.1)
            await asyncio.sleep(10)
            listener.close()
            masters[-1].connection.abort()
            await asyncio.sleep(60)

    with caplog.at_level(logging.WARNING):
        play(scenario)
    said = [record.message for record in caplog.records]
    assert len([line for line in said if "was lost" in line]) == 2
    assert len([line for line in said if "cannot follow" in line]) == 2


def test_a_slave_reports_its_position_on_an_idle_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> int:
        _, masters = await serve(attempts)
        while not client.is_following:
            await asyncio.sleep(0.1)
        heard = len(masters[0].heard)
        await asyncio.sleep(60)
        return len(masters[0].heard) - heard

    assert play(scenario) >= 8 * 9, "a position each 6 s"
    assert caplog.messages == [f"this slave follows its master {MASTER}"]


def test_the_same_complaint_is_logged_again_after_a_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> None:
        _, masters = await serve(attempts)
        for _ in range(3):
            while not client.is_following:
                await asyncio.sleep(0.1)
            await asyncio.sleep(10)
            masters[-1].connection.abort()
            await asyncio.sleep(0.1)

    with caplog.at_level(logging.WARNING):
        play(scenario)
    assert len([record for record in caplog.records if "was lost" in record.message]) == 3
