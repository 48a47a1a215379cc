"""Goal: the seed determines a random behaviour with action names. Method: Counter against Python code."""

from itertools import pairwise

from mqproof.spec.tlc import config
from mqproof.spec.tlc.random_behaviour import walk
from mqproof.spec.tlc.run import Job
from mqproof.spec.tlc.values import Function
from tests.spec.tlc.counter import CONFIG, LIBRARIES
from tests.spec.tlc.test_graph import computed_steps

JOB = Job("Counter", config.parse(CONFIG).without("INVARIANT", "PROPERTY").text(), LIBRARIES)


def test_the_seed_determines_the_walk_and_each_step_is_allowed_by_the_model() -> None:
    found = walk(JOB, 6, 7, "Init", "Next")
    assert len(found) == 6
    assert [step.number for step in found.steps] == [1, 2, 3, 4, 5, 6]
    for before, after in pairwise(found.steps):
        assert (after.action, Function(after.state)) in {
            (name, target) for (name, _), target in computed_steps(before.state)
        }
    assert walk(JOB, 6, 7, "Init", "Next") == found
