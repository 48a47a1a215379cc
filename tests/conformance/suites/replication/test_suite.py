"""The suite replication of `conform`: our pair, a defect, and targets that it cannot examine."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.engine.value_pairs import row_of
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.subjects.pair_run import live
from mqproof.conformance.suites.replication import suite
from mqproof.conformance.suites.replication.checkers import CHECKERS, Life
from mqproof.conformance.suites.replication.dimensions import DIMENSIONS
from mqproof.report.model import Verdict

RUN = SUITES["replication"].run


def silent(*_: int) -> None:
    """Show no progress."""


def test_our_pair_holds_every_invariant_of_replication() -> None:
    part = RUN(RunOptions("impl", seed=8, examples=4), silent)
    assert {each.id: each.verdict for each in part.results} == dict.fromkeys(CHECKERS, Verdict.HELD)
    assert all(each.counts["pairs"] == 4 for each in part.results)
    assert part.looked_at["operations"] > 0


def test_a_lost_replica_is_found_with_its_seed_and_its_sends() -> None:
    def loses(seed: int) -> Life:
        lived = live(seed)
        return replace(lived, sends=tuple(replace(send, on_slave=False) for send in lived.sends))

    found = {each.id: each for each in _run(loses, seed=4).results}
    assert found["REPL-1"].verdict is Verdict.VIOLATED
    assert found["REPL-1"].replay == "mqproof conform --target impl --suite replication --seed 4 --examples 1"
    assert found["REPL-1"].witnesses
    assert found["REPL-2"].verdict is Verdict.HELD


def test_a_run_that_shows_nothing_is_unknown() -> None:
    def nothing(seed: int) -> Life:
        empty = replace(live(seed), sends=(), logs=(), reads=(), caught_up=None, slave_offsets=())
        return replace(empty, wrong=(), answers=0)

    assert {each.verdict for each in _run(nothing, seed=3).results} == {Verdict.UNKNOWN}


def test_a_record_that_arrives_after_the_end_of_its_master_makes_a_fork() -> None:
    """In such a run the master loses its power right after it has sent a record that it had not flushed."""
    lived = next(lived for lived in map(live, range(85, 100)) if lived.logs[-1].forked)
    assert CHECKERS["REPL-2"](lived).verdict is Verdict.HELD


@pytest.mark.parametrize("seed", [4, 17])
def test_a_run_has_the_pairs_of_its_row(seed: int) -> None:
    script = "\n".join(live(seed).script)
    assert DIMENSIONS.pairs_of(row_of(DIMENSIONS, seed)) <= DIMENSIONS.shown_in(script)


def test_another_target_is_not_examined() -> None:
    with pytest.raises(UnknownTargetError, match="only our own master and slave"):
        RUN(RunOptions("reference", examples=1), silent)


def test_the_invariants_are_listed_for_a_dry_run() -> None:
    listed = [line.split()[0] for line in suite.lines(RunOptions("impl", ids=("REPL-*",)))]
    assert listed == ["REPL-1", "REPL-2", "REPL-3", "REPL-4", "REPL-5"]


def _run(play: Callable[[int], Life], seed: int) -> Part:
    return suite.run(RunOptions("impl", examples=1, seed=seed), silent, play)
