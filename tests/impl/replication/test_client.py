"""Tests how a slave keeps its connection: its retries, the choice of the master, and its log lines.

Method: a network whose masters are played by the test, in simulated time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import TypeVar

import pytest

from mqproof.impl.replication.client import MasterState, SlaveClient, _Receiver
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.follow import DivergedError, Follow
from mqproof.impl.replication.stream import StreamError, Transfer, write_transfer
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


# Times, to the tenth of a second.


class SilentMaster(Master):
    """A master that never sends anything."""

    def received(self, data: bytes) -> None:
        self.heard += data


async def serve_silently(attempts: Attempts) -> list[SilentMaster]:
    masters: list[SilentMaster] = []

    def accepted(connection: Connection) -> SilentMaster:
        masters.append(SilentMaster(connection))
        return masters[-1]

    await attempts.listen(MASTER.host, MASTER.port, accepted)
    return masters


async def connected(attempts: Attempts, client: SlaveClient) -> _Receiver:
    """Return what receives the bytes of a silent master, when the slave has connected to it."""
    masters = await serve_silently(attempts)
    while not masters:
        await asyncio.sleep(0.1)
    assert client._receiver is not None
    return client._receiver


def test_a_connection_attempt_ends_after_3_seconds_and_a_pause_of_1_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(attempts: Attempts, _: SlaveClient) -> list[float]:
        attempts.hangs = True
        await asyncio.sleep(20)
        return attempts.at_s

    with caplog.at_level(logging.WARNING):
        at_s = play(scenario)
    assert [round(later - earlier, 1) for earlier, later in pairwise(at_s)] == [4.0] * 4
    assert caplog.messages == [f"cannot follow master {MASTER}: it does not answer"]


def test_after_it_followed_a_slave_connects_again_in_half_a_second() -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> list[float]:
        listener, masters = await serve(attempts)
        await asyncio.sleep(10)
        listener.close()
        masters[0].connection.abort()
        lost_s = asyncio.get_running_loop().time()
        await asyncio.sleep(5)
        return [round(at_s - lost_s, 1) for at_s in attempts.at_s if at_s >= lost_s]

    assert play(scenario) == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_a_slave_looks_five_times_a_second_for_the_address_of_its_master() -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> list[float]:
        client.master = None
        await asyncio.sleep(1.5)
        assert client.state() == MasterState(None, False, None, None, 0)
        client.master = MASTER
        before = len(attempts.at_s)
        await asyncio.sleep(0.25)
        return [round(at_s, 1) for at_s in attempts.at_s[before:]]

    (at_s,) = play(scenario)
    assert at_s <= 1.7


def test_a_slave_reports_after_more_than_5_seconds_and_leaves_a_silent_master_after_20(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> tuple[list[int], MasterState]:
        masters = await serve_silently(attempts)
        while not masters:
            await asyncio.sleep(0.1)
        began_s = attempts.at_s[-1]
        counts = []
        state = MasterState(None)
        for after_s in (5.5, 6.5, 11.5, 12.5, 20.5):
            await asyncio.sleep(began_s + after_s - asyncio.get_running_loop().time())
            counts.append(len(masters[0].heard) // 8)
            state = client.state()
        assert (masters[0].is_closed, len(masters)) == (False, 1)
        await asyncio.sleep(1)
        assert masters[0].is_closed
        return counts, state

    with caplog.at_level(logging.WARNING):
        counts, state = play(scenario)
    assert counts == [1, 2, 2, 3, 4]
    assert (state.address, state.is_following, state.bytes_per_s) == (MASTER, False, 0)
    assert state.heard_ago_s == pytest.approx(20.5, abs=0.01)
    assert state.reported_ago_s == pytest.approx(2.5, abs=0.01)
    assert caplog.messages[-1] == f"master {MASTER}: nothing heard for 20000 ms"


def test_a_slave_that_changes_its_master_logs_no_loss(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(attempts: Attempts, client: SlaveClient) -> None:
        await serve(attempts)
        await serve(attempts, OTHER)
        while not client.is_following:
            await asyncio.sleep(0.1)
        client.master = OTHER
        await asyncio.sleep(10)

    with caplog.at_level(logging.WARNING):
        play(scenario)
    assert not [line for line in caplog.messages if "was lost" in line]


def test_an_unexpected_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise KeyError("unexpected")

    monkeypatch.setattr(Follow, "received", fail)

    async def main() -> None:
        attempts = Attempts()
        await serve(attempts)
        config = ReplicationConfig(role=Role.SLAVE, ha_master=MASTER)
        async with asyncio.timeout(60):
            await SlaveClient(attempts, store(), config, RECORD_BYTES_MAX).run()

    with pytest.raises(KeyError, match="unexpected"):
        run_simulated(main(), SimulatedLoop())


def test_a_slave_whose_log_differs_stops_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def differ(*_: object) -> bytes:
        raise DivergedError("the logs differ")

    async def main() -> tuple[str, int]:
        attempts = Attempts()
        await serve(attempts)
        config = ReplicationConfig(role=Role.SLAVE, ha_master=MASTER)
        client = SlaveClient(attempts, store(), config, RECORD_BYTES_MAX)
        async with asyncio.timeout(60):
            await client.run()
        return client.refused, len(attempts.at_s)

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Follow, "received", differ)
        assert run_simulated(main(), SimulatedLoop()) == ("the logs differ", 1)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", f"this slave no longer follows its master {MASTER}: the logs differ")
    ]


@pytest.mark.parametrize("error", [StreamError("invalid"), OSError("invalid")])
def test_an_error_that_ends_the_connection_is_logged_and_the_slave_connects_again(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bytes:
        raise error

    async def scenario(attempts: Attempts, client: SlaveClient) -> tuple[int, bool]:
        _, masters = await serve(attempts)
        await asyncio.sleep(10)
        return len(attempts.at_s), masters[0].is_closed

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Follow, "received", fail)
        attempts, closed = play(scenario)
    assert attempts > 5
    assert closed
    assert caplog.messages.count(f"closing the connection to master {MASTER}: invalid") == 1
    assert not [line for line in caplog.messages if "was lost" in line]


def test_the_state_of_a_slave_has_its_rate_and_the_times_of_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follow, "received", lambda _, data: data[:8])

    async def scenario(attempts: Attempts, client: SlaveClient) -> MasterState:
        masters = await serve_silently(attempts)
        while not masters:
            await asyncio.sleep(0.1)
        await asyncio.sleep(3)
        masters[0].connection.write(bytes(1200))
        await asyncio.sleep(0.25)
        early = client.state()
        assert early.heard_ago_s == pytest.approx(0.25, abs=0.01)
        assert early.reported_ago_s == pytest.approx(0.25, abs=0.01), "it has answered the data"
        await asyncio.sleep(8.75)
        return client.state()

    assert play(scenario).bytes_per_s == pytest.approx(100, abs=2)


def test_bytes_after_an_error_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def fail(_: object, data: bytes) -> bytes:
        seen.append(data)
        raise StreamError("invalid")

    monkeypatch.setattr(Follow, "received", fail)

    async def scenario(attempts: Attempts, client: SlaveClient) -> None:
        receiver = await connected(attempts, client)
        receiver.received(b"one")
        receiver.received(b"two")

    play(scenario)
    assert seen == [b"one"]


def test_transfers_that_arrive_together_are_stored_and_answered_in_one_turn_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bytes] = []

    def stored(_: object, data: bytes) -> bytes:
        seen.append(data)
        return b"position" if len(seen) < 3 else b""

    async def scenario(attempts: Attempts, client: SlaveClient) -> None:
        receiver = await connected(attempts, client)
        monkeypatch.setattr(Follow, "received", stored)
        receiver.received(b"three transfers")
        for expected in ([b"three transfers"], [b"three transfers", b""], [b"three transfers", b"", b""]):
            assert seen == expected
            await asyncio.sleep(0)
        await asyncio.sleep(1)
        assert len(seen) == 3, "nothing is left"
        receiver.received(b"more")
        receiver.hang_up()
        await asyncio.sleep(1)
        receiver.received(b"after the end")

    play(scenario)
    assert seen[3:] == [b"more"]


def test_a_slave_whose_own_log_is_damaged_does_not_connect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(_: Follow) -> None:
        raise StreamError("this slave's record at 7 is damaged")

    monkeypatch.setattr(Follow, "require_sound", damaged)

    async def scenario(attempts: Attempts, _: SlaveClient) -> list[float]:
        await asyncio.sleep(5)
        return attempts.at_s

    with caplog.at_level(logging.WARNING):
        assert play(scenario) == []
    assert caplog.messages == [f"cannot follow master {MASTER}: this slave's record at 7 is damaged"]
