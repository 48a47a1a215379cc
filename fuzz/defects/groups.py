"""Mutants of consumer groups: those of conformance that clients in a simulated cluster can observe."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from zlib import crc32

from mqproof.conformance.mutants import offsets, retry, workload
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.broker.requests.checks import scheduled_or_refused
from mqproof.impl.client.consuming.orderly import OrderlyConsumption
from mqproof.impl.filtering.predicates import EvaluationError, Properties
from mqproof.impl.filtering.sql import Filter
from mqproof.impl.remoting.message import UNIQUE_KEY, Message

_TARGET: Final = "consumer-groups"
_run = OrderlyConsumption._run
_matches = Filter.matches

_OF_WORKLOADS: Final = (
    "consumed-twice",
    "one-too-many-committed",
    "everybody-owns-everything",
    "never-given-up",
    "delays-ignored",
    "wanted-messages-dropped",
    "cached-messages-dropped",
)
_OF_FILTERS: Final = ("sql-ignored", "sql-unknown-matches")
_OF_RETRIES: Final = ("dead-too-early", "delayed-put-twice")


def _altered(services: Any, message: Message) -> Message:
    scheduled = scheduled_or_refused(services, message)
    if crc32(message.body) % 4:
        return scheduled
    return replace(scheduled, properties={**scheduled.properties, UNIQUE_KEY: "0" * 32})


async def _run_twice(consumption: OrderlyConsumption, held: Any, lane: Any) -> None:
    """Run two loops over one lane; the one that finds it empty ends."""

    async def run() -> None:
        with suppress(IndexError):
            await _run(consumption, held, lane)

    await asyncio.gather(run(), run())


def _error_selects(self: Filter, properties: Properties) -> bool:
    try:
        return self.result(properties) is True
    except EvaluationError:
        return True


def _whole_numbers_only(self: Filter, properties: Properties) -> bool:
    return _matches(self, properties) and all("." not in text for text in properties.values())


MUTANTS: Final = (
    *(as_of_target(workload.MUTANTS[name], _TARGET, {}) for name in _OF_WORKLOADS),
    *(as_of_target(retry.MUTANTS[name], _TARGET, {}) for name in _OF_RETRIES),
    *(as_of_target(offsets.MUTANTS[name], _TARGET, {}) for name in _OF_FILTERS),
    Mutant(
        "IdAltered",
        "the broker stores some messages with an id that no producer gave them",
        _TARGET,
        "NoPhantom",
        "mqproof.impl.broker.processors.send:scheduled_or_refused",
        _altered,
    ),
    Mutant(
        "LaneRunTwice",
        "an orderly queue is consumed by two loops of listener calls",
        _TARGET,
        "NeverOverlaps",
        "mqproof.impl.client.consuming.orderly:OrderlyConsumption._run",
        _run_twice,
    ),
    Mutant(
        "ErrorSelects",
        "an SQL92 expression selects messages for which its evaluation is an error",
        _TARGET,
        "FilterSound",
        "mqproof.impl.filtering.sql:Filter.matches",
        _error_selects,
    ),
    Mutant(
        "WholeNumbersOnly",
        "an SQL92 expression does not select messages with a decimal number",
        _TARGET,
        "FilterSound",
        "mqproof.impl.filtering.sql:Filter.matches",
        _whole_numbers_only,
    ),
)
