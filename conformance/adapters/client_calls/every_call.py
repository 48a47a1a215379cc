"""Makes every call of our client's interface, in simulated time, and returns what differs."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.client_calls import (
    administering,
    arguments,
    blocking,
    consuming,
    interruptions,
    late_answers,
    polling,
    registration,
    rewinds,
    sending,
    thread_requests,
    trace_sends,
    transacting,
)
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import ScriptedServers, address
from mqproof.conformance.engine.targets import EndlessError
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.impl.client.connection.session import Session
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.report.model import Witness

_PART_S: Final = 3000.0
"""The simulated time after which a part is ended; the longest one takes 860 s."""
Part = Callable[[Expectations, ScriptedServers], Coroutine[Any, Any, None]]


async def _arguments(expect: Expectations, servers: ScriptedServers) -> None:
    arguments.judge(expect, Session([address("names-1")], servers.runtime("client"), "h@i"))


PARTS: Final[tuple[Part, ...]] = (
    _arguments,
    sending.judge,
    registration.judge,
    transacting.judge,
    consuming.judge,
    polling.judge,
    rewinds.judge,
    administering.judge,
    trace_sends.judge,
    late_answers.judge,
    interruptions.judge,
)
"""The parts, each on servers of its own."""


def differences(seed: int) -> tuple[Witness, ...]:
    """Run every part. The seed determines what the clients choose by chance."""
    expect = Expectations()
    with expected_warnings("mqproof.impl"):
        ended = all(_ends(part, expect, seed) for part in PARTS)
        if ended and seed % 2 == 0:  # it needs real time
            thread_requests.judge(expect)
            blocking.judge(expect)
    return tuple(expect.wrong)


def _ends(part: Part, expect: Expectations, seed: int) -> bool:
    """Run a part; return whether it ends. The parts after one that never ends do not run."""
    loop = SimulatedLoop()

    async def run() -> None:
        servers = ScriptedServers(loop, seed)
        await servers.start()
        async with asyncio.timeout(_PART_S):
            await part(expect, servers)
        await servers.stop()

    try:
        simulated_loops.run(loop, run())
    except Exception as error:  # whatever a defect of the client raises is a difference
        expect.failed(part.__module__, error)
        return not isinstance(error, EndlessError)
    else:
        return True
    finally:
        simulated_loops.end(loop)
