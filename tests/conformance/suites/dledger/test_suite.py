"""The suite dledger of `conform`: our group, defects, handwritten lives, and other targets."""

import pytest

from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.engine.value_pairs import row_of
from mqproof.conformance.mutants.dledger import OBSERVED
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.subjects.group_run import live
from mqproof.conformance.suites.dledger import suite
from mqproof.conformance.suites.dledger.checkers import CHECKERS
from mqproof.conformance.suites.dledger.dimensions import DIMENSIONS
from mqproof.conformance.suites.dledger.steps import (
    Append,
    Calm,
    Claim,
    End,
    Life,
    Log,
    Operation,
    Read,
    Vote,
)
from mqproof.report.model import Verdict

RUN = SUITES["dledger"].run
SEEDS = dict.fromkeys(OBSERVED, 0) | {
    "half-is-enough": 1,
    "timed-out-entry-removed": 5,
    "log-of-candidate-ignored": 2,
    "voter-does-not-wait": 1,
}
"""The first seed that detects each mutant."""


def silent(*_: int) -> None:
    """Show no progress."""


def test_our_group_holds_every_invariant() -> None:
    part = RUN(RunOptions("impl", examples=6), silent)
    assert {each.id: each.verdict for each in part.results} == dict.fromkeys(CHECKERS, Verdict.HELD)


def test_a_leader_that_was_cut_off_after_its_election_answers_no_client() -> None:
    part = RUN(RunOptions("impl", seed=20261131, examples=1, ids=("RAFT-9",)), silent)
    assert [each.verdict for each in part.results] == [Verdict.HELD]


def test_a_run_has_the_pairs_of_its_row() -> None:
    script = "\n".join(map(str, live(1).operations))
    assert DIMENSIONS.pairs_of(row_of(DIMENSIONS, 1)) <= DIMENSIONS.shown_in(script)


@pytest.mark.parametrize("name", OBSERVED)
def test_the_named_invariant_detects_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name], seed=SEEDS[name], examples_max=1)
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed"


def test_every_invariant_of_the_suite_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in OBSERVED.values()} == set(CHECKERS)


LOG = Log("n0", 2, ((1, b""), (2, b"a")))


@pytest.mark.parametrize(
    ("id_", "operations"),
    [
        ("RAFT-1", (Claim("n0", 1, "n0"), End("n1", 1, "n1", 0))),
        ("RAFT-2", (End("n0", 1, "n0", 3), End("n0", 1, "n0", 2))),
        ("RAFT-3", (LOG, Log("n1", 3, ((1, b"x"), (2, b"a"))))),
        ("RAFT-4", (Append("n0", 2, 1, b"a"), Log("n1", 3, ((1, b""),)))),
        ("RAFT-5", (LOG, Read("n1", 3, 1, (3, b"b")))),
        ("RAFT-6", (Vote("n0", 4, "n1"), Claim("n0", 4, "n0"))),
        ("RAFT-7", (Calm(serves=False, ends=()),)),
        ("RAFT-8", (Calm(serves=True, ends=(("n0", 3), ("n1", 2))),)),
        ("RAFT-8", (LOG, Log("n1", 3, ((1, b""),)))),
        ("RAFT-9", (LOG, Read("n1", 1, 0, (1, b"")))),
        ("SPEC-1", (LOG, Append("n1", 1, 0, b""))),
    ],
)
def test_a_forbidden_life_names_the_invariant(id_: str, operations: tuple[Operation, ...]) -> None:
    assert CHECKERS[id_](Life(operations)).verdict is Verdict.VIOLATED


def test_a_life_that_shows_nothing_is_unknown() -> None:
    assert {check(Life(())).verdict for check in CHECKERS.values()} == {Verdict.UNKNOWN}


def test_an_allowed_life_holds_every_invariant() -> None:
    continued = Log("n1", 3, (*LOG.entries, (3, b"")))
    life = Life((
        Vote("n1", 3, "n1"), Claim("n0", 2, "n0"), End("n0", 2, "n0", 0), Append("n0", 2, 1, b"a"),
        End("n0", 2, "n0", 1), Calm(serves=True, ends=(("n0", 1), ("n1", 1))), LOG, End("n1", 3, "n1", 2),
        continued,
    ))  # fmt: skip
    assert {id_: check(life).verdict for id_, check in CHECKERS.items()} == dict.fromkeys(
        CHECKERS, Verdict.HELD
    )


def test_another_target_is_not_examined() -> None:
    with pytest.raises(UnknownTargetError, match="only our own group"):
        RUN(RunOptions("reference", examples=1), silent)


def test_the_invariants_are_listed_for_a_dry_run() -> None:
    listed = [line.split()[0] for line in suite.lines(RunOptions("impl", ids=("RAFT-[12]",)))]
    assert listed == ["RAFT-1", "RAFT-2"]
