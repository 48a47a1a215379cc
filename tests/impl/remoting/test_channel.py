"""Tests channels on a simulated network:

correlation, timeouts, one-way requests, limits, misbehaving peers.
"""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from mqproof.impl.remoting.budget import Shares, server_budgets
from mqproof.impl.remoting.channel import (
    CLOSE_S,
    Channel,
    ConnectError,
    ConnectionLostError,
    Limits,
    Reply,
    RequestTimeoutError,
)
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import HEADER_BYTES_MAX, Command, decode, encode, new_request
from mqproof.impl.remoting.frame import read_frame
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.server import IDLE_S, RemotingServer
from mqproof.impl.runtime.network import Address, Connection, SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import run_simulated

ECHO, SLOW, BROKEN, SILENT, WORDY, WORDY_LATER = 1, 2, 3, 4, 5, 6


def _echo(request: Command, channel: Channel) -> Reply:
    return request.answer(0, body=request.body)


async def _slow(request: Command, channel: Channel) -> Reply:
    await asyncio.sleep(float(request.body))
    return request.answer(0, body=request.body)


def _broken(request: Command, channel: Channel) -> Reply:
    raise ZeroDivisionError("injected")


async def _silent(request: Command, channel: Channel) -> Reply:
    return None


def _wordy(request: Command, channel: Channel) -> Reply:
    return request.answer(0, remark="w" * HEADER_BYTES_MAX)


async def _wordy_later(request: Command, channel: Channel) -> Reply:
    return _wordy(request, channel)


PROCESSORS = {
    ECHO: _echo,
    SLOW: _slow,
    BROKEN: _broken,
    SILENT: _silent,
    WORDY: _wordy,
    WORDY_LATER: _wordy_later,
}


class World:
    """A server with PROCESSORS and a client on one simulated network."""

    def __init__(self, limits: Limits | None = None, connections_max: int = 100) -> None:
        self.network = SimulatedNetwork()
        self.server = RemotingServer(
            self.network, handler(PROCESSORS), limits=limits, connections_max=connections_max
        )
        self.client = RemotingClient(self.network)
        self.address = Address("127.0.0.1", 0)

    async def __aenter__(self) -> "World":
        self.address = await self.server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.server.stop()

    async def ask(self, code: int, body: bytes = b"", timeout_s: float = 3.0) -> Command:
        return await self.client.invoke(self.address, new_request(code, body=body), timeout_s)

    async def raw(self) -> "RawPeer":
        peer = RawPeer()
        await self.network.connect(self.address, peer.accept)
        return peer


class RawPeer:
    """The other end of a connection, which follows no protocol."""

    connection: Connection

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.is_closed = False

    def accept(self, connection: Connection) -> "RawPeer":
        self.connection = connection
        return self

    def received(self, data: bytes) -> None:
        self.buffer += data

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self.is_closed = True

    def answers(self) -> list[Command]:
        found = []
        while (frame := read_frame(self.buffer)) is not None:
            found.append(decode(frame))
        return found


def test_answers_are_matched_with_their_requests_in_any_order() -> None:
    async def main() -> list[bytes]:
        async with World() as world:
            bodies = [b"0.3", b"0.1", b"0.2"]
            answers = await asyncio.gather(*(world.ask(SLOW, body) for body in bodies))
            return [answer.body for answer in answers]

    assert run_simulated(main()) == [b"0.3", b"0.1", b"0.2"]


def test_a_late_answer_is_a_timeout_and_the_connection_stays_open() -> None:
    async def main() -> bytes:
        async with World() as world:
            with pytest.raises(RequestTimeoutError, match="within 500 ms"):
                await world.ask(SLOW, b"1", timeout_s=0.5)
            await asyncio.sleep(1)
            return (await world.ask(ECHO, b"still here")).body

    assert run_simulated(main()) == b"still here"


