"""Mutants of consumer groups: those of conformance that clients in a simulated cluster can observe."""

import asyncio
from contextlib import suppress
from typing import Any, Final

from mqproof.conformance.mutants import retry, workload
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.client.consuming.orderly import OrderlyConsumption

_TARGET: Final = "consumer-groups"
_run = OrderlyConsumption._run

_HERE: Final = (
    *(each for each in workload.MUTANTS.values() if each.name != "two-lanes"),
    retry.MUTANTS["dead-too-early"],
    retry.MUTANTS["delayed-put-twice"],
)


async def _run_twice(consumption: OrderlyConsumption, held: Any, lane: Any) -> None:
    """Run two loops over one lane; the one that finds it empty ends."""

    async def run() -> None:
        with suppress(IndexError):
            await _run(consumption, held, lane)

    await asyncio.gather(run(), run())


MUTANTS: Final = (
    *(as_of_target(each, _TARGET, {}) for each in _HERE),
    Mutant(
        "LaneRunTwice",
        "an orderly queue is consumed by two loops of listener calls",
        _TARGET,
        "NeverOverlaps",
        "mqproof.impl.client.consuming.orderly:OrderlyConsumption._run",
        _run_twice,
    ),
)
