"""Tests the refusal of sends while too many wait.

Source: docs/reference/protocol/sending.md, "Flow control".
"""

import asyncio

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.world import SMALL_STORE, World, play


def test_one_send_is_always_admitted_whatever_its_size() -> None:
    async def scenario() -> None:
        gate = SendGate(count_max=1, bytes_max=10, busy_ms=200, now_s=asyncio.get_running_loop().time)
        with gate.admitted(1000):
            assert len(gate) == 1
        assert len(gate) == 0

    run_simulated(scenario())


@pytest.mark.parametrize(("count_max", "bytes_max"), [(1, 1000), (10, 15)])
def test_sends_above_the_limits_of_number_or_bytes_are_refused(count_max: int, bytes_max: int) -> None:
    async def scenario() -> None:
        gate = SendGate(count_max, bytes_max, busy_ms=200, now_s=asyncio.get_running_loop().time)
        first = gate.enter(10)
        with pytest.raises(RefusedError) as refused:
            gate.enter(10)
        assert refused.value.code is ResponseCode.SYSTEM_BUSY
        gate.leave(first)
        gate.leave(gate.enter(10))

    run_simulated(scenario())


def test_sends_are_refused_while_the_oldest_one_has_waited_too_long() -> None:
    async def scenario() -> None:
        gate = SendGate(count_max=10, bytes_max=1000, busy_ms=200, now_s=asyncio.get_running_loop().time)
        first = gate.enter(1)
        await asyncio.sleep(0.2)
        gate.leave(gate.enter(1))
        await asyncio.sleep(0.1)
        assert gate.oldest_ms() == 300
        with pytest.raises(RefusedError, match="PCBUSY_CLEAN_QUEUE"):
            gate.enter(1)
        gate.leave(first)
        assert (gate.oldest_ms(), gate.took_ms_max) == (0, 300)

    run_simulated(scenario())


def test_a_send_that_has_ended_does_not_count_as_the_oldest_one() -> None:
    async def scenario() -> None:
        gate = SendGate(count_max=10, bytes_max=1000, busy_ms=200, now_s=asyncio.get_running_loop().time)
        first = gate.enter(1)
        await asyncio.sleep(0.15)
        gate.enter(1)
        gate.leave(first)
        await asyncio.sleep(0.1)
        gate.enter(1)
        await asyncio.sleep(0.11)
        with pytest.raises(RefusedError, match="period in queue: 210ms"):
            gate.enter(1)

    run_simulated(scenario())


def test_the_times_of_sends_are_reported_to_the_millisecond() -> None:
    async def scenario() -> None:
        gate = SendGate(count_max=10, bytes_max=100, busy_ms=200, now_s=asyncio.get_running_loop().time)
        gate.enter(40)
        await asyncio.sleep(0.1)
        ticket = gate.enter(60)
        with pytest.raises(RefusedError, match="2 sends of 100 bytes wait"):
            gate.enter(1)
        await asyncio.sleep(7.9)
        assert gate.oldest_ms() == 8000
        gate.leave(ticket)
        assert gate.took_ms_max == 7900
        with pytest.raises(RefusedError, match=r"8000ms, size of queue: 1$"):
            gate.enter(1)
        assert (gate.refused_full, gate.refused_slow, len(gate)) == (1, 1, 1)

    run_simulated(scenario())


@pytest.mark.parametrize(
    ("interval", "most_ms"),
    list(enumerate((0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000))),
)
def test_a_send_counts_in_the_interval_of_its_time(interval: int, most_ms: int) -> None:
    now_s = [0.0]
    gate = SendGate(count_max=10, bytes_max=100, busy_ms=200, now_s=lambda: now_s[0])
    for took_ms, expected in ((most_ms, interval), (most_ms + 1.5, interval + 1)):
        now_s[0] = 0.0
        ticket = gate.enter(1)
        now_s[0] = took_ms / 1000
        before = list(gate.took)
        gate.leave(ticket)
        assert [after - one for after, one in zip(gate.took, before, strict=True)] == [
            number == expected for number in range(13)
        ]


def test_the_oldest_send_may_have_waited_for_exactly_the_limit() -> None:
    now_s = [100.0]
    gate = SendGate(count_max=10, bytes_max=100, busy_ms=250, now_s=lambda: now_s[0])
    assert (gate.oldest_ms(), gate.took_ms_max) == (0, 0)
    gate.enter(1)
    now_s[0] = 100.25
    assert gate.oldest_ms() == 250
    gate.enter(1)
    now_s[0] = 100.2501
    with pytest.raises(RefusedError, match="PCBUSY_CLEAN_QUEUE"):
        gate.enter(1)


def test_a_send_that_is_refused_takes_no_room() -> None:
    gate = SendGate(count_max=2, bytes_max=10, busy_ms=200, now_s=lambda: 0.0)
    gate.enter(6)
    for _ in range(2):
        with pytest.raises(RefusedError, match="1 sends of 6 bytes wait"):
            gate.enter(5)
    gate.enter(4)
    with pytest.raises(RefusedError, match="2 sends of 10 bytes wait"):
        gate.enter(0)
    assert (gate.refused_full, gate.refused_slow) == (3, 0)


def test_a_broker_admits_sends_up_to_its_own_limits() -> None:
    """Several sends of a few kilobytes wait for the disk at once, and none of them is refused."""

    async def scenario(world: World) -> list[object]:
        await world.producer.send(Message("T", b"first"))
        outcomes = await asyncio.gather(*(world.producer.send(Message("T", b"x" * 4000)) for _ in range(5)))
        return [getattr(outcome, "status", None) for outcome in outcomes]

    assert play(scenario) == ["SEND_OK"] * 5


def test_the_limits_of_a_broker_are_those_of_its_configuration() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        gate = world.broker.services.sends
        first, second = gate.enter(60), gate.enter(40)
        with pytest.raises(RefusedError, match="2 sends of 100 bytes wait"):
            gate.enter(1)
        third = gate.enter(0)
        with pytest.raises(RefusedError, match="3 sends of 100 bytes wait"):
            gate.enter(0)
        gate.leave(third)
        await asyncio.sleep(0.051)
        with pytest.raises(RefusedError, match="PCBUSY_CLEAN_QUEUE"):
            gate.enter(0)
        for ticket in (first, second):
            gate.leave(ticket)

    limits = BrokerConfig(
        store_directory="/store", port=0, store=SMALL_STORE, sends_max=3, sends_bytes_max=100, busy_ms=50
    )
    play(scenario, config=limits)
