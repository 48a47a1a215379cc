"""Runs `mqproof fuzz faults` on our store or on a released broker, and shows its progress."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of
from mqproof.conformance.adapters.apache.servers import ApacheServerError
from mqproof.conformance.adapters.clients.driver_client import DriverError
from mqproof.conformance.engine.targets import APACHE, IMPL, TargetError, UnknownTargetError
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.fuzz import fault_campaign
from mqproof.fuzz.count_line import CountLine
from mqproof.fuzz.fault_campaign import Tally
from mqproof.fuzz.store.single_fault import Point
from mqproof.report.console import stop
from mqproof.report.model import Exit, Report, Verdict

_PIPE_STEP: Final = 10_000
_PIPE_STEP_RELEASED: Final = 20


@dataclass(frozen=True, slots=True)
class FaultRun:
    """The options of one run."""

    target: str
    brokers: str
    """The kind of our brokers: single, pair or group."""
    seed: int
    numbers: range
    workers: int
    seconds_max: float
    point: str | None
    """One point to judge instead of the numbers, in hexadecimal digits."""


def judge_points(run: FaultRun, keep: Callable[[Report], None]) -> Report:
    """Judge the points, and return the report. Ends the command if the run is not possible.

    `keep` is called with the report of the points so far, so that an interrupted run loses none of them.
    """
    began = time.monotonic()
    chosen = None if run.point is None else _decoded(run.point)
    if run.target != IMPL and run.brokers != fault_campaign.SINGLE:
        stop(f"--brokers {run.brokers}: a released broker is {fault_campaign.SINGLE}", Exit.USAGE)
    step = _PIPE_STEP if run.target == IMPL else _PIPE_STEP_RELEASED
    progress = CountLine(sys.stderr, 1 if chosen else len(run.numbers), "fault points", step)
    facts = {"target": run.target, "brokers": run.brokers, "seed": str(run.seed)}
    command = f"mqproof fuzz faults --target {run.target} --brokers {run.brokers}"

    def reported(tally: Tally) -> Report:
        so_far = {**facts, "points": str(tally.points), "seconds": f"{time.monotonic() - began:.1f}"}
        return fault_campaign.report(command, so_far, tally, run.brokers)

    def on_change(tally: Tally) -> None:
        progress.show(tally.points)
        keep(reported(tally))

    if run.target == IMPL:
        tally = _on_our_store(run, chosen, on_change)
    else:
        tally, release, unjudged = _on_a_release(run, chosen, on_change)
        facts |= {"release": release, "without a verdict": str(unjudged)}
    progress.end()
    report = reported(tally)
    if chosen is None:
        return report
    # One point does not test every invariant.
    judged = tuple(each for each in report.results if each.verdict is not Verdict.UNKNOWN)
    return replace(
        report, facts={**report.facts, "point": fault_campaign.in_words(run.brokers, chosen)}, results=judged
    )


def _on_our_store(run: FaultRun, chosen: bytes | None, on_change: Callable[[Tally], None]) -> Tally:
    with expected_warnings("mqproof.impl.store"):  # the faults cause them on purpose
        if chosen is not None:
            return fault_campaign.judge_all(run.brokers, [chosen])
        return fault_campaign.run(run.brokers, run.seed, run.numbers, run.workers, run.seconds_max, on_change)


def _on_a_release(
    run: FaultRun, chosen: bytes | None, on_change: Callable[[Tally], None]
) -> tuple[Tally, str, int]:
    """Return the verdicts, the release, and the number of points without a verdict."""
    from mqproof.fuzz.released_faults import ReleasedCampaign

    points = (
        [Point.decode(chosen)]
        if chosen
        else [fault_campaign.point(run.seed, number) for number in run.numbers]
    )
    try:
        if not run.target.startswith(APACHE):
            raise UnknownTargetError(f"{run.target!r}: impl or apache:LINE expected")
        release = release_of(run.target.removeprefix(APACHE))
        campaign = ReleasedCampaign(release, run.workers, run.seconds_max, on_change)
        return campaign.run(points), release, campaign.unjudged
    except UnknownTargetError as error:
        stop(f"--target {error}", Exit.USAGE)
    except (ApacheMissingError, ApacheServerError, DriverError, TargetError) as error:
        stop(str(error), Exit.TOOL)


def _decoded(point: str) -> bytes:
    try:
        return bytes.fromhex(point)
    except ValueError:
        stop(f"--point {point}: hexadecimal digits expected", Exit.USAGE)
