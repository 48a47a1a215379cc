"""Tests how a master keeps its slaves' connections. The test plays the slaves, in simulated time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.server import MasterServer
from mqproof.impl.replication.stream import Transfer, read_transfer, write_position, write_transfer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, Connection, SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import ManualClock, SimulatedLoop, run_simulated
from mqproof.spec.events import Event, Kind
from tests.impl.replication.site import filled, message

T = TypeVar("T")
SLAVES_MAX = 64
SLAVES_OF_ADDRESS_MAX = 16


class Slave:
    """One end of a connection, which sends the bytes that the test gives it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.heard = bytearray()
        self.is_closed = False

    def received(self, data: bytes) -> None:
        self.heard += data

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        self.is_closed = True

    def say(self, position: int) -> None:
        self.connection.write(write_position(position))

    def transfers(self) -> list[Transfer]:
        buffer, found = bytearray(self.heard), []
        while (transfer := read_transfer(buffer)) is not None:
            found.append(transfer)
        return found


Connect = Callable[[], Awaitable[Slave]]


def play(scenario: Callable[[MasterServer, Connect], Awaitable[T]], events: EventLog | None = None) -> T:
    """Run a scenario with a master whose log has three messages."""
    loop = SimulatedLoop()

    async def main() -> T:
        network = SimulatedNetwork()
        log = filled(3)
        server = MasterServer(network, log, ReplicationConfig(role=Role.SYNC_MASTER), events)
        log.on_append = server.grown
        address = await server.start("127.0.0.1", 10912)

        async def connect() -> Slave:
            return await connected(network, address)

        try:
            return await scenario(server, connect)
        finally:
            await server.stop()

    return run_simulated(main(), loop)


async def connected(network: SimulatedNetwork, address: Address) -> Slave:
    made: list[Slave] = []

    def opened(connection: Connection) -> Slave:
        made.append(Slave(connection))
        return made[0]

    await network.connect(address, opened)
    return made[0]


def test_a_silent_slave_is_disconnected_and_no_longer_counts() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[int, int, bool]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(15)
        early = server.acks.slaves
        await asyncio.sleep(15)
        return early, server.acks.slaves, slave.is_closed

    assert play(scenario) == (1, 0, True)


def test_a_slave_that_is_up_to_date_receives_heartbeats() -> None:
    async def scenario(_: MasterServer, connect: Connect) -> list[tuple[int, int]]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(15)
        return [(transfer.position, len(transfer.body)) for transfer in slave.transfers()]

    (first, size), *beats = play(scenario)
    assert (first, size > 0) == (0, True)
    assert beats == [(size, 0)] * 2


def test_a_slave_that_has_requested_nothing_receives_nothing() -> None:
    async def scenario(_: MasterServer, connect: Connect) -> bytes:
        slave = await connect()
        await asyncio.sleep(15)
        return bytes(slave.heard)

    assert play(scenario) == b""


def test_connections_that_acknowledge_nothing_do_not_keep_out_a_slave() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[list[bool], int]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(1)
        slave.say(0)  # it follows: an acknowledgement
        strangers = [await connect() for _number in range(2 * SLAVES_MAX)]
        await asyncio.sleep(1)
        late = await connect()
        await asyncio.sleep(1)
        return [slave.is_closed, late.is_closed, *(one.is_closed for one in strangers)], len(server._senders)

    closed, kept = play(scenario)
    assert kept == SLAVES_OF_ADDRESS_MAX
    assert closed[:2] == [False, False]
    assert sum(closed) == 2 * SLAVES_MAX - (SLAVES_OF_ADDRESS_MAX - 2)


def test_the_number_of_slaves_of_an_address_is_limited() -> None:
    async def scenario(_: MasterServer, connect: Connect) -> list[bool]:
        slaves = []
        for _number in range(SLAVES_OF_ADDRESS_MAX + 2):
            slaves.append(await connect())
            slaves[-1].say(0)
            await asyncio.sleep(0.1)
            slaves[-1].say(0)
            await asyncio.sleep(0.1)
        return [slave.is_closed for slave in slaves]

    assert play(scenario) == [False] * SLAVES_OF_ADDRESS_MAX + [True] * 2


