"""The suite consumers of `conform`: our consumers, a defect, and targets that it cannot examine."""

import pytest

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.suite_results import SCRIPT
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.engine.value_pairs import row_of
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.mutants.workload import MUTANTS
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.suites.consumers import suite
from mqproof.conformance.suites.consumers.dimensions import DIMENSIONS
from mqproof.conformance.suites.consumers.target import ROWS
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.report.model import Verdict

RUN = SUITES["consumers"].run


def test_our_consumers_hold_every_invariant_of_the_group() -> None:
    seen: list[tuple[int, int]] = []
    options = RunOptions("impl", seed=3, examples=10)
    part = RUN(options, lambda done, all_: seen.append((done, all_)))
    held = dict.fromkeys((*CHECKERS, SPEC_1), Verdict.HELD)
    assert {each.id: each.verdict for each in part.results} == held
    assert seen == [(8, 10), (10, 10)]
    assert part.looked_at["operations"] > 100
    rows = [row_of(DIMENSIONS, ROWS * 3 + number) for number in range(2 * ROWS)]
    expected = {pair for row in rows for pair in DIMENSIONS.pairs_of(row)}
    assert part.looked_at["pairs covered"] >= len(expected)


def test_a_defect_is_reported_with_its_script_and_replay_command() -> None:
    with injected(MUTANTS["everybody-owns-everything"]):
        part = RUN(RunOptions("impl", seed=3, examples=1, ids=("DELIV-6",)), lambda *_: None)
    (found,) = part.results
    assert found.verdict is Verdict.VIOLATED
    assert found.witnesses[-1].text == SCRIPT
    assert found.witnesses[-1].timeline
    assert found.replay == "mqproof conform --target impl --suite consumers --seed 3 --examples 1"


def test_consumers_of_other_targets_are_not_examined() -> None:
    with pytest.raises(UnknownTargetError, match="our own consumers"):
        RUN(RunOptions("apache:5"), lambda *_: None)
    assert [each.id for each in suite.listed(RunOptions("apache:5", ids=("DELIV-[12]",)))] == [
        "DELIV-1",
        "DELIV-2",
    ]
    assert all("consumers" in line for line in suite.lines(RunOptions("impl")))