def test_concurrent_requests_have_separate_timeouts() -> None:
    """The timeouts end in any order, and some requests are answered."""

    async def main() -> list[tuple[float, str]]:
        async with World() as world:
            loop = asyncio.get_running_loop()
            await world.ask(ECHO)

            async def timed(seconds: bytes, timeout_s: float) -> tuple[float, str]:
                began_s = loop.time()
                try:
                    how = (await world.ask(SLOW, seconds, timeout_s)).body.decode()
                except RequestTimeoutError:
                    how = "late"
                return round(loop.time() - began_s, 3), how

            asked = [(b"9", 2.0), (b"9", 0.5), (b"0.1", 0.2), (b"9", 1.0), (b"1.5", 3.0)]
            together = await asyncio.gather(*(timed(*each) for each in asked))
            await asyncio.sleep(5)
            return [*together, await timed(b"9", 0.5)]

    assert run_simulated(main()) == [
        (2.0, "late"),
        (0.5, "late"),
        (0.1, "0.1"),
        (1.0, "late"),
        (1.5, "1.5"),
        (0.5, "late"),
    ]


def test_a_lost_connection_fails_waiting_requests_and_the_next_request_opens_another() -> None:
    async def main() -> bytes:
        async with World() as world:
            waiting = asyncio.create_task(world.ask(SLOW, b"1"))
            await asyncio.sleep(0.1)
            world.network.cut(world.address)
            with pytest.raises(ConnectionLostError):
                await waiting
            return (await world.ask(ECHO, b"again")).body

    assert run_simulated(main()) == b"again"


def test_an_unreachable_server_is_a_connect_error_and_nothing_was_sent() -> None:
    async def main() -> None:
        client = RemotingClient(SimulatedNetwork())
        with pytest.raises(ConnectError, match="no server listens"):
            await client.invoke(Address("127.0.0.1", 9), new_request(ECHO), 1.0)

    run_simulated(main())


def test_a_closed_client_sends_nothing() -> None:
    async def main() -> None:
        async with World() as world:
            await world.client.close()
            with pytest.raises(ConnectError, match="closed"):
                await world.ask(ECHO)

    run_simulated(main())


def test_an_unknown_request_code_is_answered_as_not_supported() -> None:
    async def main() -> Command:
        async with World() as world:
            return await world.ask(9999)

    answer = run_simulated(main())
    assert (answer.code, answer.remark) == (3, " request type 9999 not supported")


def test_a_processor_that_fails_gets_an_error_answer_and_the_server_continues() -> None:
    async def main() -> tuple[Command, Command]:
        async with World() as world:
            return await world.ask(BROKEN), await world.ask(ECHO, b"x")

    broken, echo = run_simulated(main())
    assert (broken.code, broken.remark) == (1, "ZeroDivisionError: injected")
    assert echo.body == b"x"


def test_an_answer_too_long_for_a_command_is_an_error_answer_and_the_connection_stays_open() -> None:
    async def main() -> list[Command]:
        async with World() as world:
            return [await world.ask(code) for code in (WORDY, WORDY_LATER, ECHO)]

    wordy, later, echo = run_simulated(main())
    for answer in (wordy, later):
        assert (answer.code, answer.remark) == (1, "the answer does not fit into a command")
    assert echo.code == 0


def test_a_request_too_long_for_a_command_is_not_sent() -> None:
    async def main() -> None:
        async with World() as world:
            await world.ask(ECHO)  # the connection exists
            request = new_request(ECHO, {"long": "w" * HEADER_BYTES_MAX})
            with pytest.raises(ValueError, match=r"a header of \d+ bytes, at most 1048576 expected"):
                await world.client.invoke(world.address, request, 1.0)
            assert (await world.ask(ECHO, b"x")).body == b"x"

    run_simulated(main())


def test_a_oneway_request_is_never_answered() -> None:
    async def main() -> list[Command]:
        async with World() as world:
            peer = await world.raw()
            for code in (ECHO, BROKEN, SLOW):
                peer.connection.write(encode(new_request(code, body=b"0", oneway=True)))
            peer.connection.write(encode(new_request(ECHO, body=b"two-way")))
            await asyncio.sleep(1)
            return peer.answers()

    assert [answer.body for answer in run_simulated(main())] == [b"two-way"]


