"""Goal: the delivery and group models match their TLA+ modules and TLC's state graphs.

Method: short sequences of actions; small models against TLC.
"""

from pathlib import Path
from typing import Any

import pytest

from mqproof import spec
from mqproof.reference import delivery, group
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.model import Model

TLA = Path(spec.__file__).parent / "tla"
SMALL = """
CONSTANTS
    Messages = {"m1"}
    Queues = {"q0"}
    Consumers = {"c1", "c2"}
    MaxSends = 1
"""


def after(model: Model[Any, Any], config: Any, *steps: tuple[Any, ...]) -> Any:
    """Return the state after these steps; each step must be enabled."""
    state = model.initial(config)[0]
    for name, *parameters in steps:
        following = model.actions[name].apply(config, state, *parameters)
        assert following is not None, (name, parameters)
        state = following
    return state


def test_a_message_is_stored_at_most_as_often_as_it_was_sent() -> None:
    config = delivery.Config(messages=("m1",), sends_max=2)
    steps = (("Store", "q0", "m1"), ("Fail", "m1"), ("Retry", "m1"), ("Store", "q0", "m1"))
    state = after(delivery.MODEL, config, *steps)
    assert state.queue == (("m1", "m1"),)
    assert delivery.store(config, state, "q0", "m1") is None


def test_an_acknowledged_or_delivered_message_is_lost_only_after_the_guarantee_is_withdrawn() -> None:
    config = delivery.Config(messages=("m1",))
    acknowledged = after(delivery.MODEL, config, ("Store", "q0", "m1"), ("Acknowledge", "m1"))
    delivered = after(delivery.MODEL, config, ("Store", "q0", "m1"), ("Deliver", "q0", 1))
    for state in (acknowledged, delivered):
        assert delivery.lose(config, state, "q0", 0) is None
        withdrawn = delivery.withdraw(config, state)
        assert withdrawn is not None
        assert delivery.lose(config, withdrawn, "q0", 0) is not None


def test_a_crash_before_the_offset_commit_allows_a_duplicate_delivery() -> None:
    config = group.Config(delivery.Config(messages=("m1",)))
    delivered = (("Store", "q0", "m1"), ("Start", "c1", "q0"), ("Deliver", "c1", "q0"))
    assert after(group.MODEL, config, *delivered).due == ((0,),)
    again = after(group.MODEL, config, *delivered, ("ConsumerCrash", "c1"), ("Start", "c1", "q0"))
    assert again.due == ((1,),)
    committed = (*delivered, ("CommitOffset", "c1", "q0"), ("ConsumerCrash", "c1"), ("Start", "c1", "q0"))
    assert after(group.MODEL, config, *committed).due == ((0,),)


def test_a_delivery_to_the_previous_owner_is_an_explained_duplicate() -> None:
    config = group.Config(delivery.Config(messages=("m1",)))
    moved = (("Store", "q0", "m1"), ("Start", "c1", "q0"), ("Rebalance", "q0", "c2"), ("Start", "c2", "q0"))
    state = after(group.MODEL, config, *moved, ("Deliver", "c1", "q0"), ("Deliver", "c2", "q0"))
    assert state.due == ((0,),)
    assert group.duplicates_explained(config, state)


@pytest.mark.parametrize(
    ("model", "states"), [(delivery.MODEL, 62), (group.MODEL, 1108)], ids=["Delivery", "Group"]
)
def test_the_model_has_the_same_state_graph_as_tlc(model: Model[Any, Any], states: int) -> None:
    text = SMALL if model is group.MODEL else SMALL.replace('    Consumers = {"c1", "c2"}\n', "")
    equivalence = compare(model, f"MC{model.name}", text, (TLA,), next_name="MCNext")
    assert equivalence.equal
    assert equivalence.violation is None
    assert equivalence.states == states
