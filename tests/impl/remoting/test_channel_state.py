"""Tests what a channel asks of its connection, call by call; test_channel.py has whole networks."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mqproof.impl.remoting.budget import Percentages, ServerBudgets, server_budgets
from mqproof.impl.remoting.channel import (
    CLOSE_S,
    Channel,
    ConnectError,
    ConnectionLostError,
    Limits,
    Reply,
    RequestTimeoutError,
)
from mqproof.impl.remoting.command import Command, decode, encode, new_request
from mqproof.impl.remoting.frame import read_frame
from mqproof.impl.remoting.later import Later
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated

FRAME = encode(new_request(1, body=b"x"))


class _Connection:
    """Records the calls. `unsent_bytes` is what the test says."""

    local = Address("127.0.0.1", 1)
    remote = Address("127.0.0.1", 2)

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.written = bytearray()
        self.unsent_bytes = 0

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def answers(self) -> list[Command]:
        buffer, found = bytearray(self.written), []
        while (frame := read_frame(buffer, 1 << 20)) is not None:
            found.append(decode(frame))
        return found


class _Site:
    """A channel whose requests are answered when the test says so."""

    def __init__(self, budgets: ServerBudgets | None = None, **limits: int) -> None:
        self.connection = _Connection()
        self.requests: list[Command] = []
        self.may_answer = asyncio.Event()
        self.channel = Channel(self.connection, self._handle, Limits(**limits), budgets=budgets)

    async def _handle(self, request: Command, _channel: Channel) -> Reply:
        self.requests.append(request)
        await self.may_answer.wait()
        return request.answer(0)


def _play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    run_simulated(main())


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_reading_pauses_while_too_many_requests_are_in_progress() -> None:
    async def scenario() -> None:
        site = _Site(unanswered_max=2)
        site.channel.received(FRAME)
        await _turns()
        assert (site.channel.unanswered, site.connection.calls) == (1, [])
        site.channel.received(FRAME + FRAME)
        await _turns()
        assert (len(site.requests), site.connection.calls) == (2, ["pause"])
        site.may_answer.set()
        await _turns()
        assert (len(site.requests), site.channel.unanswered) == (3, 0)
        assert site.connection.calls == ["pause", "resume"]
        assert len(site.connection.answers()) == 3

    _play(scenario)


def test_a_killed_channel_begins_no_more_requests() -> None:
    async def scenario() -> None:
        site = _Site(unanswered_max=1)
        site.channel.received(FRAME + FRAME)
        await _turns()
        site.channel.kill()
        await _turns()
        assert (len(site.requests), site.connection.calls) == (1, ["pause", "abort"])
        assert site.channel.unanswered == 0

    _play(scenario)


@pytest.mark.parametrize("in_time", [False, True])
def test_a_drained_channel_waits_for_the_requests_in_progress(in_time: bool) -> None:
    async def scenario() -> None:
        site = _Site()
        site.channel.received(FRAME + FRAME)
        await _turns()
        draining = asyncio.create_task(site.channel.drain(1.0))
        await _turns()
        assert site.connection.calls == ["pause"]
        await asyncio.sleep(0.9)
        assert not draining.done()
        if in_time:
            site.may_answer.set()
            await _turns()
            assert draining.done(), "the last answer ends the drain"
        await asyncio.sleep(0.2)
        assert draining.done()
        site.may_answer.set()  # too late: the requests were cancelled
        await _turns()
        assert site.channel.unanswered == 0
        assert len(site.connection.answers()) == (2 if in_time else 0)
        assert site.connection.calls == ["pause"]

    _play(scenario)


def test_a_channel_without_requests_is_drained_at_once() -> None:
    async def scenario() -> None:
        site = _Site()
        await site.channel.drain(1.0)
        assert site.connection.calls == ["pause"]

    _play(scenario)


def test_a_close_that_takes_too_long_becomes_an_abort_once() -> None:
    async def scenario() -> None:
        site = _Site()
        site.channel.close()
        await asyncio.sleep(9.9)
        site.channel.close()
        assert site.connection.calls == ["close", "close"]
        await asyncio.sleep(0.2)
        assert site.connection.calls == ["close", "close", "abort"]
        await asyncio.sleep(2 * CLOSE_S)
        assert site.connection.calls == ["close", "close", "abort"]

    _play(scenario)


@pytest.mark.parametrize("first", ["close", "closed"])
def test_a_closed_connection_is_not_aborted(first: str) -> None:
    async def scenario() -> None:
        site = _Site()
        if first == "close":
            site.channel.close()
        site.channel.closed()
        site.channel.close()
        await asyncio.sleep(2 * CLOSE_S)
        assert "abort" not in site.connection.calls

    _play(scenario)


def test_an_incomplete_frame_waits_since_its_first_byte() -> None:
    async def scenario() -> None:
        site = _Site()
        begin_s = site.channel.active_at_s
        assert not site.channel.is_waiting_since(begin_s + 99), "nothing is missing"
        site.channel.received(FRAME[:5])
        assert not site.channel.is_waiting_since(begin_s)
        assert site.channel.is_waiting_since(begin_s + 0.001)
        await asyncio.sleep(10)
        site.channel.received(FRAME[5:8])
        assert site.channel.is_waiting_since(begin_s + 5)
        site.channel.received(FRAME[8:] + FRAME[:3])
        assert not site.channel.is_waiting_since(begin_s + 5), "another frame has begun since"
        assert site.channel.is_waiting_since(begin_s + 99)
        site.channel.write_paused()
        assert not site.channel.is_waiting_since(begin_s + 99), "it is not read"

    _play(scenario)


def test_a_peer_that_does_not_read_needs_no_budget() -> None:
    async def scenario() -> None:
        site = _Site()
        site.connection.unsent_bytes = 1000
        takes = [site.channel.takes]
        site.channel.write_paused()
        takes.append(site.channel.takes)
        site.channel.send_oneway(new_request(1))
        site.channel.write_resumed()
        assert [*takes, site.channel.takes] == [True, False, True]
        assert site.connection.calls == ["pause", "resume"]

    _play(scenario)


def test_unread_bytes_are_taken_from_the_budget_until_they_are_read() -> None:
    async def scenario() -> None:
        budgets = server_budgets(100, 1 << 20)
        site = _Site(budgets)
        used = []
        site.connection.unsent_bytes = 1000
        site.channel.send_oneway(new_request(1))
        used.append(budgets.unread.used)
        site.channel.write_paused()
        used.append(budgets.unread.used)
        site.connection.unsent_bytes = 1500
        site.channel.send_oneway(new_request(1))
        used.append(budgets.unread.used)
        site.channel.write_resumed()
        used.append(budgets.unread.used)
        site.channel.write_paused()
        used.append(budgets.unread.used)
        site.channel.closed()
        used.append(budgets.unread.used)
        assert used == [0, 1000, 1500, 0, 1500, 0]

    _play(scenario)


def test_each_share_of_bytes_has_room_for_one_frame() -> None:
    budgets = server_budgets(10_000, 16 << 20, Percentages(address=3, connection=1))
    assert (budgets.connections.limits.address, budgets.connections.limits.connection) == (1000, 1)
    for budget in (budgets.unanswered, budgets.incomplete, budgets.unread):
        assert budget.limits.connection == 16 << 20
        assert budget.limits.address == 16 << 20
        assert budget.limits.total == 256 << 20
    larger = server_budgets(10_000, 1 << 20, Percentages(address=50, connection=10)).unread.limits
    assert (larger.address, larger.connection) == (128 << 20, (256 << 20) // 10)


def test_reading_is_paused_once_and_not_on_a_closed_connection() -> None:
    async def scenario() -> None:
        site = _Site()
        site.channel.write_paused()
        site.channel.write_paused()
        assert site.connection.calls == ["pause"]
        site.channel.write_resumed()
        site.channel.closed()
        site.channel.write_paused()
        site.channel.write_resumed()
        assert site.connection.calls == ["pause", "resume"]

    _play(scenario)


def test_a_closed_connection_needs_no_timer_for_its_requests() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        site = _Site()
        asking = asyncio.create_task(site.channel.invoke(new_request(1), 3600.0))
        await _turns()
        site.channel.closed()
        with pytest.raises(ConnectionLostError, match=r"the connection to 127\.0\.0\.1:2 was lost"):
            await asking
        assert [each for each in loop._timers if not each[2].cancelled()] == []  # type: ignore[attr-defined]

    _play(scenario)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_request_that_cannot_be_sent_is_a_connect_error(is_open: bool) -> None:
    async def scenario() -> None:
        site = _Site(pending_max=1)
        asking = asyncio.create_task(site.channel.invoke(new_request(1), 1.0))
        await _turns()
        if not is_open:
            site.channel.closed()
            with pytest.raises(ConnectionLostError):
                await asking
        reason = "1 requests to 127.0.0.1:2 are already" if is_open else "to 127.0.0.1:2 is closed"
        with pytest.raises(ConnectError, match=reason):
            await site.channel.invoke(new_request(1), 1.0)
        if is_open:
            with pytest.raises(RequestTimeoutError, match=r"no answer from 127\.0\.0\.1:2 within 1000 ms"):
                await asking
            later = asyncio.create_task(site.channel.invoke(new_request(1), 1.0))
            await asyncio.sleep(0.999)
            assert not later.done(), "the request that timed out does not count any more"
            await asyncio.sleep(0.001)
            assert later.done()
            later.exception()

    _play(scenario)


def test_a_reply_that_is_set_later_is_sent_when_it_is_set() -> None:
    async def scenario() -> None:
        connection, later, asked = _Connection(), Later(), list[Command]()

        def handle(request: Command, _channel: Channel) -> Later:
            asked.append(request)
            return later

        channel = Channel(connection, handle, Limits())
        channel.received(FRAME)
        assert (channel.unanswered, connection.answers()) == (1, [])
        later.set(asked[0].answer(0, remark="late"))
        assert (channel.unanswered, [one.remark for one in connection.answers()]) == (0, ["late"])

    _play(scenario)


def test_reading_stays_paused_while_requests_are_in_progress_although_the_peer_reads_again() -> None:
    async def scenario() -> None:
        site = _Site(unanswered_max=1)
        site.channel.received(FRAME)
        await _turns()
        site.channel.write_paused()
        site.channel.write_resumed()
        assert site.connection.calls == ["pause"]
        site.may_answer.set()
        await _turns()
        assert site.connection.calls == ["pause", "resume"]

    _play(scenario)


def test_nothing_is_read_after_an_invalid_frame() -> None:
    async def scenario() -> None:
        site = _Site()
        for data in (bytes(8), FRAME, FRAME):
            site.channel.received(data)
        await _turns()
        assert (site.requests, site.connection.calls) == ([], ["abort"])

    _play(scenario)


def test_a_response_counts_once_and_only_for_its_own_request() -> None:
    async def scenario() -> None:
        site = _Site()
        asking = asyncio.create_task(site.channel.invoke(new_request(1), 1.0))
        await _turns()
        [asked] = site.connection.answers()
        unknown = new_request(1).answer(0)
        site.channel.received(encode(unknown))
        await _turns()
        assert not asking.done()
        site.channel.received(encode(asked.answer(0, remark="a")) + encode(asked.answer(0, remark="b")))
        assert (await asking).remark == "a"
        site.channel.received(encode(asked.answer(0, remark="c")))

    _play(scenario)


def test_a_handler_may_leave_a_request_without_an_answer() -> None:
    async def scenario() -> None:
        connection = _Connection()
        channel = Channel(connection, lambda _request, _channel: None, Limits())
        channel.received(FRAME + FRAME)
        assert (connection.answers(), channel.unanswered, connection.calls) == ([], 0, [])

    _play(scenario)
