"""The suite `damage` of `mqproof conform`."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from mqproof.conformance.damage import damage_run
from mqproof.conformance.damage.cases import CASES
from mqproof.conformance.damage.checkers import CHECKERS, PeersSeen, damage_settled, is_unknown
from mqproof.conformance.damage.damage_run import Broker, Observed
from mqproof.conformance.engine import time_bounds
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.spec.catalogue import catalogue

LAYER: Final = "damage"
_WITNESSES_MAX: Final = 20

SETTLED: Final = "ROT-5"
"""The invariant of brokers with peers."""
_PEER_POINTS: Final = 24

Peers = Callable[[int], PeersSeen]
"""Damages a record of a broker with peers; the number selects which one."""
Brokers = Callable[[RunOptions], AbstractContextManager[Broker]]
"""Finds or starts the broker of a target, for the block. Raises UnknownTargetError, TargetError."""


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return each selected invariant, as not tested."""
    return tuple(
        Result(each, catalogue()[each].name, LAYER, Verdict.NOT_TESTED) for each in _invariants(options)
    )


def lines(options: RunOptions) -> Iterator[str]:
    """Invariants, then the id and description of each selected case."""
    for each in _invariants(options):
        yield f"{each}  {LAYER}  {catalogue()[each].statement}"
    chosen = set(_cases(options))
    for case in CASES:
        yield from (f"{each}  ({case.about})" for each in case.ids() if each in chosen)


def run(
    options: RunOptions,
    progress: Callable[[int, int], None],
    brokers: Brokers,
    peers: Peers | None = None,
) -> Part:
    """Damage the store of the target's broker, case by case.

    `peers` is for targets that can run with other brokers that share their log.

    Raises:
        UnknownTargetError, TargetError.
    """
    began = time.perf_counter()
    chosen = frozenset(_cases(options))
    with brokers(options) as broker:
        observed = _within_budget(damage_run.run(broker, chosen.__contains__, CASES, progress))
        selected = _invariants(options)
        found = tuple(_result(each, observed, options) for each in selected if each in CHECKERS)
        if SETTLED in selected and options.chosen((SETTLED,)):
            found += (_settled(peers, options),)
    return Part(
        LAYER, found, {"cases": len(observed)}, time.perf_counter() - began, tables=(_table(observed),)
    )


def _within_budget(cases: Iterable[Observed]) -> list[Observed]:
    """Return the cases that ended before the time of the suite was used up."""
    observed: list[Observed] = []
    try:
        observed.extend(cases)
    except time_bounds.BudgetInterrupt:
        time_bounds.do_not_interrupt()
    return observed


def _invariants(options: RunOptions) -> tuple[str, ...]:
    """Return the selected invariants: all of them if only cases are selected."""
    return options.chosen((*CHECKERS, SETTLED)) or (tuple(CHECKERS) if options.chosen(_ids()) else ())


def _cases(options: RunOptions) -> tuple[str, ...]:
    """Return the ids of the selected cases: all of them if only invariants are selected."""
    return options.chosen(_ids()) or (_ids() if options.chosen(CHECKERS) else ())


def _settled(peers: Peers | None, options: RunOptions) -> Result:
    """Judge one damaged record after the other, in brokers that have peers."""
    name = catalogue()[SETTLED].name
    if peers is None:
        return Result(
            SETTLED, name, LAYER, Verdict.NOT_TESTED, detail="only our brokers run with their peers here"
        )
    if time_bounds.is_used_up():
        return Result(SETTLED, name, LAYER, Verdict.UNKNOWN)
    found = [line for number in range(_PEER_POINTS) for line in damage_settled(peers(number))]
    return Result(
        SETTLED,
        name,
        LAYER,
        Verdict.VIOLATED if found else Verdict.HELD,
        {"points": _PEER_POINTS},
        tuple(Witness(line, {}) for line in found[:_WITNESSES_MAX]),
        f"{len(found)} of {_PEER_POINTS} points" if found else "",
        options.replay(LAYER, "--id", SETTLED) if found else "",
        found=len(found),
    )


def _ids() -> tuple[str, ...]:
    return tuple(each for case in CASES for each in case.ids())


def _result(invariant: str, observed: list[Observed], options: RunOptions) -> Result:
    bad = [(each.id, line) for each in observed for line in each.violations.get(invariant, ())]
    unknown = invariant == "ROT-2" and any(is_unknown(each.seen) for each in observed)
    judged = [each for each in observed if invariant != "ROT-4" or each.seen.refusal is not None]
    verdict = Verdict.VIOLATED if bad else Verdict.UNKNOWN if unknown or not judged else Verdict.HELD
    details = {
        Verdict.VIOLATED: f"{len({case for case, _ in bad})} of {len(judged)} cases",
        Verdict.UNKNOWN: "messages were lost, and there is no --broker-log"
        if unknown
        else "nothing observed",
    }
    ids = [word for case in dict.fromkeys(case for case, _ in bad[:1]) for word in ("--id", case)]
    return Result(
        invariant,
        catalogue()[invariant].name,
        LAYER,
        verdict,
        {"cases": len(judged)},
        tuple(Witness(f"{case}: {line}", {}) for case, line in bad[:_WITNESSES_MAX]),
        details.get(verdict, ""),
        options.replay(LAYER, *ids) if bad else "",
        found=len(bad),
    )


def _table(observed: list[Observed]) -> Table:
    rows = []
    verdicts = Counter(each.verdict for each in observed)
    for each in observed:
        broken = ", ".join(each.violations)
        rows.append((each.id, each.case.about, f"{each.verdict} {broken}".strip()))
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return Table(f"Damaged files: {counted}", ("case", "what was damaged", "result"), tuple(rows))