@pytest.mark.parametrize(
    "junk",
    [b"\x7f\xff\xff\xff", b"\x00\x00\x00\x04\x05\x00\x00\x00", b"\x00\x00\x00\x02ab", b"GET / HTTP/1.1\r\n"],
)
def test_invalid_data_closes_only_its_own_connection(junk: bytes) -> None:
    async def main() -> tuple[bool, list[Command], bytes]:
        async with World() as world:
            await world.ask(ECHO)
            peer = await world.raw()
            peer.connection.write(encode(new_request(ECHO)) + junk)
            await asyncio.sleep(0.1)
            return peer.is_closed, peer.answers(), (await world.ask(ECHO, b"fine")).body

    closed, answers, body = run_simulated(main())
    assert closed
    assert len(answers) <= 1
    assert body == b"fine"


def test_reading_pauses_at_the_limit_of_unanswered_requests_and_resumes() -> None:
    async def main() -> tuple[int, int]:
        async with World(Limits(unanswered_max=2)) as world:
            peer = await world.raw()
            requests = [new_request(SLOW, body=b"1") for _ in range(6)]
            peer.connection.write(b"".join(map(encode, requests)))
            await asyncio.sleep(1.5)
            early = len(peer.answers())
            await asyncio.sleep(5)
            return early, early + len(peer.answers())

    assert run_simulated(main()) == (2, 6)


def test_reading_pauses_at_the_limit_of_unanswered_bytes() -> None:
    async def main() -> int:
        async with World(Limits(unanswered_bytes_max=100)) as world:
            peer = await world.raw()
            for _ in range(3):
                peer.connection.write(encode(new_request(SLOW, body=b"1" + b" " * 200)))
            await asyncio.sleep(1.5)
            return len(peer.answers())

    assert run_simulated(main()) == 1


def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    async def main() -> list[bytes]:
        answered = []

        def note(request: Command, channel: Channel) -> Reply:
            answered.append(request.body)
            return None

        network = SimulatedNetwork()
        channels: list[Channel] = []

        def accept(connection: Connection) -> Channel:
            channels.append(Channel(connection, note, Limits()))
            return channels[0]

        listener = await network.listen("127.0.0.1", 0, accept)
        peer = RawPeer()
        connection = await network.connect(listener.address, peer.accept)
        channels[0].write_paused()
        connection.write(encode(new_request(ECHO, body=b"1")))
        await asyncio.sleep(1)
        assert answered == []
        channels[0].write_resumed()
        await asyncio.sleep(1)
        return answered

    assert run_simulated(main()) == [b"1"]


@pytest.mark.parametrize("end", ["takes", "is gone", "stalls"])
def test_a_sender_waits_for_a_peer_that_does_not_read(end: str) -> None:
    async def main() -> None:
        got: list[bytes] = []

        def note(request: Command, channel: Channel) -> Reply:
            got.append(request.body)
            return None

        network = SimulatedNetwork()
        server = RemotingServer(network, note)
        address = await server.start("127.0.0.1", 0)
        client = RemotingClient(network)
        await client.send_oneway(address, new_request(ECHO, body=b"1", oneway=True))
        channel = client.channel(address)
        assert channel is not None
        channel.write_paused()
        sends = [
            asyncio.create_task(client.send_oneway(address, new_request(ECHO, body=body, oneway=True)))
            for body in (b"2", b"3")
        ]
        await asyncio.sleep(1)
        assert (got, [send.done() for send in sends]) == ([b"1"], [False, False])
        if end == "takes":
            channel.write_resumed()
            await asyncio.gather(*sends)
            await asyncio.sleep(0.1)
            assert got == [b"1", b"2", b"3"]
        elif end == "is gone":
            channel.abort()
            await asyncio.gather(
                *sends
            )  # as after every lost connection, it is not known whether the request arrived
            assert got == [b"1"]
        else:
            for send in sends:
                with pytest.raises(ConnectError, match="does not read the data"):
                    await send
        await client.close()
        await server.stop()

    run_simulated(main())


