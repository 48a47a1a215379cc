"""Tests the refusal of sends while too many wait.

Source: docs/reference/protocol/sending.md, "Flow control".
"""

import asyncio

import pytest

from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.world import World, play


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


def test_a_broker_admits_sends_up_to_its_own_limits() -> None:
    """Several sends of a few kilobytes wait for the disk at once, and none of them is refused."""

    async def scenario(world: World) -> list[object]:
        await world.producer.send(Message("T", b"first"))
        outcomes = await asyncio.gather(*(world.producer.send(Message("T", b"x" * 4000)) for _ in range(5)))
        return [getattr(outcome, "status", None) for outcome in outcomes]

    assert play(scenario) == ["SEND_OK"] * 5
