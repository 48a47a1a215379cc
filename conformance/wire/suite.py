"""The suite `wire` of `mqproof conform`."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.wire.case_results import (
    LAYER,
    Progress,
    Run,
    examine,
    results,
    summary,
    table,
    untested,
)
from mqproof.conformance.wire.catalogue import choose
from mqproof.conformance.wire.fixtures import FixturesError
from mqproof.conformance.wire.model import Case, Since
from mqproof.conformance.wire.server_connection import Address, UnreachableError
from mqproof.report.model import Result

Servers = Callable[[str], AbstractContextManager[list[Address]]]
"""Finds or starts the servers of a target, for the block. Raises UnknownTargetError, TargetError."""


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return each selected case, as not tested."""
    return tuple(map(untested, _cases(options)))


def in_short(results: tuple[Result, ...]) -> tuple[Result, ...]:
    """Return a summary of the results."""
    return tuple(summary(results))


def lines(options: RunOptions) -> Iterator[str]:
    """Id, server, since, strength, title and source of each case."""
    for case in _cases(options):
        yield (
            f"{case.id}  {case.server}  since {case.since}  {case.strength}  {case.title}  ({case.source})"
        )


def run(options: RunOptions, progress: Progress, servers: Servers) -> Part:
    """Send the chosen cases to the servers of the target.

    Raises:
        RunOptionsError, UnknownTargetError, TargetError.
    """
    settings = Run(options.target, Since(options.since), options.strict)
    cases = _cases(options)
    began = time.perf_counter()
    try:
        with servers(options.target) as addresses:
            judged = examine(addresses, cases, progress)
    except (UnreachableError, FixturesError) as error:
        raise TargetError(str(error)) from None
    found = tuple(results(judged, settings))
    looked_at = {"cases": len(found), "exchanges": sum(one.counts.get("exchanges", 0) for one in found)}
    return Part(LAYER, found, looked_at, time.perf_counter() - began, (table(judged),), in_short(found))


def _cases(options: RunOptions) -> tuple[Case, ...]:
    return choose(options.ids, Since(options.since))