def test_more_connections_than_allowed_are_closed() -> None:
    async def main() -> tuple[bool, bool]:
        async with World(connections_max=1) as world:
            first, second = await world.raw(), await world.raw()
            await asyncio.sleep(0.1)
            return first.is_closed, second.is_closed

    assert run_simulated(main()) == (False, True)


def test_an_idle_connection_is_closed() -> None:
    async def main() -> bool:
        async with World() as world:
            peer = await world.raw()
            await asyncio.sleep(IDLE_S + 11)
            return peer.is_closed

    assert run_simulated(main())


def test_an_endless_frame_closes_its_connection_however_active_it_is() -> None:
    async def main() -> tuple[bool, bool]:
        async with World() as world:
            slow, other = await world.raw(), await world.raw()
            frame = encode(new_request(ECHO, body=bytes(200)))
            for position in range(int(IDLE_S) + 11):
                slow.connection.write(frame[position : position + 1])
                if position % 50 == 0:
                    other.connection.write(frame)
                await asyncio.sleep(1)
            return slow.is_closed, other.is_closed

    assert run_simulated(main()) == (True, False)


def test_incomplete_frames_share_a_budget() -> None:
    async def main() -> None:
        async with World() as world:
            incomplete = world.server.budgets.incomplete
            incomplete.limits = Shares(300_000, 300_000, 300_000)
            half = encode(new_request(ECHO, body=bytes(200_000)))[:100_000]
            peers = [await world.raw() for _ in range(4)]
            for peer in peers[:3]:
                peer.connection.write(half)
            await asyncio.sleep(0.1)
            assert [peer.is_closed for peer in peers] == [False] * 4
            peers[3].connection.write(half)
            await asyncio.sleep(0.1)
            assert [peer.is_closed for peer in peers] == [False, False, False, True]
            peers[3] = await world.raw()
            peers[3].connection.write(half[:60_000])  # a few bytes are always allowed
            await asyncio.sleep(0.1)
            assert not peers[3].is_closed
            for peer in peers:
                peer.connection.abort()
            await asyncio.sleep(0.1)
            assert incomplete.used == 0
            assert (await world.ask(ECHO, bytes(200_000))).code == 0
            assert incomplete.used == 0

    run_simulated(main())


def test_unanswered_requests_share_a_budget_and_others_are_refused_as_busy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with World() as world:
            budget = world.server.budgets.unanswered
            budget.limits = Shares(20_000, 20_000, 20_000)
            peers = [await world.raw() for _ in range(4)]
            for peer in peers:
                peer.connection.write(encode(new_request(SLOW, body=b"1" + b" " * 6_000)))
            await asyncio.sleep(0.1)
            codes = [[one.code for one in peer.answers()] for peer in peers]
            assert codes == [[], [], [2], [2]]
            assert (await world.ask(ECHO, b"x")).code == 0
            await asyncio.sleep(2)
            assert [one.code for one in peers[0].answers()] == [0]
            peers[0].connection.write(encode(new_request(SLOW, body=b"1" + b" " * 6_000)))
            for peer in peers:
                peer.connection.abort()
            await asyncio.sleep(2)
            assert world.server.budgets.connections.used == 1
            assert budget.used <= 4096  # what an open connection keeps

    run_simulated(main())
    (line,) = caplog.messages
    assert "bytes of unanswered requests of" in line


def test_the_body_of_a_request_that_does_not_use_it_does_not_count() -> None:
    async def main() -> list[int]:
        async with World() as world:
            world.server.budgets.unanswered.limits = Shares(20_000, 20_000, 20_000)
            world.server._bodies_used = {ECHO}
            peer = await world.raw()
            peer.connection.write(encode(new_request(SLOW, body=b"1" + b" " * 60_000)))
            peer.connection.write(encode(new_request(ECHO, body=b"1" + b" " * 60_000)))
            await asyncio.sleep(2)
            return [one.code for one in peer.answers()]

    assert run_simulated(main()) == [2, 0]


