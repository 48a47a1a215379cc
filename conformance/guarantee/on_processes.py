"""Tests cells of the guarantee matrix on brokers that are processes, by random runs.

No run may end worse than the model's verdict. Only cells with one fault that can be injected into processes
are included.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mqproof.conformance.guarantee.on_simulated_brokers import Lived, describe
from mqproof.conformance.subjects.guarantee_entry_processes import FAULTS, live
from mqproof.spec.guarantee.matrix import Cell, Outcome, Verdicts

RUNS: Final = 1


def entries(verdicts: Verdicts, chosen: Mapping[str, str]) -> list[Cell]:
    """Return the cells of the matrix that can run with processes, in the selected rows and column."""
    return [
        entry
        for entry, outcome in verdicts.items()
        if outcome is not Outcome.NEVER
        and len(entry.faults) == 1
        and entry.faults[0] in FAULTS
        and all(getattr(entry.setup, name) == value for name, value in chosen.items() if name != "fault")
        and chosen.get("fault", entry.faults[0]) in entry.faults
    ]


def live_through(entry: Cell, expected: Outcome, runs: int, folder: Path) -> Lived:
    """Test one cell of the guarantee matrix. Raises ClusterError, TimeoutError, OSError."""
    worst, failure = Outcome.NEVER, ""
    for seed in range(runs):
        played = live(entry, seed, expected, folder)
        worst = max(worst, played.became, key=lambda outcome: outcome.badness)
        if played.became.badness > expected.badness and not failure:
            failure = f"seed {seed} ends in {describe(played)}, worse than {expected} in the model"
    return Lived(entry, expected, worst, runs, None, failure)


def live_through_all(
    verdicts: Verdicts, chosen: Mapping[str, str], runs: int, folder: Path
) -> Iterator[Lived]:
    """Yield the results of the selected cells in the matrix's order.

    Raises the errors of `live_through`.
    """
    for entry in entries(verdicts, chosen):
        yield live_through(entry, verdicts[entry], runs, folder)
