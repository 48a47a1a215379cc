"""Tests the rounds of a rebalancer: when they run, and what each changes. Brokers and owner are scripted.

Source: docs/reference/protocol/groups.md, "Queue allocation".
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.consuming.allocation import Strategy, averagely
from mqproof.impl.client.consuming.rebalance import Rebalancer
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting.bodies import BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.runtime.simulated_loop import run_simulated


def queue(number: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "b", number)


def route(queues: int) -> TopicRoute:
    return TopicRoute([BrokerData({0: "h:1"}, "b", "C")], [QueueData("b", 6, queues, 0, queues)])


class Site:
    """Everything that a rebalancer uses, and the record of what it did."""

    def __init__(self, strategy: Strategy | None = averagely) -> None:
        self.topics = ["T"]
        self.routes: dict[str, TopicRoute | Exception] = {"T": route(4), "U": route(2)}
        self.members: list[str] | Exception = ["c1", "c2"]
        self.reads: list[MessageQueue] = []
        self.unready: set[MessageQueue] = set()
        """Queues that cannot be read yet."""
        self.done: list[object] = []
        self.rounds_s: list[float] = []
        session = SimpleNamespace(client_id="c1", greet=self._greet, routes=SimpleNamespace(get=self._route))
        calls = SimpleNamespace(members=self._members)
        events = SimpleNamespace(rebalanced=lambda topic, count: self.done.append((topic, count)))
        self.rebalancer = Rebalancer(
            cast(Any, session), cast(Any, calls), self, cast(Any, events),
            lambda: self.topics, strategy, lambda topic: self.done.append(topic),
        )  # fmt: skip

    async def _greet(self) -> None:
        self.rounds_s.append(round(asyncio.get_running_loop().time(), 3))

    async def _route(self, topic: str) -> TopicRoute | None:
        found = self.routes.get(topic)
        if isinstance(found, Exception):
            raise found
        return found

    async def _members(self, _topic: str) -> list[str]:
        if isinstance(self.members, Exception):
            raise self.members
        return self.members

    def owned(self) -> list[MessageQueue]:
        return list(self.reads)

    async def gain(self, queue: MessageQueue) -> bool:
        if queue in self.unready:
            return False
        self.reads.append(queue)
        return True

    async def lose(self, queue: MessageQueue) -> None:
        self.reads.remove(queue)


def play(scenario: Callable[[Site], Awaitable[None]], strategy: Strategy | None = averagely) -> None:
    async def main() -> None:
        await scenario(Site(strategy))

    run_simulated(main())


async def rounds_within(site: Site, seconds: float) -> list[float]:
    """Run for this long, and return when the rounds were."""
    site.rounds_s.clear()
    running = asyncio.create_task(site.rebalancer.run())
    await asyncio.sleep(seconds)
    running.cancel()
    return site.rounds_s


def test_rounds_are_20_seconds_apart() -> None:
    async def scenario(site: Site) -> None:
        assert await rounds_within(site, 41) == [0, 20, 40]

    play(scenario)


@pytest.mark.parametrize("failure", [ClientError("busy"), RuntimeError("injected")])
def test_an_incomplete_round_is_repeated_after_pauses_that_double_up_to_4_seconds(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        site.members = failure
        asyncio.get_running_loop().call_later(8, setattr, site, "members", ["c1"])
        asyncio.get_running_loop().call_later(30, setattr, site, "members", failure)
        assert await rounds_within(site, 40) == [0, 1, 3, 7, 11, 31, 32, 34, 38]
        assert site.reads == [queue(number) for number in range(4)]  # they are kept meanwhile

    with caplog.at_level(logging.INFO):
        play(scenario)
    expected = "rebalancing T failed: busy" if isinstance(failure, ClientError) else "a rebalance failed"
    assert caplog.messages == [expected] * 8


def test_a_request_for_a_round_ends_the_pause_and_the_next_pause_is_short() -> None:
    async def scenario(site: Site) -> None:
        site.rebalancer.soon()  # before the start: the first round counts
        site.members = ClientError("busy")
        for at_s in (5, 20):
            asyncio.get_running_loop().call_later(at_s, site.rebalancer.soon)
        assert await rounds_within(site, 24) == [0, 1, 3, 5, 6, 8, 12, 16, 20, 21, 23]

    play(scenario)


def test_a_member_reads_its_part_and_every_change_is_reported_once() -> None:
    async def scenario(site: Site) -> None:
        assert await site.rebalancer.once()
        assert (site.reads, site.done) == ([queue(0), queue(1)], [("T", 2), "T"])
        assert await site.rebalancer.once()
        assert site.done == [("T", 2), "T"]
        site.members = ["c1", "c0", "c1"]  # a broker may name a member twice
        site.done.clear()
        assert await site.rebalancer.once()
        assert (sorted(site.reads), site.done) == ([queue(2), queue(3)], [("T", 2), "T"])
        site.members = ["c0", "c2"]
        site.done.clear()
        assert await site.rebalancer.once()
        assert (site.reads, site.done) == ([], [("T", 0), "T"])

    play(scenario)


def test_without_a_strategy_every_queue_is_read_whatever_the_members() -> None:
    async def scenario(site: Site) -> None:
        site.members = ClientError("not asked")
        assert await site.rebalancer.once()
        assert site.reads == [queue(number) for number in range(4)]

    play(scenario, None)


def test_a_round_is_incomplete_while_a_queue_cannot_be_read() -> None:
    async def scenario(site: Site) -> None:
        site.unready = {queue(1)}
        assert not await site.rebalancer.once()
        assert (site.reads, site.done) == ([queue(0)], [("T", 1), "T"])
        assert not await site.rebalancer.once()
        assert site.done == [("T", 1), "T"]
        site.unready = set()
        assert await site.rebalancer.once()
        assert site.done == [("T", 1), "T", ("T", 2), "T"]

    play(scenario)


def test_queues_of_a_topic_that_is_no_longer_wanted_are_given_up() -> None:
    async def scenario(site: Site) -> None:
        site.topics = ["U", "T", "U"]
        assert not site.rebalancer.has_tried("T")
        assert await site.rebalancer.once()
        assert site.done == [("T", 2), "T", ("U", 1), "U"]
        assert site.rebalancer.has_tried("T")
        assert site.rebalancer.has_tried("U")
        site.topics = ["U"]
        assert await site.rebalancer.once()
        assert site.reads == [queue(0, "U")]
        assert not site.rebalancer.has_tried("T")
        assert site.rebalancer.has_tried("U")

    play(scenario)


def test_a_topic_whose_route_is_not_known_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        site.topics = ["T", "U", "V"]
        site.routes["T"] = RemotingError("silent")
        site.reads = [queue(3)]
        assert not await site.rebalancer.once()
        assert site.reads == [queue(3), queue(0, "U")]
        assert site.rebalancer.has_tried("T")

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert caplog.messages == [
        "the route of T: silent",
        "rebalancing T failed: the route of T: silent",
        "rebalancing V failed: no name server knows topic V",
    ]
