"""Tests the refusal of sends while too many wait.

Source: docs/reference/protocol/sending.md, "Flow control".
"""

import asyncio

import pytest

from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated


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
