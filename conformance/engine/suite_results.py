"""Turns an examination into results: one verdict for every invariant of the suite."""

import shlex
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Final

from mqproof.conformance.engine.examination import Examination
from mqproof.conformance.engine.suite_definition import Need, known, option
from mqproof.conformance.engine.targets import Examined
from mqproof.report.model import Moment, Result, Verdict, Witness
from mqproof.spec.catalogue import catalogue

SCRIPT: Final = "the shortest run seen that violates it"
"""The text of the witness whose timeline contains the steps."""


def results(
    examination: Examination,
    target: Examined,
    examples: int,
    seed: int,
    *,
    ids: Container[str] | None = None,
    replay: str = "",
) -> tuple[Result, ...]:
    """Return the results of the examination; `examples` is the number of examples that were requested.

    `ids`: the invariants to include; None for all. `replay`: the command that repeats the run, if it is not
    the default one.
    """
    suite = examination.suite
    replay = replay or (
        f"mqproof conform --target {shlex.quote(target.name)}{option(suite)} --seed {seed}"
        f" --examples {examples}"
    )
    found = (
        _result(examination, target.capabilities, invariant, replay)
        for invariant in known(suite)
        if ids is None or invariant in ids
    )
    return with_time(found, examination.seconds)


def with_time(found: Iterable[Result], seconds: float) -> tuple[Result, ...]:
    """Return results that were found together; each tested one gets an equal part of the total time."""
    results = tuple(found)
    seconds_each = seconds / max(1, sum(each.verdict is not Verdict.NOT_TESTED for each in results))
    return tuple(
        each if each.verdict is Verdict.NOT_TESTED else replace(each, seconds=seconds_each)
        for each in results
    )


def _result(examination: Examination, capabilities: frozenset[str], invariant: str, replay: str) -> Result:
    name, layer = catalogue()[invariant].name, examination.suite.name
    counts = {"examples": examination.examples, **examination.counts[invariant]}
    if failure := examination.failures.get(invariant):
        return Result(
            invariant,
            name,
            layer,
            Verdict.VIOLATED,
            counts,
            (*failure.finding.witnesses, scripted(failure.script)),
            f"violated by {'' if failure.drawn else 'a shorter run made of '}example {failure.examples}",
            replay,
        )
    need = examination.suite.needs.get(invariant, Need())
    if missing := _missing(need, capabilities):
        return Result(
            invariant, name, layer, Verdict.NOT_TESTED, detail=f"the target does not support {missing}"
        )
    if not examination.held_in[invariant]:
        detail = "no example had a relevant observation"
        return Result(invariant, name, layer, Verdict.UNKNOWN, counts, detail=detail)
    lacking = ", ".join(sorted(need.ways - capabilities))
    detail = f"the target does not support {lacking}" if lacking else ""
    return Result(invariant, name, layer, Verdict.HELD, counts, detail=detail)


def _missing(need: Need, capabilities: frozenset[str]) -> str:
    groups = (group for group in (need.one_of, need.ways) if group and not group & capabilities)
    return ", ".join(" or ".join(sorted(group)) for group in groups)


def scripted(steps: Iterable[str]) -> Witness:
    """Return the steps of a script as a witness for people."""
    parted = ((str(number), *step.partition(": ")) for number, step in enumerate(steps, start=1))
    return Witness(SCRIPT, timeline=tuple(Moment(at, done, answer) for at, done, _, answer in parted))