@pytest.mark.parametrize("code", [ECHO, SLOW])
def test_a_body_that_does_not_count_occupies_no_memory_until_the_answer(code: int) -> None:
    async def main() -> tuple[int, list[int]]:
        async with World() as world:
            later = Later()
            world.server._handle = lambda _request, _channel: later
            world.server._bodies_used = {ECHO}
            peer = await world.raw()
            tracemalloc.start()
            try:
                peer.connection.write(encode(new_request(code, body=bytes(4 << 20))))
                await asyncio.sleep(1)
                occupied, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            later.set(new_request(code).answer(7))
            await asyncio.sleep(1)
            return occupied, [one.code for one in peer.answers()]

    occupied, answers = run_simulated(main())
    assert (occupied >> 20, answers) == (4 if code == ECHO else 0, [7])


def test_one_address_has_a_share_of_the_connections() -> None:
    async def main() -> list[bool]:
        async with World() as world:
            world.server.budgets.connections.limits = Shares(10, 2, 1)
            peers = [await world.raw() for _ in range(3)]
            await asyncio.sleep(0.1)
            closed = [peer.is_closed for peer in peers]
            peers[0].connection.abort()
            await asyncio.sleep(0.1)
            again = await world.raw()
            await asyncio.sleep(0.1)
            return [*closed, again.is_closed]

    assert run_simulated(main()) == [False, False, True, False]


def test_a_thousand_half_open_connections_are_gone_after_the_idle_time() -> None:
    """The peers disappear without notice, each in the middle of a frame."""

    async def main() -> None:
        async with World(connections_max=1000) as world:
            half = encode(new_request(ECHO, body=bytes(2000)))[:1000]
            for _ in range(1000):
                peer = await world.raw()
                peer.connection.write(half)
            await asyncio.sleep(1)
            assert (len(world.server._channels), world.server.budgets.incomplete.used) == (1000, 1_000_000)
            world.network.silence(world.address)
            await asyncio.sleep(IDLE_S + 11)
            assert (len(world.server._channels), world.server.budgets.incomplete.used) == (0, 0)
            world.network.heal(world.address)
            assert (await world.ask(ECHO, b"alive")).body == b"alive"

    run_simulated(main())


def test_pending_answers_to_a_fast_producer_are_limited() -> None:
    async def main() -> None:
        async with World(Limits(unanswered_bytes_max=10_000)) as world:
            peer = await world.raw()
            request = encode(new_request(SLOW, body=b"1" + b" " * 1000))
            for _ in range(100):
                peer.connection.write(request)
            (channel,) = world.server._channels
            answered = most = 0
            for _ in range(300):
                await asyncio.sleep(0.1)
                most = max(most, channel._unanswered_bytes + len(channel._buffer))
                answered += len(peer.answers())
            assert answered == 100
            assert 10_000 <= most < 10_000 + len(request)

    run_simulated(main())


class Stubborn:
    """A connection whose peer reads nothing: it does not close until it is aborted."""

    local = remote = Address("127.0.0.1", 1)
    unsent_bytes = 0

    def __init__(self) -> None:
        self.aborted_at_s: float | None = None

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def abort(self) -> None:
        self.aborted_at_s = asyncio.get_running_loop().time()


class Narrow(Stubborn):
    """A connection whose peer reads one answer."""

    def __init__(self) -> None:
        super().__init__()
        self.on_write: Callable[[], None] = lambda: None
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self.on_write()


def test_each_of_many_requests_waiting_for_one_event_checks_whether_the_peer_reads() -> None:
    async def main() -> list[int]:
        event = asyncio.Event()

        async def wait(request: Command, channel: Channel) -> Reply:
            await event.wait()
            return request.answer(0, body=bytes(1000) if channel.takes else b"")

        connection = Narrow()
        channel = Channel(connection, handler({SLOW: wait}), Limits())
        connection.on_write = channel.write_paused
        for _ in range(5):
            channel.received(encode(new_request(SLOW)))
        await asyncio.sleep(1)
        event.set()
        await asyncio.sleep(1)
        return [len(decode(data[4:]).body) for data in connection.written]

    assert run_simulated(main()) == [1000, 0, 0, 0, 0]


