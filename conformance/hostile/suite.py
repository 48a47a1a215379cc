"""The suite `hostile` of `mqproof conform`."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.hostile import attack_run
from mqproof.conformance.hostile.attack_run import Judged, Memory
from mqproof.conformance.hostile.attacks import ATTACKS, Attack
from mqproof.conformance.wire.server_connection import Address, UnreachableError
from mqproof.report.model import Result, Verdict, Witness

LAYER: Final = "hostile"


@dataclass(frozen=True, slots=True)
class Victim:
    """The broker under attack; `memory` is None if its process is not ours."""

    address: Address
    memory: Memory | None = None


Victims = Callable[[str], AbstractContextManager[Victim]]
"""Finds or starts the broker of a target, for the block. Raises UnknownTargetError, TargetError."""


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return each selected attack, as not tested."""
    return tuple(Result(_id(one), one.about, LAYER, Verdict.NOT_TESTED) for one in _chosen(options))


def lines(options: RunOptions) -> Iterator[str]:
    """Id, request code, expectation and description of each attack."""
    for one in _chosen(options):
        yield f"{_id(one)}  code {one.code}  expected: {one.expected.value}  ({one.about})"


def run(options: RunOptions, progress: Callable[[int, int], None], victims: Victims) -> Part:
    """Attack the target.

    Raises:
        UnknownTargetError, TargetError.
    """
    began = time.perf_counter()
    try:
        with victims(options.target) as victim:
            judged = list(attack_run.run(victim.address, _chosen(options), victim.memory, progress))
    except UnreachableError as error:
        raise TargetError(str(error)) from None
    found = tuple(_result(one, options) for one in judged)
    return Part(LAYER, found, {"attacks": len(found)}, time.perf_counter() - began)


def _chosen(options: RunOptions) -> tuple[Attack, ...]:
    chosen = set(options.chosen(map(_id, ATTACKS)))
    return tuple(one for one in ATTACKS if _id(one) in chosen)


def _id(attack: Attack) -> str:
    return f"{LAYER}/{attack.name}"


def _result(judged: Judged, options: RunOptions) -> Result:
    attack, failures = judged.attack, judged.failures
    return Result(
        _id(attack),
        attack.about,
        LAYER,
        Verdict.VIOLATED if failures else Verdict.HELD,
        {"connections": attack.connections},
        tuple(Witness(failure, {}) for failure in failures),
        "; ".join(failures),
        options.replay(LAYER, "--id", _id(attack)) if failures else "",
        judged.seconds,
    )
