"""Goal: only a leader that knows all committed entries serves, and the model matches TLC's state graph.

Source: docs/reference/protocol/dledger.md, "Leadership".
"""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import leader_lease
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.leader_lease import Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()
LEADS = (("StandAgain", "n1"), ("Elect", "n1", ("n3",)))
SERVES = (*LEADS, ("HeartBeat", "n1", "n2"), ("HeartBeat", "n1", "n3"), ("Commit", "n1"))
ASKED = (*SERVES, ("Transfer", "n1", "n2"))
TAKEN = (*ASKED, ("TakeOver", "n1", "n2", 1))


def after(*actions: tuple[object, ...]) -> State:
    (state,) = leader_lease.initial(CONFIG)
    for name, *parameters in actions:
        changed = leader_lease.ACTIONS[str(name)].apply(CONFIG, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


@pytest.mark.parametrize(
    ("actions", "serves"),
    [
        (LEADS, False),
        ((*LEADS, ("HeartBeat", "n1", "n2")), False),
        (SERVES, True),
        (ASKED, False),
        ((*ASKED, ("NotSent", "n1", "n2", 1)), True),
        ((*ASKED, ("Refuse", "n1", "n2", 1)), True),
        ((*ASKED, ("Lose", "n1", "n2", 1)), False),
        ((*ASKED, ("HandOver", "n1")), False),
        ((*TAKEN, ("Lose", "n1", "n2", 1)), False),
        ((*TAKEN, ("Elect", "n2", ("n3",))), False),
    ],
)
def test_a_leader_serves_while_a_quorum_waits_for_it_and_no_node_takes_over(
    actions: tuple[tuple[object, ...], ...], serves: bool
) -> None:
    assert leader_lease.serves(CONFIG, after(*actions), "n1") is serves


def test_a_follower_votes_only_for_a_candidate_that_its_leader_asked() -> None:
    assert leader_lease.may_vote_for(CONFIG, after(*TAKEN), "n3", "n2")
    assert not leader_lease.may_vote_for(CONFIG, after(*SERVES, ("GiveUp", "n2")), "n3", "n2")


def test_a_follower_votes_for_its_leader_that_has_stepped_down() -> None:
    assert leader_lease.may_vote_for(CONFIG, after(*SERVES, ("StepDown", "n1")), "n3", "n1")
    assert not leader_lease.may_vote_for(
        CONFIG, after(*SERVES, ("StepDown", "n1"), ("GiveUp", "n2")), "n3", "n2"
    )


@pytest.mark.parametrize("action", ["NotSent", "Refuse"])
def test_a_request_that_was_taken_does_not_end_the_transfer(action: str) -> None:
    assert leader_lease.ACTIONS[action].apply(CONFIG, after(*TAKEN), "n1", "n2", 1) is None


def test_a_second_transfer_waits_for_the_end_of_the_first() -> None:
    assert leader_lease.transfer(CONFIG, after(*ASKED), "n1", "n3") is None


def test_a_larger_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCLeaderLease_three.cfg").read_text(encoding="utf-8")
    exploration = explore(leader_lease.MODEL, leader_lease.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (3292, 12)


@pytest.mark.deep("a run of TLC; the number of states of another model is compared in every run")
def test_the_lease_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCLeaderLease_smoke.cfg").read_text(encoding="utf-8")
    assert leader_lease.MODEL.from_constants(constants(text)) == CONFIG
    equivalence = compare(leader_lease.MODEL, "MCLeaderLease", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 1164
