"""Tests what a transport in a thread does when the event loop has ended meanwhile."""

import asyncio

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.producing.transport import LoopTransport, ThreadTransport
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated


def test_calls_run_in_the_loop_and_are_dropped_when_it_is_closed() -> None:
    loop, called = SimulatedLoop(), list[int]()
    address = Address("127.0.0.1", 9876)

    async def main() -> ThreadTransport:
        session = Session([address], simulated(loop, SimulatedNetwork()))
        LoopTransport(session).in_loop(called.append, 1)
        transport = ThreadTransport(session, asyncio.get_running_loop())
        transport.in_loop(called.append, 2)
        assert called == [1]
        await asyncio.sleep(0)
        return transport

    run_simulated(main(), loop).in_loop(called.append, 3)
    assert called == [1, 2]
