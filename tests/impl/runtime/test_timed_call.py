"""A timed call is made once: by the first end, or by its deadline."""

import asyncio

from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.runtime.timed_call import TimedCall


def test_only_the_first_end_counts() -> None:
    async def main() -> list[str]:
        found: list[str] = []
        calls = [TimedCall(found.append, 1.0, f"late {number}") for number in range(3)]
        calls[0].end("in time")
        calls[0].end("again")
        calls[1].cancel()
        calls[1].end("after a cancellation")
        await asyncio.sleep(2.0)
        calls[2].end("after the deadline")
        return found

    assert run_simulated(main(), SimulatedLoop()) == ["in time", "late 2"]
