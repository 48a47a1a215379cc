"""Goal: random behaviours that the seed decides. Method: Counter; every step is one of its edges."""

from itertools import pairwise

from spec.tlc import config
from spec.tlc.run import Job
from spec.tlc.simulate import simulate
from spec.tlc.values import Function
from tests.spec.tlc.counter import CONFIG, LIBRARIES
from tests.spec.tlc.test_graph import by_hand

JOB = Job("Counter", config.parse(CONFIG).without("INVARIANT", "PROPERTY").text(), LIBRARIES)


def test_the_seed_decides_the_behaviours_and_each_is_one_of_the_model() -> None:
    behaviours = simulate(JOB, traces=3, depth=6, seed=7)
    assert [len(behaviour) for behaviour in behaviours] == [6, 6, 6]
    for behaviour in behaviours:
        states = [step.state for step in behaviour.steps]
        assert states[0]["log"] == ()
        for before, after in pairwise(states):
            assert Function(after) in {target for _, target in by_hand(before)}
    assert simulate(JOB, traces=3, depth=6, seed=7) == behaviours
    assert simulate(JOB, traces=3, depth=6, seed=8) != behaviours
