"""Goal: each member of a broadcast group reads every message, and the model matches TLC's state graph.

Source: docs/reference/protocol/offsets.md, "Broadcast offsets".
"""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import broadcast
from mqproof.reference.broadcast import Config, State
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config(length_max=2)
READS = (("Start", "c1"), ("Begin", "c1", "q0"))
PULLED = (*READS, ("Store", "q0"), ("Store", "q0"), ("Pull", "c1", "q0"), ("Pull", "c1", "q0"))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = broadcast.initial(config)
    for name, *parameters in actions:
        changed = broadcast.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_a_member_begins_at_the_end_and_writes_this_place() -> None:
    state = after(("Store", "q0"), *READS)
    assert (state.next, state.file, state.first) == (((2,),), ((2,),), ((2,),))


def test_a_queue_that_is_created_later_is_read_from_its_beginning() -> None:
    late = Config(initial=())
    state = after(("Start", "c1"), ("Create", "q0"), ("Store", "q0"), ("Begin", "c1", "q0"), config=late)
    assert state.next == ((1,),)


def test_the_offset_does_not_pass_a_message_that_is_not_consumed() -> None:
    state = after(*PULLED, ("Consume", "c1", "q0", 2))
    assert broadcast.persist(CONFIG, state, "c1", "q0") is None
    assert broadcast.offset(CONFIG, state, "c1", "q0") == 1


def test_a_member_that_starts_again_repeats_what_its_file_does_not_have() -> None:
    state = after(*PULLED, ("Consume", "c1", "q0", 1), ("Die", "c1"), *READS)
    assert state.next == ((1,),)


def test_both_members_get_the_message() -> None:
    two = Config(members=("c1", "c2"))
    reads = tuple(step for c in two.members for step in (("Start", c), ("Begin", c, "q0")))
    got = tuple(step for c in two.members for step in (("Pull", c, "q0"), ("Consume", c, "q0", 1)))
    assert after(*reads, ("Store", "q0"), *got, config=two).got == (({1},), ({1},))


def test_a_larger_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCBroadcast_messages.cfg").read_text(encoding="utf-8")
    exploration = explore(broadcast.MODEL, broadcast.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (5161, 26)


@pytest.mark.deep("a run of TLC; the number of states of another model is compared in every run")
def test_the_broadcast_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCBroadcast_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert broadcast.MODEL.from_constants(constants(text)) == Config(queues=("q0", "q1"))
    equivalence = compare(broadcast.MODEL, "MCBroadcast", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 401
