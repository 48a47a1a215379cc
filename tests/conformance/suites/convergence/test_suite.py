"""The suite convergence of `conform`: our cluster, defects, handwritten lives, and other targets."""

import pytest

from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.engine.value_pairs import row_of
from mqproof.conformance.mutants.convergence import MUTANTS
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.subjects.convergence_run import live
from mqproof.conformance.suites.convergence import suite
from mqproof.conformance.suites.convergence.checkers import CHECKERS
from mqproof.conformance.suites.convergence.dimensions import DIMENSIONS
from mqproof.conformance.suites.convergence.steps import Calm, Life, Operation, Routed
from mqproof.report.model import Verdict

RUN = SUITES["convergence"].run
SEEDS = dict.fromkeys(MUTANTS, 0) | {"route-never-refreshed": 2}
"""The first seed that detects each mutant."""
BOTH = frozenset({"a", "b"})


def silent(*_: int) -> None:
    """Show no progress."""


def test_our_cluster_holds_every_invariant() -> None:
    part = RUN(RunOptions("impl", examples=3), silent)
    assert {each.id: each.verdict for each in part.results} == dict.fromkeys(CHECKERS, Verdict.HELD)


def test_a_run_has_the_pairs_of_its_row() -> None:
    script = "\n".join(map(str, live(1).operations))
    assert DIMENSIONS.pairs_of(row_of(DIMENSIONS, 1)) <= DIMENSIONS.shown_in(script)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_named_invariant_detects_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name], seed=SEEDS[name], examples_max=1)
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed"


def test_every_invariant_of_the_suite_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == set(CHECKERS)


@pytest.mark.parametrize(
    ("operations", "violated"),
    [
        ((Calm(0, BOTH), Routed(89, frozenset()), Routed(90, BOTH)), set()),
        ((Calm(0, BOTH), Routed(90, frozenset("a"))), {"ROUTE-7"}),
        ((Calm(0, frozenset("a")), Routed(179, BOTH), Routed(180, frozenset("a"))), set()),
        ((Calm(0, frozenset("a")), Routed(180, BOTH)), {"ROUTE-3"}),
        ((Routed(500, frozenset()),), set()),
    ],
)
def test_the_bounds_decide(operations: tuple[Operation, ...], violated: set[str]) -> None:
    found = {id_: check(Life(operations)).verdict for id_, check in CHECKERS.items()}
    assert {id_ for id_, verdict in found.items() if verdict is Verdict.VIOLATED} == violated


def test_a_life_without_calm_is_unknown() -> None:
    assert {check(Life((Routed(500, BOTH),))).verdict for check in CHECKERS.values()} == {Verdict.UNKNOWN}


def test_another_target_is_not_examined() -> None:
    with pytest.raises(UnknownTargetError, match="only our own brokers"):
        RUN(RunOptions("apache:5", examples=1), silent)


def test_the_invariants_are_listed_for_a_dry_run() -> None:
    listed = [line.split()[0] for line in suite.lines(RunOptions("impl", ids=("ROUTE-7",)))]
    assert listed == ["ROUTE-7"]
