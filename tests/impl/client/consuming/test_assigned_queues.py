"""Tests pull loops with a scripted broker: offsets of pulls, and the end of an assignment."""
# ruff: noqa: ARG002  # fakes have the signatures of what they stand for

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import pytest

from mqproof.impl.client.consuming.assigned_queues import AssignedQueues, PullLimits
from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult, ReceivedMessage, RefusalError
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.simulated_loop import run_simulated

T = TypeVar("T")

QUEUE = MessageQueue("T", "b", 0)


def found(*offsets: int, next_offset: int | None = None) -> PullResult:
    messages = tuple(StoredMessage(Message("T", b"x"), offset, 0, 0, 0, 0) for offset in offsets)
    return PullResult("FOUND", offsets[-1] + 1 if next_offset is None else next_offset, 0, 100, messages)


def nothing(next_offset: int, status: str = "NO_NEW_MESSAGE") -> PullResult:
    return PullResult(status, next_offset, 0, 100)


class ScriptedCalls(GroupRequests):
    """Answers pulls one by one, and then holds them."""

    def __init__(self, *answers: PullResult | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, float]] = []

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_count: int = 32,
        tags: str | MessageSelector = "*",
        hold_ms: int = 0,
    ) -> PullResult:
        self.asked.append((offset, round(asyncio.get_running_loop().time(), 3)))
        if not self.answers:
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class KeptOffsets:
    """An OffsetStore in memory; a save takes `slow_s`."""

    def __init__(self) -> None:
        self.resets: list[int] = []
        self.slow_s = 0.0

    async def load(self, queue: MessageQueue) -> int | None:
        return None

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        await asyncio.sleep(self.slow_s)
        if reset:
            self.resets += offsets.values()

    async def release(self, queue: MessageQueue, offset: int) -> None:
        pass


