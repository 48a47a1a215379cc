"""Tests the bytes and frames that one connection may use, at their limits.

Source: docs/reference/protocol/framing.md, "Shares".
"""

import asyncio

import pytest

from mqproof.impl.remoting.budget import ServerBudgets, server_budgets
from mqproof.impl.remoting.channel import Channel, Limits, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command, encode
from mqproof.impl.remoting.later import Later
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.remoting.test_channel_state import _Connection

KIB = 1024


class Other:
    """The connection of another address."""

    remote = ("10.0.0.9", 1)


OTHER = Other()


def frame(size: int) -> bytes:
    """Return a request whose frame has this size, without its length field."""
    bare = encode(Command(1, 1))
    return encode(Command(1, 1, body=bytes(size + 4 - len(bare))))


class Site:
    """A channel whose requests are answered at once, or later if `is_late`."""

    def __init__(self, *, is_late: bool = False, answer_bytes: int = 0) -> None:
        self.budgets: ServerBudgets = server_budgets(100, 16 << 20)
        self.connection = _Connection()
        self.is_late, self.answer_bytes = is_late, answer_bytes
        self.handled = 0
        self.late: list[tuple[Command, Later]] = []
        self.channel = Channel(self.connection, self._handle, Limits(), budgets=self.budgets)

    def _handle(self, request: Command, _channel: Channel) -> Reply | Later:
        self.handled += 1
        if not self.is_late:
            return request.answer(0, body=bytes(self.answer_bytes))
        later = Later()
        self.late.append((request, later))
        return later

    def end_one(self) -> None:
        request, later = self.late.pop(0)
        later.set(request.answer(0))

    def codes(self) -> list[int]:
        return [answer.code for answer in self.connection.answers()]


# Turns of the event loop.


def test_other_connections_get_a_turn_after_64_frames() -> None:
    async def main() -> None:
        site = Site()
        site.channel.received(frame(200) * 63)
        assert (site.handled, site.connection.calls) == (63, [])
        site.channel.received(frame(200) * 66)
        counts = [site.handled]
        for _ in range(6):
            await asyncio.sleep(0)
            counts.append(site.handled)
        assert sorted(set(counts)) == [64, 128, 129]
        assert site.connection.calls == ["pause", "resume"] * 2

    run_simulated(main())


@pytest.mark.parametrize(("last", "calls"), [(64 * KIB - 1, []), (64 * KIB, ["pause"])])
@pytest.mark.parametrize("is_first_turn", [True, False])
def test_other_connections_get_a_turn_after_frames_of_256_kib(
    last: int, calls: list[str], is_first_turn: bool
) -> None:
    async def main() -> None:
        site = Site()
        if not is_first_turn:
            site.channel.received(frame(200) * 64)
            await asyncio.sleep(0.1)
        before = len(site.connection.calls)
        site.channel.received(frame(64 * KIB) * 3 + frame(last))
        assert site.connection.calls[before:] == calls

    run_simulated(main())


# Unanswered requests.


