"""Tests the cells of the guarantee matrix on brokers in simulated time.

A cell in which no acknowledged message may be lost is tested by random runs. A cell in which a message may be
lost is tested by a replay of the model's counterexample.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.subjects.guarantee_entry import Played, ReplayError, live, replay
from mqproof.spec.guarantee.matrix import Cell, Matrix, Outcome
from mqproof.spec.tlc.trace import Trace

RUNS: Final = 50


@dataclass(frozen=True, slots=True)
class Lived:
    """The results of one cell of the guarantee matrix on brokers."""

    entry: Cell
    expected: Outcome
    """The model's verdict."""
    worst: Outcome
    """The worst observed outcome."""
    runs: int
    """Number of random runs; none ended worse than the model's verdict unless `failure` says so."""
    replayed: Played | None
    """The outcome of the message in the replay of the model's counterexample; None for a safe cell."""
    failure: str = ""
    """The difference between brokers and model; empty if there is none."""


def keeps_acknowledged(outcome: Outcome) -> bool:
    """Return whether the verdict says that no message answered SEND_OK is lost."""
    return outcome in (Outcome.SAFE, Outcome.ERROR, Outcome.SILENT)


def live_through(
    entry: Cell, expected: Outcome, counterexample: Trace | None, runs: int = RUNS, seed: int = 0
) -> Lived:
    """Test one cell of the matrix: replay its counterexample, if it has one, and do `runs` random runs."""
    worst, failure, replayed = Outcome.NEVER, "", None
    if counterexample is not None:
        try:
            replayed = replay(entry, counterexample)
        except ReplayError as error:
            failure = str(error)
        else:
            worst = replayed.became
            if worst is not expected:
                failure = f"the replay ends in {describe(replayed)}, the model in {expected}"
    lives = runs if keeps_acknowledged(expected) else 0
    for number in range(seed, seed + lives):
        played = live(entry, number)
        worst = max(worst, played.became, key=lambda outcome: outcome.badness)
        if played.became.badness > expected.badness and not failure:
            failure = f"seed {number} ends in {describe(played)}, worse than {expected} in the model"
    return Lived(entry, expected, worst, lives, replayed, failure)


def live_through_all(
    decided: Matrix, faults: Mapping[str, str], runs: int = RUNS, workers: int = 1
) -> Iterator[Lived]:
    """Yield the results of the cells of the guarantee matrix, in its order, each as soon as it is known.

    If `faults` has the key `fault`, only the cells with this fault are tested. Cells that cannot occur are
    left out.
    """
    chosen = [
        (entry, outcome, decided.counterexamples.get(entry), runs)
        for entry, outcome in decided.verdicts.items()
        if outcome is not Outcome.NEVER and faults.get("fault", entry.faults[0]) in entry.faults
    ]
    if workers == 1:
        yield from (live_through(*each) for each in chosen)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_live_through, chosen, chunksize=4)


def differing(lived: Sequence[Lived]) -> list[Lived]:
    """Return the results of the cells in which brokers and model differ."""
    return [each for each in lived if each.failure]


def _live_through(each: tuple[Cell, Outcome, Trace | None, int]) -> Lived:
    return live_through(*each)


def describe(played: Played) -> str:
    """Describe the outcome, and the message that shows it."""
    return f"{played.became} ({played.message}, whose sender received {played.send_result})"