def test_other_connections_get_a_turn_between_many_frames_of_one() -> None:
    async def main() -> list[int]:
        network, order = SimulatedNetwork(), list[int]()

        def note(request: Command, _channel: Channel) -> Reply:
            order.append(request.code)
            return request.answer(0)

        server = RemotingServer(network, note)
        address = await server.start("127.0.0.1", 0)
        many, other = RawPeer(), RawPeer()
        for peer in (many, other):
            await network.connect(address, peer.accept)
        many.connection.write(encode(new_request(1)) * 200)
        other.connection.write(encode(new_request(2)))
        await asyncio.sleep(1)
        await server.stop()
        return order

    order = run_simulated(main())
    assert order.count(1) == 200
    assert order.index(2) <= 64


def test_large_answers_are_refused_beyond_the_share_of_what_peers_do_not_read() -> None:
    async def main() -> None:
        budgets = server_budgets(10, 1 << 20)
        budgets.unread.limits = Shares(500_000, 500_000, 500_000)
        body = bytes(200_000)

        def answer(request: Command, _channel: Channel) -> Reply:
            return request.answer(0, body=body)

        def answers(peer: Narrow) -> list[tuple[int, int]]:
            return [(one.code, len(one.body)) for one in (decode(data[4:]) for data in peer.written)]

        peers = [Narrow() for _ in range(4)]
        channels = [Channel(peer, handler({7: answer}), Limits(), budgets=budgets) for peer in peers]
        for peer, channel in zip(peers, channels, strict=True):
            peer.unsent_bytes = len(body)
            peer.on_write = channel.write_paused
            channel.received(encode(new_request(7)))
        busy = (ResponseCode.SYSTEM_BUSY, 0)
        assert [answers(peer) for peer in peers] == [[(0, len(body))]] * 2 + [[busy]] * 2
        channels[0].closed()
        peers[1].unsent_bytes = 0
        channels[1].write_resumed()
        body = bytes(10)  # a small answer is always sent
        channels[2].write_resumed()
        channels[2].received(encode(new_request(7)))
        assert answers(peers[2]) == [busy, (0, 10)]
        channels[2].closed()
        channels[3].closed()
        assert budgets.unread.used == 0

    run_simulated(main())


def test_closing_does_not_wait_for_a_peer_that_does_not_read() -> None:
    async def main() -> float | None:
        connection = Stubborn()
        channel = Channel(connection, handler(PROCESSORS), Limits())
        channel.close()
        channel.close()
        await asyncio.sleep(20)
        return connection.aborted_at_s

    assert run_simulated(main()) == CLOSE_S


def test_stopping_answers_the_requests_in_progress() -> None:
    async def main() -> bytes:
        async with World() as world:
            waiting = asyncio.create_task(world.ask(SLOW, b"0.5"))
            await asyncio.sleep(0.1)
            await world.server.stop()
            return (await waiting).body

    assert run_simulated(main()) == b"0.5"


def test_both_ends_may_send_requests() -> None:
    async def main() -> bytes:
        asked: list[Awaitable[Command]] = []

        def ask_back(request: Command, channel: Channel) -> Reply:
            asked.append(asyncio.ensure_future(channel.invoke(new_request(ECHO, body=b"back"), 1.0)))
            return request.answer(0)

        network = SimulatedNetwork()
        server = RemotingServer(network, ask_back)
        address = await server.start("127.0.0.1", 0)
        client = RemotingClient(network, handler(PROCESSORS))
        await client.invoke(address, new_request(7), 1.0)
        answer = await asked[0]
        await client.close()
        await server.stop()
        return answer.body

    assert run_simulated(main()) == b"back"


def test_a_silent_partition_is_a_timeout_on_one_side_only_until_it_heals() -> None:
    async def main() -> bytes:
        async with World() as world:
            await world.ask(ECHO)
            world.network.silence(world.address)
            with suppress(RequestTimeoutError):
                await world.ask(ECHO, b"lost")
                pytest.fail("an answer came through a partition")
            world.network.heal(world.address)
            return (await world.ask(ECHO, b"healed")).body

    assert run_simulated(main()) == b"healed"
