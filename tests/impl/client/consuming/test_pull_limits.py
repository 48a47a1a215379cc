"""Tests the pull loops at their limits, and what they log, with a scripted broker."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from mqproof.impl.client.consuming.assigned_queues import AssignedQueues, PullLimits
from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult, ReceivedMessage, RefusalError
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.client.consuming.test_assigned_queues import QUEUE, ScriptedCalls, Site, at, found, nothing

OTHER = MessageQueue("U", "b", 0)


class Rates(ConsumeRates):
    def __init__(self) -> None:
        self.pulls: list[tuple[str, int, float, float]] = []

    def pulled(self, topic: str, count: int, took_s: float, now_s: float) -> None:
        self.pulls.append((topic, count, took_s, now_s))


class SlowCalls(ScriptedCalls):
    """Answers after 2 s, and records the arguments of each pull."""

    def __init__(self, *answers: PullResult | Exception) -> None:
        super().__init__(*answers)
        self.arguments: list[dict[str, Any]] = []

    async def pull(self, queue: MessageQueue, offset: int, **arguments: Any) -> PullResult:
        self.arguments.append(arguments)
        await asyncio.sleep(2)
        return await super().pull(queue, offset, **arguments)


def reading(
    scenario: Callable[[Site], Awaitable[None]], calls: ScriptedCalls, limits: PullLimits | None = None
) -> None:
    """Run a scenario with other limits than the usual ones."""

    async def main() -> None:
        site = Site(calls)
        site.queues = AssignedQueues(
            calls, site.offsets, limits or PullLimits(), {"T": "A", "U": "*"}.__getitem__, site._receive,
            site._settle, Rates(),
        )  # fmt: skip
        try:
            await scenario(site)
        finally:
            site.queues.stop()

    run_simulated(main())


def sized(offset: int, size: int) -> PullResult:
    stored = StoredMessage(Message("T", bytes(size), reconsume_times=2), offset, 0, 0, 0, 0)
    return PullResult("FOUND", offset + 1, 3, 100, (stored,))


@pytest.mark.parametrize(
    ("limits", "answers", "pulls"),
    [
        (PullLimits(messages_max=2), [found(0), found(1)], 3),
        (PullLimits(messages_max=1), [found(0), found(1)], 2),
        (PullLimits(bytes_max=5), [sized(0, 5)], 2),
        (PullLimits(bytes_max=4), [sized(0, 5)], 1),
        (PullLimits(span_max=7), [found(0, 7)], 2),
        (PullLimits(span_max=6), [found(0, 7)], 1),
        (PullLimits(span_max=None), [found(0, 9999)], 2),
        (PullLimits(total_bytes_max=6), [sized(0, 5)], 2),
        (PullLimits(total_bytes_max=5), [sized(0, 5)], 1),
    ],
)
def test_pulling_pauses_only_above_a_limit(limits: PullLimits, answers: list[PullResult], pulls: int) -> None:
    async def scenario(site: Site) -> None:
        held = site.queues.assign(QUEUE, 0)
        await asyncio.sleep(1)
        assert len(site.calls.asked) == pulls
        held.remove(held.first(9))
        await asyncio.sleep(1)
        assert len(site.calls.asked) == len(answers) + 1

    reading(scenario, ScriptedCalls(*answers), limits)


class Shrunk(asyncio.Event):
    """Fails a reader that looks for room again and again."""

    waits = 0

    async def wait(self) -> Literal[True]:
        self.waits += 1
        assert self.waits < 10
        return await super().wait()


def test_a_queue_that_is_still_full_waits_for_more_room(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        held = site.queues.assign(QUEUE, 0)
        held.shrunk = Shrunk()
        await asyncio.sleep(1)
        for pulls in (1, 1, 2):
            held.remove(held.first(1))
            await asyncio.sleep(1)
            assert len(site.calls.asked) == pulls

    reading(scenario, ScriptedCalls(found(0, 1, 2, 3, 4)), PullLimits(messages_max=2))
    assert caplog.messages == []


class Long(bytes):
    """Stands for a body of another length."""

    def __new__(cls, _length: int) -> "Long":
        return super().__new__(cls)

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def long(length: int) -> PullResult:
    stored = StoredMessage(Message("T", Long(length)), 0, 0, 0, 0, 0)
    return PullResult("FOUND", 1, 0, 100, (stored,))


@pytest.mark.parametrize(
    ("most", "more"),
    [
        (found(*range(1000)), found(*range(1001))),
        (long(100 << 20), long((100 << 20) + 1)),
        (found(0, 2000), found(0, 2001)),
    ],
    ids=["messages", "bytes", "span"],
)
def test_the_usual_limits_of_one_queue_are_1000_messages_100_mib_and_a_span_of_2000(
    most: PullResult, more: PullResult
) -> None:
    async def scenario(site: Site) -> None:
        site.queues.assign(QUEUE, 0)
        await asyncio.sleep(1)
        pulls.append(len(site.calls.asked))

    pulls: list[int] = []
    for answer in (most, more):
        at(scenario, answer)
    assert pulls == [2, 1]


def test_a_usual_pull_is_held_15_seconds_and_has_32_messages_and_all_queues_have_512_mib() -> None:
    calls = SlowCalls()

    async def scenario(site: Site) -> None:
        site.queues.assign(QUEUE, 0)
        await asyncio.sleep(1)
        (arguments,) = calls.arguments
        assert arguments.pop("room")() == 512 << 20
        assert arguments == {"max_count": 32, "tags": "A", "hold_ms": 15_000}

    reading(scenario, calls)


def test_a_full_consumer_looks_for_room_every_50_ms_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(site: Site) -> None:
        held = site.queues.assign(QUEUE, 0)
        asyncio.get_running_loop().call_later(0.12, lambda: held.remove(held.first(9)))
        await asyncio.sleep(1)
        assert site.calls.asked == [(0, 0.0), (1, 0.15)]

    reading(scenario, ScriptedCalls(sized(0, 5)), PullLimits(total_bytes_max=5))
    (line,) = caplog.messages
    assert "pulling pauses: the consumer holds 5 bytes of messages" in line


def test_a_pull_has_the_limits_and_the_tags_and_is_timed() -> None:
    calls = SlowCalls(sized(0, 5))

    async def scenario(site: Site) -> None:
        received: list[ReceivedMessage] = []
        site.queues._receive = lambda _held, messages: received.extend(messages)
        await asyncio.sleep(7)
        held = site.queues.assign(QUEUE, 0)
        await asyncio.sleep(3)
        first, second = calls.arguments
        room = first.pop("room")
        assert first == {"max_count": 11, "tags": "A", "hold_ms": 12}
        assert second["room"]() == room() == 95
        assert held.pulled_s == 9
        rates = site.queues._rates
        assert isinstance(rates, Rates)
        assert rates.pulls == [("T", 1, 2.0, 9.0)]
        (message,) = received
        assert (message.queue, message.reconsume_times, message.min_offset, message.max_offset) == (
            QUEUE, 2, 3, 100,
        )  # fmt: skip

    reading(scenario, calls, PullLimits(batch=11, hold_ms=12, total_bytes_max=100))


def test_an_answer_without_progress_from_a_slave_that_lags_is_repeated_after_a_second() -> None:
    async def scenario(site: Site) -> None:
        site.queues.assign(QUEUE, 5)
        await asyncio.sleep(3)
        assert site.calls.asked == [(5, 0.0), (5, 1.0), (6, 1.0)]
        assert site.offsets.get(QUEUE) == 6

    at(scenario, nothing(5, "NO_MATCHED_MESSAGE"), nothing(6, "NO_MATCHED_MESSAGE"))


def test_only_a_first_refusal_is_a_warning_until_a_pull_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        site.queues.assign(QUEUE, 0)
        await asyncio.sleep(9)

    refusal, slow = RefusalError("no", 1), RefusalError("slowly", ResponseCode.FLOW_CONTROL)
    with caplog.at_level(logging.INFO):
        at(scenario, slow, ClientError("away"), refusal, refusal, found(0), refusal)
    assert [(line.levelname, line.getMessage().rpartition(": ")[2]) for line in caplog.records] == [
        ("INFO", "slowly"), ("INFO", "away"), ("WARNING", "no"), ("INFO", "no"), ("WARNING", "no"),
    ]  # fmt: skip
    assert caplog.messages[0] == "a pull failed and is repeated: slowly"


def test_a_correction_and_an_unexpected_error_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        site.queues.assign(QUEUE, 7)
        await asyncio.sleep(0.5)
        assert len(site.calls.asked) == 2
        await asyncio.sleep(0.6)
        assert site.calls.asked[2] == (3, 1.0)

    at(scenario, nothing(3, "OFFSET_ILLEGAL"), RuntimeError("injected"))
    assert caplog.messages == ["T@b:0 has no offset 7, continuing at 3", "reading T@b:0 failed"]
    assert "injected" in caplog.text


def test_a_suspended_reader_begins_no_pull_until_it_resumes() -> None:
    async def scenario(site: Site) -> None:
        site.queues.suspend()
        site.queues.assign(QUEUE, 0)
        await asyncio.sleep(5)
        assert site.calls.asked == []
        site.queues.resume()
        await asyncio.sleep(0)
        assert site.calls.asked == [(0, 5.0)]

    at(scenario)


def test_progress_and_resets_are_those_of_one_topic() -> None:
    async def scenario(site: Site) -> None:
        for queue in (QUEUE, OTHER, MessageQueue("T", "b", 1)):
            site.queues.assign(queue, 3)
        site.offsets.set(QUEUE, 3)
        site.offsets.set(OTHER, 4)
        assert site.queues.progress("T") == {QUEUE: 3}
        site.queues.reset("T", {QUEUE: 50, OTHER: 60})
        await asyncio.sleep(1)
        assert site.kept.resets == [50]
        assert site.queues.progress("T") == {QUEUE: 50}
        assert not site.queues._resets
        assert sorted(site.queues.queues()) == [QUEUE, MessageQueue("T", "b", 1), OTHER]

    reading(scenario, ScriptedCalls())


def test_a_dropped_queue_is_no_longer_read_and_a_stop_ends_all_tasks() -> None:
    async def scenario(site: Site) -> None:
        held = site.queues.assign(QUEUE, 3)
        assert QUEUE in site.queues
        assert site.queues.drop(QUEUE) is held
        assert held.is_dropped
        assert site.queues.drop(QUEUE) is None
        again = site.queues.assign(QUEUE, 3)
        assert isinstance(again, ProcessQueue)
        assert again is not held
        site.settle_s = 100
        site.queues.reset("T", {QUEUE: 1})
        await asyncio.sleep(1)
        site.queues.stop()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    at(scenario)