def test_unanswered_requests_reserve_bytes_in_multiples_of_4_kib() -> None:
    async def main() -> None:
        site = Site(is_late=True)
        used = []
        for size in (200, 4 * KIB - 200, 1 * KIB, 7 * KIB + 1):
            site.channel.received(frame(size))
            used.append(site.budgets.unanswered.used // KIB)
        assert used == [4, 4, 8, 16]
        used = []
        while site.late:
            site.end_one()
            used.append(site.budgets.unanswered.used // KIB)
        assert used == [16, 16, 8, 0]

    run_simulated(main())


def test_reserved_bytes_are_given_back_when_two_multiples_are_free() -> None:
    async def main() -> list[int]:
        site = Site(is_late=True)
        used = []
        for size in (4 * KIB - 1, 1000, 4 * KIB, 3 * KIB):
            site.channel.received(frame(size))
        for _ in range(4):
            used.append(site.budgets.unanswered.used // KIB)
            site.end_one()
        used.append(site.budgets.unanswered.used // KIB)
        return used

    assert run_simulated(main()) == [12, 12, 12, 4, 0]


def test_a_request_that_is_answered_at_once_reserves_nothing_afterwards() -> None:
    async def main() -> None:
        site = Site()
        for _ in range(3):
            site.channel.received(frame(10 * KIB))
            assert site.budgets.unanswered.used == 0
        assert site.codes() == [0, 0, 0]

    run_simulated(main())


@pytest.mark.parametrize(("size", "code"), [(4 * KIB, None), (4 * KIB + 1, ResponseCode.SYSTEM_BUSY)])
def test_a_connection_may_have_4_kib_unanswered_even_if_others_use_all(size: int, code: int | None) -> None:
    async def main() -> None:
        site = Site(is_late=True)
        budget = site.budgets.unanswered
        budget.take(OTHER, budget.limits.total)
        site.channel.received(frame(size))
        assert site.codes() == ([] if code is None else [code])
        assert budget.used - budget.limits.total == (4 * KIB if code is None else 0)
        site.channel.received(frame(200 if code else 4 * KIB))
        assert len(site.late) == 1, "what is refused does not count"

    run_simulated(main())


@pytest.mark.parametrize(("free", "codes"), [(4 * KIB, []), (4 * KIB - 1, [ResponseCode.SYSTEM_BUSY])])
def test_a_connection_that_needs_more_takes_only_the_difference(free: int, codes: list[int]) -> None:
    async def main() -> list[int]:
        site = Site(is_late=True)
        site.channel.received(frame(4 * KIB))
        budget = site.budgets.unanswered
        budget.take(OTHER, budget.limits.total - budget.used - free)
        site.channel.received(frame(4 * KIB))
        return site.codes()

    assert run_simulated(main()) == codes


# Answers to a peer that does not read.


@pytest.mark.parametrize(
    ("answer_bytes", "code"), [(64 * KIB, ResponseCode.SUCCESS), (64 * KIB + 1, ResponseCode.SYSTEM_BUSY)]
)
def test_an_answer_of_up_to_64_kib_is_sent_whatever_is_unread(answer_bytes: int, code: int) -> None:
    async def main() -> list[int]:
        site = Site(answer_bytes=answer_bytes)
        site.connection.unsent_bytes = site.budgets.unread.limits.connection
        site.channel.write_paused()
        site.channel._reading = True  # its requests arrived before
        site.channel.received(frame(200))
        return site.codes()

    assert run_simulated(main()) == [code]


# Incomplete frames.


@pytest.mark.parametrize(("size", "calls"), [(64 * KIB, []), (64 * KIB + 1, ["abort"])])
def test_a_connection_may_have_64_kib_of_a_frame_even_if_others_use_all(size: int, calls: list[str]) -> None:
    async def main() -> None:
        site = Site()
        budget = site.budgets.incomplete
        budget.take(OTHER, budget.limits.total)
        site.channel.received(frame(100 * KIB)[:size])
        assert site.connection.calls == calls
        assert budget.used == budget.limits.total + size
        site.channel.closed()
        assert budget.used == budget.limits.total

    run_simulated(main())


def test_nothing_is_read_from_a_connection_that_exceeded_its_share_of_incomplete_frames() -> None:
    async def main() -> None:
        site = Site()
        budget = site.budgets.incomplete
        budget.take(OTHER, budget.limits.total)
        data = frame(100 * KIB)
        site.channel.received(data[: 70 * KIB])
        site.channel.received(data[70 * KIB :])
        assert site.handled == 0

    run_simulated(main())


def test_a_connection_that_receives_nothing_more_is_not_ended_by_the_use_of_others() -> None:
    async def main() -> list[str]:
        site = Site()
        site.channel.received(frame(100 * KIB)[: 70 * KIB])
        budget = site.budgets.incomplete
        budget.take(OTHER, budget.limits.total)
        site.channel.write_paused()
        site.channel.write_resumed()
        await asyncio.sleep(0.1)
        return site.connection.calls

    assert run_simulated(main()) == ["pause", "resume"]