class Site:
    """Queues that are read with scripted calls, and the results."""

    def __init__(self, calls: ScriptedCalls) -> None:
        self.calls = calls
        self.kept = KeptOffsets()
        self.offsets = Offsets(self.kept)
        self.received: list[int] = []
        self.settle_s = 0.0
        self.queues = AssignedQueues(
            calls,
            self.offsets,
            PullLimits(),
            {"T": "*"}.__getitem__,
            self._receive,
            self._settle,
            ConsumeRates(),
        )

    def _receive(self, held: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        self.received += [message.queue_offset for message in messages]

    async def _settle(self, held: ProcessQueue) -> None:
        await asyncio.sleep(self.settle_s)


def at(scenario: Callable[[Site], Awaitable[T]], *answers: PullResult | Exception) -> T:
    async def main() -> T:
        site = Site(ScriptedCalls(*answers))
        try:
            return await scenario(site)
        finally:
            site.queues.stop()

    return run_simulated(main())


def test_each_pull_starts_at_the_offset_of_the_last_answer() -> None:
    async def scenario(site: Site) -> tuple[list[int], list[int]]:
        site.queues.assign(QUEUE, 3)
        await asyncio.sleep(1)
        return [offset for offset, _ in site.calls.asked], site.received

    answers = [found(3, 4), nothing(5), nothing(9, "NO_MATCHED_MESSAGE"), found(11, next_offset=20)]
    assert at(scenario, *answers) == ([3, 5, 5, 9, 20], [3, 4, 11])


def test_skipped_messages_count_as_consumed_only_while_no_message_is_held() -> None:
    async def scenario(site: Site) -> list[int | None]:
        seen = []
        held = site.queues.assign(QUEUE, 0)
        await asyncio.sleep(0.1)
        seen.append(site.offsets.get(QUEUE))
        site.offsets.advance(QUEUE, held.remove(held.first(1)))
        seen.append(site.offsets.get(QUEUE))
        return seen

    assert at(scenario, nothing(5, "NO_MATCHED_MESSAGE"), found(5), nothing(9, "NO_MATCHED_MESSAGE")) == [
        5,
        6,
    ]


def test_pulling_continues_as_soon_as_there_is_room() -> None:
    async def scenario(site: Site) -> list[int]:
        asked = []
        held = site.queues.assign(QUEUE, 0)
        await asyncio.sleep(1)
        asked.append(len(site.calls.asked))
        held.remove(held.first(1))  # 1 and 2001 are close enough to each other
        await asyncio.sleep(0)
        asked.append(len(site.calls.asked))
        return asked

    assert at(scenario, found(0, 1, 2001)) == [1, 2]


def test_pulling_pauses_after_errors_and_more_briefly_after_flow_control() -> None:
    async def scenario(site: Site) -> list[tuple[int, float]]:
        site.queues.assign(QUEUE, 0)
        await asyncio.sleep(5)
        return site.calls.asked

    errors = [ClientError("away"), RefusalError("slowly", ResponseCode.FLOW_CONTROL), RefusalError("no", 1)]
    assert at(scenario, *errors) == [(0, 0.0), (0, 1.0), (0, 1.02), (0, 2.02)]


def test_an_unexpected_error_does_not_stop_the_reading_of_a_queue() -> None:
    async def scenario(site: Site) -> tuple[list[int], list[int]]:
        site.queues.assign(QUEUE, 0)
        await asyncio.sleep(5)
        return [offset for offset, _ in site.calls.asked], site.received

    assert at(scenario, found(0), RuntimeError("injected"), found(1)) == ([0, 1, 1, 2], [0, 1])


@pytest.mark.parametrize(
    "nonsense", [found(4, 4), found(5, 4), found(2), found(4, 6, next_offset=6), nothing(2)]
)
def test_deliv_4_an_answer_that_does_not_advance_is_an_error_and_none_of_it_is_consumed(
    nonsense: PullResult,
) -> None:
    """DELIV-4 QueueOrder: whatever a broker answers."""

    async def scenario(site: Site) -> tuple[list[tuple[int, float]], list[int]]:
        site.queues.assign(QUEUE, 3)
        await asyncio.sleep(5)
        return site.calls.asked, site.received

    assert at(scenario, nonsense, found(3)) == ([(3, 0.0), (3, 1.0), (4, 1.0)], [3])


def test_a_corrected_offset_is_stored_as_a_reset_and_read_from_with_no_message_held() -> None:
    async def scenario(site: Site) -> tuple[list[int], list[int], bool, list[int]]:
        first = site.queues.assign(QUEUE, 3)
        await asyncio.sleep(1)
        (held,) = site.queues.process_queues()
        asked = [offset for offset, _ in site.calls.asked]
        return asked, site.kept.resets, first.is_dropped, [m.queue_offset for m in held.first(9)]

    assert at(scenario, found(3), nothing(1, "OFFSET_ILLEGAL"), found(1)) == ([3, 4, 1, 2], [1], True, [1])


def test_a_move_waits_for_running_listeners_and_then_stores_and_reads() -> None:
    async def scenario(site: Site) -> list[object]:
        seen: list[object] = []
        held = site.queues.assign(QUEUE, 3)
        await asyncio.sleep(1)
        site.settle_s = 5.0
        moving = asyncio.create_task(site.queues.go_to(QUEUE, 50))
        await asyncio.sleep(4)
        seen += [held.is_dropped, list(site.kept.resets), len(site.calls.asked)]
        await moving
        await asyncio.sleep(0)
        return [*seen, list(site.kept.resets), site.calls.asked[-1], QUEUE in site.queues]

    assert at(scenario, found(3)) == [True, [], 2, [50], (50, 6.0), True]


@pytest.mark.parametrize(("settle_s", "slow_s"), [(5.0, 0.0), (0.0, 5.0)])
def test_deliv_6_a_queue_that_is_lost_while_it_moves_is_not_taken_back(
    settle_s: float, slow_s: float
) -> None:
    """DELIV-6 OneOwner: the move ends with the assignment."""

    async def scenario(site: Site) -> tuple[bool, list[int], int]:
        site.queues.assign(QUEUE, 3)
        await asyncio.sleep(1)
        site.settle_s, site.kept.slow_s = settle_s, slow_s
        moving = asyncio.create_task(site.queues.go_to(QUEUE, 50))
        await asyncio.sleep(1)
        assert site.queues.drop(QUEUE) is not None
        await moving
        await asyncio.sleep(1)
        return QUEUE in site.queues, site.kept.resets, len(site.calls.asked)

    is_read, resets, asked = at(scenario, found(3))
    assert (is_read, asked) == (False, 2)
    assert resets == ([] if settle_s else [50])


def test_a_queue_that_is_not_read_cannot_move_and_a_moving_one_does_not_move_twice() -> None:
    async def scenario(site: Site) -> list[int]:
        await site.queues.go_to(QUEUE, 50)
        site.queues.assign(QUEUE, 3)
        site.settle_s = 1.0
        await asyncio.gather(site.queues.go_to(QUEUE, 60), site.queues.go_to(QUEUE, 70))
        return site.kept.resets

    assert at(scenario) == [60]