def test_an_acknowledgement_of_what_was_not_sent_is_refused() -> None:
    """A slave that is sent nothing more cannot have the newest message."""

    async def scenario(server: MasterServer, connect: Connect) -> tuple[int, bool]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(1)
        log = server._master_log
        next(iter(server._senders)).write_paused()
        log.append(message(3))  # type: ignore[attr-defined]  # the store of `filled`
        slave.say(log.log_end)
        await asyncio.sleep(1)
        return server.acks.highest, slave.is_closed

    assert play(scenario) == (0, True)


def test_repeated_refusals_of_a_slave_are_logged_once_whatever_it_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(_: MasterServer, connect: Connect) -> list[bool]:
        closed = []
        for turn in range(3):
            slave = await connect()
            slave.say((1 << 40) + turn)
            await asyncio.sleep(1)
            closed.append(slave.is_closed)
        return closed

    with caplog.at_level(logging.WARNING):
        assert play(scenario) == [True] * 3
    assert len(caplog.records) == 1


def test_a_master_that_stops_closes_its_connections() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> bool:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(1)
        await server.stop()
        await asyncio.sleep(1)
        return slave.is_closed

    assert play(scenario)


def test_appended_data_is_sent_without_a_request() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[int, int]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(1)
        before = len(slave.transfers())
        log = server._master_log
        log.append(message(3))  # type: ignore[attr-defined]  # the store of `filled`
        server.grown()
        await asyncio.sleep(1)
        return before, len(slave.transfers())

    assert play(scenario) == (1, 2)


def test_transfers_and_acknowledgements_are_in_the_event_log() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[int, str]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(1)
        slave.say(100)
        await asyncio.sleep(1)
        return server._master_log.log_end, str(slave.connection.local)

    events: list[Event] = []
    end, slave = play(scenario, EventLog(events.append, "broker", ManualClock()))
    assert [(event.kind, event.commit_offset) for event in events] == [
        (Kind.HA_TRANSFER, end),
        (Kind.HA_ACK, 100),
    ]
    assert {(event.attrs["slave"], event.attrs["role"]) for event in events} == {(slave, "SYNC_MASTER")}


@pytest.mark.parametrize(("frame_bytes", "frames"), [(64 << 10, 4), (100 << 10, 3), ((64 << 10) - 1, 5)])
def test_other_slaves_get_a_turn_after_256_kib(frame_bytes: int, frames: int) -> None:
    async def scenario(server: MasterServer, connect: Connect) -> int:
        slave = await connect()
        (sender,) = server._senders
        sender._feed.received(write_position(0))
        frame = write_transfer(Transfer(0, bytes(frame_bytes - len(write_transfer(Transfer(0, b""))))))
        sender._feed.next_frame = lambda: frame  # type: ignore[method-assign]
        sender._send()
        sender._takes = False
        await asyncio.sleep(1)
        return len(slave.transfers())

    assert play(scenario) == frames


def test_the_state_of_a_slave_says_what_was_sent_and_acknowledged() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> None:
        slave = await connect()
        (state,) = server.slaves()
        assert (state.address, state.sent, state.acknowledged) == (slave.connection.local, 0, 0)
        slave.say(0)
        await asyncio.sleep(1)
        slave.say(100)
        await asyncio.sleep(1)
        slave.say(50)
        await asyncio.sleep(1)
        (state,) = server.slaves()
        assert (state.sent, state.acknowledged) == (server._master_log.log_end, 100)

    play(scenario)


def test_several_reasons_to_send_are_one_send_at_the_end_of_the_turn() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> list[int]:
        await connect()
        (sender,) = server._senders
        sends: list[int] = []
        sender._send = lambda: sends.append(len(sends))  # type: ignore[method-assign]
        sender.wake()
        sender.wake()
        assert sends == []
        await asyncio.sleep(1)
        return sends

    assert play(scenario) == [0]
