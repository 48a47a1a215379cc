"""Behaviours of Election on our Raft cores: every step of the smoke model, and planted defects differ."""

import itertools

import pytest

from conformance import mutants
from conformance.behaviours.corpus import file_of, read, read_lines
from conformance.behaviours.replay import Replayed, replay
from conformance.behaviours.target import resolve
from conformance.targets.group_mutants import MUTANTS
from report.model import Verdict

STATES, STEPS = 994, 3254


def on_ours(every: int) -> Replayed:
    make = resolve("impl", "Election")
    assert make is not None
    scripts = read(read_lines(file_of("Election")), "Election")
    return replay(make, itertools.islice(scripts, 0, None, every), failures_max=1)


def test_our_members_do_what_the_model_does() -> None:
    seen = on_ours(4)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > STEPS // 3
    assert len(seen.actions) == 8
    assert {"HandleVote", "HandlePush", "HandleHeartBeat", "AdvanceCommit"} <= (+seen.refused).keys()


@pytest.mark.deep
def test_they_take_every_step_of_the_model() -> None:
    seen = on_ours(1)
    assert (len(seen.failures), len(seen.impossible)) == (0, 0)
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_of_a_member_is_seen(name: str) -> None:
    (result,) = mutants.run([name])
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed in {result.counts}"
