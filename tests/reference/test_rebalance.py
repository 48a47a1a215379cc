"""Goal: members that agree share no queue, and the model matches TLC's state graph.

Source: docs/reference/protocol/groups.md, "Queue allocation".
"""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import rebalance
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.rebalance import Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()


def joined(*members: int, broker: str = "a") -> tuple[tuple[object, ...], ...]:
    return tuple(step for m in members for step in (("Start", m), ("Heartbeat", m, broker)))


def shares(state: State) -> list[set[int]]:
    return [set(share) for share in state.share]


def after(*actions: tuple[object, ...], config: Config = CONFIG, count: int = 0) -> State:
    state = rebalance.initial(config)[count]
    for name, *parameters in actions:
        changed = rebalance.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


@pytest.mark.parametrize("strategy", [rebalance.average, rebalance.circle])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_the_shares_are_a_partition(strategy: rebalance.Strategy, size: int, count: int) -> None:
    shares = [strategy(place, size, count) for place in range(size)]
    assert sorted(queue for share in shares for queue in share) == list(range(1, count + 1))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_with_one_queue_the_second_member_has_none() -> None:
    state = after(*joined(2, 1), ("Rebalance", 1, "a"), ("Rebalance", 2, "a"))
    assert shares(state) == [{1}, set()]


def test_both_members_own_a_queue_until_the_first_one_rebalances() -> None:
    state = after(*joined(2), ("Rebalance", 2, "a"), *joined(1), ("Rebalance", 1, "a"), count=1)
    assert shares(state) == [{1}, {1, 2}]
    assert not rebalance.settled(CONFIG, state)
    later = after(*joined(2, 1), ("Rebalance", 2, "a"), ("Rebalance", 1, "a"), count=1)
    assert shares(later) == [{1}, {2}]


def test_a_member_that_the_broker_does_not_list_has_no_queues() -> None:
    state = after(*joined(1), ("Start", 2), ("Rebalance", 2, "a"))
    assert state.share[1] == frozenset()


def test_a_dead_member_owns_nothing_but_counts_until_it_is_forgotten() -> None:
    state = after(*joined(1, 2), ("Die", 1), ("Rebalance", 2, "a"), count=1)
    assert shares(state) == [set(), {2}]
    assert not rebalance.settled(CONFIG, state)


def test_another_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCRebalance_liveness_smoke.cfg").read_text(encoding="utf-8")
    exploration = explore(rebalance.MODEL, rebalance.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (4000, 13)


@pytest.mark.deep("a run of TLC; the number of states of another model is compared in every run")
def test_the_rebalance_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCRebalance_brokers.cfg").read_text(encoding="utf-8")
    assert rebalance.MODEL.from_constants(constants(text)) == Config(brokers=("a", "b"), counts=(3,))
    equivalence = compare(rebalance.MODEL, "MCRebalance", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 900
