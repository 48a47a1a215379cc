"""Tests the links between simulated machines: the guarantees of TCP hold whatever the network does."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from mqproof.impl.runtime.network import Address, Connection
from mqproof.impl.runtime.simulated_internet import SimulatedInternet
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

ONE, OTHER = "10.0.0.1", "10.0.0.2"
DOOR = Address(OTHER, 80)
THERE, BACK = (ONE, OTHER), (OTHER, ONE)


class Ear:
    """A receiver that records the received data."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.heard = b""
        self.is_closed = False

    def received(self, data: bytes) -> None:
        self.heard += data

    def write_paused(self) -> None:
        raise AssertionError("buffers never fill")

    write_resumed = write_paused

    def closed(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class World:
    def __init__(self, seed: int = 0) -> None:
        self.internet = SimulatedInternet(Random(seed))
        self.accepted: list[Ear] = []

    async def pair(self) -> tuple[Ear, Ear]:
        """Open a connection from ONE to OTHER. Returns both ends."""
        if not self.accepted:
            await self.internet.machine(OTHER).listen(*DOOR, self.accept)
        connected: list[Ear] = []

        def opened(connection: Connection) -> Ear:
            connected.append(Ear(connection))
            return connected[0]

        await self.internet.machine(ONE).connect(DOOR, opened)
        return connected[0], self.accepted[-1]

    def accept(self, connection: Connection) -> Ear:
        self.accepted.append(Ear(connection))
        return self.accepted[-1]


def play(scenario: Callable[[World], Awaitable[None]], seed: int = 0) -> None:
    async def main() -> None:
        await scenario(World(seed))

    run_simulated(main())


def test_connections_have_the_address_of_their_machine() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        assert near.connection.local.host == ONE
        assert far.connection.remote == near.connection.local

    play(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_in_order_even_if_segments_are_lost(seed: int) -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        world.internet.loss = 0.4
        sent = [b"%d " % number for number in range(100)]
        for data in sent:
            near.connection.write(data)
        await asyncio.sleep(600)
        assert far.heard == b"".join(sent)

    play(scenario, seed)


def test_data_written_before_a_close_arrives_before_it() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        near.connection.write(b"last words")
        near.connection.close()
        near.connection.write(b"ignored")
        await asyncio.sleep(1)
        assert (far.heard, far.is_closed, near.is_closed) == (b"last words", True, True)

    play(scenario)


def test_a_cut_link_keeps_sent_data_until_it_heals_and_the_other_direction_works() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        world.internet.cut([THERE])
        near.connection.write(b"question")
        far.connection.write(b"unasked")
        await asyncio.sleep(60)
        assert (far.heard, near.heard) == (b"", b"unasked")
        world.internet.heal([BACK])
        await asyncio.sleep(60)
        assert far.heard == b""
        near.connection.close()
        world.internet.heal([THERE])
        await asyncio.sleep(1)
        assert (far.heard, far.is_closed) == (b"question", True)

    play(scenario)


def test_a_connection_is_opened_when_its_link_works() -> None:
    async def scenario(world: World) -> None:
        await world.pair()
        world.internet.cut([BACK])
        opening = asyncio.ensure_future(world.pair())
        await asyncio.sleep(60)
        assert not opening.done()
        world.internet.heal()
        near, far = await opening
        near.connection.write(b"hello")
        await asyncio.sleep(1)
        assert far.heard == b"hello"

    play(scenario)


def test_a_connection_without_listener_is_refused_and_an_address_is_used_once() -> None:
    async def scenario(world: World) -> None:
        machine = world.internet.machine(OTHER)
        with pytest.raises(ConnectionRefusedError):
            await world.internet.machine(ONE).connect(DOOR, Ear)
        listener = await machine.listen(*DOOR, world.accept)
        with pytest.raises(OSError, match="in use"):
            await machine.listen(*DOOR, world.accept)
        with pytest.raises(OSError, match="not an address"):
            await machine.listen(ONE, 80, world.accept)
        listener.close()
        await machine.listen(*DOOR, world.accept)
        listener.close()  # the address belongs to another process by now
        await world.internet.machine(ONE).connect(DOOR, Ear)

    play(scenario)


def test_a_reset_closes_both_ends() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        world.internet.reset(OTHER, ONE)
        await asyncio.sleep(1)
        assert near.is_closed
        assert far.is_closed

    play(scenario)


def test_forgotten_connections_carry_nothing_and_notify_neither_end() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        near.connection.write(b"on its way")
        world.internet.forget_connections(*BACK)
        far.connection.write(b"later")
        near.connection.abort()
        await asyncio.sleep(600)
        assert (near.heard, far.heard, near.is_closed, far.is_closed) == (b"", b"", True, False)
        near, far = await world.pair()
        near.connection.write(b"again")
        await asyncio.sleep(1)
        assert far.heard == b"again"

    play(scenario)


def test_a_machine_without_power_sends_nothing_and_resets_old_connections_after_its_restart() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        world.internet.lose_power(OTHER)
        near.connection.write(b"anybody?")
        await asyncio.sleep(600)
        assert (near.is_closed, far.heard, far.is_closed) == (False, b"", False)
        world.internet.power_on(OTHER)
        await asyncio.sleep(1)
        assert near.is_closed
        with pytest.raises(ConnectionRefusedError):  # no server listens there yet
            await world.internet.machine(ONE).connect(DOOR, Ear)

    play(scenario)


def test_a_peer_that_does_not_read_receives_the_data_later() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        far.connection.pause_reading()
        near.connection.write(b"a")
        near.connection.write(b"b")
        await asyncio.sleep(1)
        assert far.heard == b""
        far.connection.resume_reading()
        await asyncio.sleep(1)
        assert far.heard == b"ab"

    play(scenario)


def test_the_death_of_a_process_behind_a_cut_link_is_noticed_when_it_heals() -> None:
    async def scenario(world: World) -> None:
        near, far = await world.pair()
        world.internet.cut([THERE, BACK])
        far.connection.abort()
        await asyncio.sleep(60)
        assert not near.is_closed
        world.internet.heal()
        await asyncio.sleep(1)
        assert near.is_closed

    play(scenario)


def _loop() -> SimulatedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop


def test_a_paused_process_accepts_connections_and_receives_all_data_in_order_when_it_continues() -> None:
    async def scenario(world: World) -> None:
        await world.pair()
        _loop().stop_process(OTHER)
        near, _ = await world.pair()
        far_count = len(world.accepted)
        for word in (b"1 ", b"2 "):
            near.connection.write(word)
            await asyncio.sleep(1)
        assert (far_count, len(world.accepted)) == (1, 1)
        near.connection.write(b"3 ")
        near.connection.close()
        _loop().continue_process(OTHER)
        await asyncio.sleep(1)
        assert (world.accepted[1].heard, world.accepted[1].is_closed) == (b"1 2 3 ", True)

    play(scenario)


def test_data_that_a_process_wrote_before_it_was_paused_arrives() -> None:
    async def scenario(world: World) -> None:
        near, _ = await world.pair()

        async def speak() -> None:
            near.connection.write(b"hello")

        await asyncio.create_task(speak(), context=_loop().context_of(ONE))
        _loop().stop_process(ONE)
        await asyncio.sleep(1)
        assert world.accepted[0].heard == b"hello"

    play(scenario)


def test_a_connection_to_a_paused_process_that_is_killed_is_refused() -> None:
    async def scenario(world: World) -> None:
        door = await world.internet.machine(OTHER).listen(*DOOR, world.accept)
        _loop().stop_process(OTHER)
        connected: list[Ear] = []

        def opened(connection: Connection) -> Ear:
            connected.append(Ear(connection))
            return connected[0]

        await world.internet.machine(ONE).connect(DOOR, opened)
        connected[0].connection.write(b"anybody?")
        await asyncio.sleep(1)
        door.close()
        _loop().continue_process(OTHER)
        await asyncio.sleep(1)
        assert not world.accepted
        assert connected[0].is_closed

    play(scenario)


class Fragile(Ear):
    """A receiver that raises when it receives data."""

    def received(self, data: bytes) -> None:
        super().received(data)
        if data == b"first ":
            raise OSError("the machine died of it")


def test_a_receiver_that_fails_does_not_block_later_data() -> None:
    async def scenario(world: World) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        accepted: list[Ear] = []

        def accept(connection: Connection) -> Ear:
            accepted.append(Fragile(connection))
            return accepted[0]

        await world.internet.machine(OTHER).listen(*DOOR, accept)
        near = await world.internet.machine(ONE).connect(DOOR, Ear)
        near.write(b"first ")
        near.write(b"second")
        await asyncio.sleep(1)
        assert accepted[0].heard == b"first second"

    play(scenario)
