"""Tests how a master keeps its slaves' connections. The test plays the slaves, in simulated time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, cast

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


class _Remote:
    """A connection from any address, which records how it ends."""

    def __init__(self, host: str) -> None:
        self.remote = Address(host, 1)
        self.written = bytearray()
        self.ended = ""

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.ended = "aborted"

    def close(self) -> None:
        self.ended = "closed"


def accepted(server: MasterServer, hosts: Iterable[str], *, acknowledge: bool = True) -> list[_Remote]:
    """Let a slave connect from each of the hosts, and acknowledge a position."""
    remotes = [_Remote(host) for host in hosts]
    for remote in remotes:
        sender = server._accept(cast(Connection, remote))
        if acknowledge and not remote.ended:
            for _ in range(2):
                sender.received(write_position(0))
    return remotes


def test_64_slaves_have_a_place_and_the_next_one_is_refused_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(server: MasterServer, _: Connect) -> list[str]:
        hosts = [f"10.0.0.{number}" for number in range(SLAVES_MAX)]
        slaves = accepted(server, hosts)
        caplog.clear()
        (late,) = accepted(server, ["10.0.1.1"])
        assert server.acks.slaves == len(server.slaves()) == SLAVES_MAX
        return [*{slave.ended for slave in slaves}, late.ended]

    with caplog.at_level(logging.WARNING):
        assert play(scenario) == ["", "aborted"]
    assert caplog.messages == ["refused a slave on 10.0.1.1: 64 slaves are connected"]


def test_the_oldest_connection_without_an_acknowledgement_gives_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(server: MasterServer, _: Connect) -> list[str]:
        accepted(server, [f"10.0.0.{number}" for number in range(SLAVES_MAX - 2)])
        idle = accepted(server, ["10.0.1.1", "10.0.1.2"], acknowledge=False)
        caplog.clear()
        late = accepted(server, ["10.0.1.3"])
        return [each.ended for each in (*idle, *late)]

    with caplog.at_level(logging.WARNING):
        assert play(scenario) == ["aborted", "", ""]
    assert caplog.messages[0] == (
        "closing the connection to a slave on 10.0.1.1:"
        " it has acknowledged nothing, and another slave needs its place"
    )


def test_a_crowd_on_one_address_does_not_take_the_places_of_others() -> None:
    async def scenario(server: MasterServer, _: Connect) -> tuple[list[str], list[str]]:
        idle = accepted(server, ["10.0.1.1"], acknowledge=False)
        crowd = accepted(server, ["10.0.0.1"] * (SLAVES_OF_ADDRESS_MAX + 1))
        return [each.ended for each in idle], [each.ended for each in crowd]

    idle, crowd = play(scenario)
    assert idle == [""]
    assert crowd == [""] * SLAVES_OF_ADDRESS_MAX + ["aborted"]


@pytest.mark.parametrize(
    ("begin_s", "at_s", "is_closed"), [(0, 20, False), (0, 21, True), (0.99, 20, False), (0.99, 21, True)]
)
def test_a_connection_is_closed_after_20_seconds_without_a_report(
    begin_s: float, at_s: float, is_closed: bool
) -> None:
    async def scenario(_: MasterServer, connect: Connect) -> bool:
        await asyncio.sleep(begin_s)
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(at_s + 0.05 - begin_s)
        return slave.is_closed

    assert play(scenario) is is_closed


@pytest.mark.parametrize(
    ("begin_s", "at_s", "beats"), [(0, 5, 0), (0, 6, 1), (0, 11, 1), (0, 12, 2), (0.998, 5, 0), (0.998, 6, 1)]
)
def test_a_heartbeat_is_sent_after_more_than_5_seconds(begin_s: float, at_s: float, beats: int) -> None:
    async def scenario(_: MasterServer, connect: Connect) -> int:
        await asyncio.sleep(begin_s)
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(at_s + 0.05 - begin_s)
        return sum(not transfer.body for transfer in slave.transfers())

    assert play(scenario) == beats


def test_a_slave_that_takes_nothing_gets_no_heartbeat_and_continues_when_it_does() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> list[int]:
        slave = await connect()
        (sender,) = server._senders
        sender.write_paused()
        slave.say(0)
        await asyncio.sleep(11.5)
        counts = [len(slave.transfers())]
        sender.write_resumed()
        await asyncio.sleep(1)
        return [*counts, len(slave.transfers())]

    assert play(scenario) == [0, 1]


def test_the_log_says_that_a_slave_follows_and_that_it_has_left(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(_: MasterServer, connect: Connect) -> str:
        stranger = await connect()
        slave = await connect()
        for _number in range(3):
            slave.say(0)
            await asyncio.sleep(1)
        for each in (slave, stranger):
            each.connection.close()
        await asyncio.sleep(1)
        return str(slave.connection.local)

    with caplog.at_level(logging.WARNING):
        slave = play(scenario)
    assert caplog.messages == [f"the slave {slave} follows", f"the slave {slave} has left"]


def test_bytes_of_a_refused_slave_have_no_effect() -> None:
    async def scenario(server: MasterServer, _: Connect) -> tuple[int, bytes]:
        (remote,) = accepted(server, ["10.0.0.1"], acknowledge=False)
        (sender,) = server._senders
        sender.refuse("a test")
        sender.received(write_position(0))
        sender.wake()
        await asyncio.sleep(1)
        return server.acks.slaves, bytes(remote.written)

    assert play(scenario) == (0, b"")


@pytest.mark.parametrize(("ends", "how"), [("stop", "closed"), ("kill", "aborted")])
def test_the_end_of_a_master_leaves_no_task_and_no_slave(ends: str, how: str) -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[str, bool]:
        (remote,) = accepted(server, ["10.0.0.1"])
        scan = server._scan
        assert scan is not None
        if ends == "stop":
            await server.stop()
        else:
            server.kill()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            await connect()
        return remote.ended, scan.done()

    assert play(scenario) == (how, True)


def test_the_rate_of_a_slave_is_that_of_the_bytes_sent_to_it() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[int, int]:
        slave = await connect()
        slave.say(0)
        await asyncio.sleep(12)
        (state,) = server.slaves()
        (transfer, *_) = slave.transfers()
        return state.bytes_per_s, round((12 + len(transfer.body)) / 12)

    rate, expected = play(scenario)
    assert rate == expected > 0


def test_a_master_serves_the_addresses_of_its_slaves() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> tuple[bool, bool]:
        slave = await connect()
        local = slave.connection.local
        return server.serves(local), server.serves(Address(local.host, local.port + 1))

    assert play(scenario) == (True, False)


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


def test_a_slave_receives_the_rest_in_its_next_turn() -> None:
    async def scenario(server: MasterServer, connect: Connect) -> int:
        slave = await connect()
        (sender,) = server._senders
        sender._feed.received(write_position(0))
        frames = iter([write_transfer(Transfer(0, bytes(100 << 10)))] * 7)
        sender._feed.next_frame = lambda: next(frames, b"")  # type: ignore[method-assign]
        sender.wake()
        await asyncio.sleep(1)
        return len(slave.transfers())

    assert play(scenario) == 7
