"""Tests `mqproof consume` in the simulated world: its output, its first offset and its end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec
import pytest

from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.command import consuming
from mqproof.impl.command.consuming import Begin, ConsumeJob
from mqproof.impl.remoting.message import Message
from tests.impl.client.members import numbers, send
from tests.impl.world import World, play

Work = Callable[..., Awaitable[int]]


def consume_job(world: World, shown: list[str]) -> ConsumeJob:
    return ConsumeJob(
        name_servers=[world.namesrv_address],
        topic="T",
        group="G2",
        count_max=None,
        begin=Begin.COMMITTED,
        begin_ms=0,
        follow=False,
        idle_ms_max=None,
        tags=MessageSelector("*"),
        as_json=False,
        show=shown.append,
    )


@pytest.mark.parametrize(
    "work", [consuming.consume, consuming.consume_assigned, consuming.consume_assigned_in_order]
)
def test_each_way_to_consume_shows_every_message_exactly_once(work: Work) -> None:
    async def scenario(world: World) -> tuple[list[str], list[str]]:
        first: list[str] = []
        second: list[str] = []
        await send(world, numbers(0, 20))
        await work(consume_job(world, first), world.runtime, None)
        await work(consume_job(world, second), world.runtime, None)
        return first, second

    first, second = play(scenario)
    assert sorted(int(line.split()[-1]) for line in first) == list(range(20))
    assert second == []


@pytest.mark.parametrize(
    "work", [consuming.consume, consuming.consume_assigned, consuming.consume_assigned_in_order]
)
def test_messages_beyond_the_count_are_left_for_the_next_consumer(work: Work) -> None:
    async def scenario(world: World) -> list[list[str]]:
        shown: list[list[str]] = [[], []]
        await send(world, numbers(0, 20))
        await work(replace(consume_job(world, shown[0]), count_max=7), world.runtime, None)
        await work(consume_job(world, shown[1]), world.runtime, None)
        return shown

    first, rest = play(scenario)
    assert (len(first), len(rest)) == (7, 13)
    assert len({line.split()[-1] for line in first + rest}) == 20


@pytest.mark.parametrize(
    ("begin", "expected"),
    [(Begin.MIN, 2), (Begin.MAX, 0), (Begin.TIME, 1), (Begin.COMMITTED, 1)],
)
def test_a_consumer_starts_at_the_requested_position(begin: Begin, expected: int) -> None:
    async def scenario(world: World) -> list[str]:
        shown: list[str] = []
        queue = MessageQueue("T", "broker-a", 0)
        await world.producer.send(Message("T", b"old"), queue)
        await consuming.consume(consume_job(world, []), world.runtime, None)
        await asyncio.sleep(60)
        now_ms = world.runtime.clock.now_us() // 1000
        await world.producer.send(Message("T", b"new"), queue)
        job = replace(consume_job(world, shown), begin=begin, begin_ms=now_ms)
        await consuming.consume(job, world.runtime, None)
        return shown

    assert len(play(scenario)) == expected


def test_a_line_of_json_has_all_fields_of_the_message() -> None:
    async def scenario(world: World) -> list[str]:
        shown: list[str] = []
        message = Message("T", b"\xff", {"TAGS": "A", "mine": "1"})
        await world.producer.send(message, MessageQueue("T", "broker-a", 0))
        await consuming.consume(replace(consume_job(world, shown), as_json=True), world.runtime, None)
        return shown

    (line,) = play(scenario)
    reported = msgspec.json.decode(line)
    assert (reported["topic"], reported["queue_id"], reported["queue_offset"], reported["body"]) == (
        "T",
        0,
        0,
        "\\xff",
    )
    assert reported["properties"]["mine"] == "1"


@pytest.mark.parametrize("work", [consuming.consume_assigned, consuming.consume_assigned_in_order])
def test_a_member_that_follows_ends_after_its_time_without_messages(work: Work) -> None:
    async def scenario(world: World) -> tuple[int, float]:
        shown: list[str] = []
        await send(world, numbers(0, 4))
        job = replace(consume_job(world, shown), follow=True, idle_ms_max=10_000)
        sending = asyncio.create_task(_later(world))
        began_s = asyncio.get_running_loop().time()
        await work(job, world.runtime, None)
        await sending
        return len(shown), asyncio.get_running_loop().time() - began_s

    async def _later(world: World) -> None:
        await asyncio.sleep(8)
        await send(world, numbers(4, 8))

    shown, took_s = play(scenario)
    assert shown == 8
    assert 17 < took_s < 20
