"""Tests that both networks have the same guarantees: order, closing, pausing, refused connections."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest

from mqproof.impl.runtime.network import Address, AsyncioNetwork, Connection, Network, SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import run_simulated


class End:
    """A receiver that records its calls."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.data = bytearray()
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()

    def received(self, data: bytes) -> None:
        self.data += data
        self.arrived.set()

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self.gone.set()


Scenario = Callable[[Network], Awaitable[None]]


def on_both(scenario: Scenario) -> None:
    """Run the scenario over real sockets and over the simulated network."""

    async def real() -> None:
        async with asyncio.timeout(60):
            await scenario(AsyncioNetwork())

    async def simulated() -> None:
        await scenario(SimulatedNetwork())

    asyncio.run(real())
    run_simulated(simulated())


async def pair(network: Network) -> tuple[End, End]:
    """The two ends of one connection: the opening and the accepting one."""
    accepted: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    def accept(connection: Connection) -> End:
        end = End(connection)
        accepted.set_result(end)
        return end

    opened: list[End] = []

    def open_(connection: Connection) -> End:
        opened.append(End(connection))
        return opened[0]

    listener = await network.listen("127.0.0.1", 0, accept)
    await network.connect(listener.address, open_)
    far = await accepted
    listener.close()
    return opened[0], far


async def read(end: End, count: int) -> bytes:
    while len(end.data) < count:
        end.arrived.clear()
        await end.arrived.wait()
    return bytes(end.data)


def test_bytes_arrive_in_order_in_both_directions() -> None:
    async def scenario(network: Network) -> None:
        near, far = await pair(network)
        for number in range(100):
            near.connection.write(bytes([number]))
        far.connection.write(b"back")
        assert await read(far, 100) == bytes(range(100))
        assert await read(near, 4) == b"back"
        near.connection.close()
        await far.gone.wait()

    on_both(scenario)


def test_closing_sends_the_written_data_and_notifies_both_ends() -> None:
    async def scenario(network: Network) -> None:
        near, far = await pair(network)
        near.connection.write(b"last words")
        near.connection.close()
        near.connection.write(b"too late")
        await near.gone.wait()
        await far.gone.wait()
        assert bytes(far.data) == b"last words"
        far.connection.write(b"not delivered")

    on_both(scenario)


def test_aborting_notifies_both_ends() -> None:
    async def scenario(network: Network) -> None:
        near, far = await pair(network)
        far.connection.abort()
        await near.gone.wait()
        await far.gone.wait()

    on_both(scenario)


def test_each_end_knows_both_addresses() -> None:
    async def scenario(network: Network) -> None:
        near, far = await pair(network)
        assert near.connection.local == far.connection.remote
        assert near.connection.remote == far.connection.local
        assert near.connection.local != near.connection.remote
        near.connection.close()
        await far.gone.wait()

    on_both(scenario)


def test_an_unreachable_address_is_an_os_error() -> None:
    async def scenario(network: Network) -> None:
        with closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))  # bound, not listening: no other process gets the port meanwhile
            address = Address(*taken.getsockname())
            with pytest.raises(OSError, match=r".+"):
                await network.connect(address, End)

    on_both(scenario)


def test_a_port_in_use_is_an_os_error() -> None:
    async def scenario(network: Network) -> None:
        listener = await network.listen("127.0.0.1", 0, End)
        with pytest.raises(OSError, match="in use"):
            await network.listen("127.0.0.1", listener.address.port, End)
        listener.close()

    on_both(scenario)


def test_data_that_arrives_while_reading_is_paused_is_read_later() -> None:
    async def scenario() -> None:
        near, far = await pair(SimulatedNetwork())
        far.connection.pause_reading()
        near.connection.write(b"a")
        near.connection.write(b"b")
        await asyncio.sleep(1)
        assert bytes(far.data) == b""
        far.connection.resume_reading()
        await asyncio.sleep(1)
        assert bytes(far.data) == b"ab"

    run_simulated(scenario())


def test_a_delay_keeps_the_order_and_takes_its_time() -> None:
    async def scenario() -> float:
        near, far = await pair(SimulatedNetwork(delay_s=0.5))
        loop = asyncio.get_running_loop()
        began = loop.time()
        near.connection.write(b"a")
        near.connection.write(b"b")
        assert await read(far, 2) == b"ab"
        return loop.time() - began

    assert run_simulated(scenario()) == 0.5


def test_silence_drops_bytes_without_notice_until_healed() -> None:
    async def scenario() -> None:
        network = SimulatedNetwork()
        near, far = await pair(network)
        network.silence(far.connection.local)
        near.connection.write(b"lost")
        far.connection.write(b"lost")
        await asyncio.sleep(1)
        network.heal(far.connection.local)
        near.connection.write(b"heard")
        await asyncio.sleep(1)
        assert (bytes(near.data), bytes(far.data)) == (b"", b"heard")
        assert not near.gone.is_set()

    run_simulated(scenario())


@pytest.mark.parametrize(
    ("way", "heard_near", "heard_far"), [("deafen", b"answer", b""), ("mute", b"", b"request")]
)
def test_one_direction_can_be_lost_while_the_other_works(
    way: str, heard_near: bytes, heard_far: bytes
) -> None:
    async def scenario() -> None:
        network = SimulatedNetwork()
        near, far = await pair(network)
        getattr(network, way)(far.connection.local)
        near.connection.write(b"request")
        far.connection.write(b"answer")
        await asyncio.sleep(1)
        assert (bytes(near.data), bytes(far.data)) == (heard_near, heard_far)
        network.heal(far.connection.local)
        near.connection.write(b"!")
        far.connection.write(b"!")
        await asyncio.sleep(1)
        assert (bytes(near.data), bytes(far.data)) == (heard_near + b"!", heard_far + b"!")

    run_simulated(scenario())


@pytest.mark.parametrize("text", ["", "host", ":1", "host:", "host:x", "host:70000", "host:-1", "host:١"])
def test_a_text_that_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT expected"):
        Address.parse(text)


def test_an_address_is_read_and_written() -> None:
    assert Address.parse(" 10.0.0.1:9876 ") == Address("10.0.0.1", 9876)
    assert str(Address("10.0.0.1", 9876)) == "10.0.0.1:9876"


def test_a_writer_learns_in_the_same_turn_that_the_peer_does_not_read() -> None:
    class Writer(End):
        paused = False

        def write_paused(self) -> None:
            self.paused = True

    async def main() -> int:
        ends: list[Writer] = []

        def end(connection: Connection) -> Writer:
            connection.pause_reading()
            ends.append(Writer(connection))
            return ends[-1]

        network = AsyncioNetwork()
        listener = await network.listen("127.0.0.1", 0, end)
        connection = await network.connect(listener.address, end)
        while len(ends) < 2:
            await asyncio.sleep(0.01)
        chunk, count = bytes(64 * 1024), 0
        while count < 1000 and not any(one.paused for one in ends):  # in one turn of the loop
            connection.write(chunk)
            count += 1
        listener.close()
        for one in ends:
            one.connection.abort()
            await one.gone.wait()
        return count

    assert asyncio.run(main()) < 1000
