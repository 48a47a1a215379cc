"""The suite `hostile` of `mqproof conform`."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.hostile import attack_run
from mqproof.conformance.hostile.attack import Attack, Setup
from mqproof.conformance.hostile.attack_run import Judged
from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.hostile.seen import Victim
from mqproof.conformance.wire.server_connection import UnreachableError
from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.spec.catalogue import catalogue

LAYER: Final = "hostile"

Progress = Callable[[int, int], None]


class NotApplicableError(Exception):
    """The target has no such setup. The message says why."""


Victims = Callable[[str, Setup], AbstractContextManager[Victim]]
"""Finds or starts the broker of a target for a setup, for the block.

Raises UnknownTargetError, TargetError, NotApplicableError.
"""


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return each selected attack, as not tested."""
    return tuple(_untested(one, "") for one in _chosen(options))


def lines(options: RunOptions) -> Iterator[str]:
    """Id, invariant, request code, expectation, description and rule of each attack."""
    for one in _chosen(options):
        text = f"expected: {one.expected.value}  ({one.about}; {one.rule})"
        yield f"{_id(one)}  {one.invariant}  code {one.code}  {text}"


def in_short(results: tuple[Result, ...]) -> tuple[Result, ...]:
    """Return the attacks that did not hold, and one row for those of each invariant that did."""
    invariants = {_id(one): one.invariant for one in ATTACKS}
    held = Counter(invariants[one.id] for one in results if one.verdict is Verdict.HELD)
    rows = (
        Result(id_, catalogue()[id_].name, LAYER, Verdict.HELD, {"attacks": count}, detail="attacks held")
        for id_, count in held.items()
    )
    return (*rows, *(one for one in results if one.verdict is not Verdict.HELD))


def run(options: RunOptions, progress: Progress, victims: Victims) -> Part:
    """Attack the target.

    Raises:
        UnknownTargetError, TargetError.
    """
    began = time.perf_counter()
    chosen = _chosen(options)
    found: list[Result] = []
    for setup in Setup:
        attacks = [one for one in chosen if one.setup is setup]
        for result in _setup(options, setup, attacks, victims):
            found.append(result)
            progress(len(found), len(chosen))
    tested = [one for one in found if one.verdict is not Verdict.NOT_TESTED]
    return Part(
        LAYER, tuple(found), {"attacks": len(tested)}, time.perf_counter() - began,
        (by_invariant(found),), in_short(tuple(found)),
    )  # fmt: skip


def by_invariant(results: Iterable[Result]) -> Table:
    """Return the number of attacks by invariant and verdict."""
    invariants = {_id(one): one.invariant for one in ATTACKS}
    counts = Counter((invariants[one.id], one.verdict) for one in results)
    verdicts = (Verdict.HELD, Verdict.VIOLATED, Verdict.NOT_TESTED)
    rows = tuple(
        (f"{invariant} {catalogue()[invariant].name}", *(str(counts[invariant, one]) for one in verdicts))
        for invariant in dict.fromkeys(one.invariant for one in ATTACKS)
        if any(counts[invariant, one] for one in verdicts)
    )
    return Table("Attacks by invariant", ("invariant", "held", "violated", "not applicable"), rows)


def _setup(options: RunOptions, setup: Setup, attacks: list[Attack], victims: Victims) -> Iterator[Result]:
    """Run the attacks of one setup. A broker that no longer serves is started again for the others."""
    left = list(attacks)
    while left:
        has_served = False
        try:
            with victims(options.target, setup) as victim:
                for judged in attack_run.run(victim, tuple(left)):
                    has_served = True
                    left.remove(judged.attack)
                    yield _result(judged, options)
                    if not judged.is_served:
                        break
        except NotApplicableError as error:
            yield from (_untested(one, f"not applicable: {error}") for one in left)
            return
        except UnreachableError as error:
            if len(left) == len(attacks) and not has_served:
                raise TargetError(str(error)) from None
            yield from (_untested(one, str(error)) for one in left)
            return


def _chosen(options: RunOptions) -> tuple[Attack, ...]:
    chosen = set(options.chosen(map(_id, ATTACKS)))
    return tuple(one for one in ATTACKS if _id(one) in chosen)


def _id(attack: Attack) -> str:
    return f"{LAYER}/{attack.name}"


def _untested(attack: Attack, why: str) -> Result:
    return Result(_id(attack), attack.about, LAYER, Verdict.NOT_TESTED, detail=why)


def _result(judged: Judged, options: RunOptions) -> Result:
    attack, failures = judged.attack, judged.failures
    return Result(
        _id(attack),
        attack.about,
        LAYER,
        Verdict.VIOLATED if failures else Verdict.HELD,
        {"connections": judged.connections},
        tuple(Witness(failure, {"invariant": attack.invariant, "rule": attack.rule}) for failure in failures),
        "; ".join(failures),
        options.replay(LAYER, "--id", _id(attack)) if failures else "",
        judged.seconds,
    )
