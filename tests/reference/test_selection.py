"""Goal: a member receives what its expression selects, and the model matches TLC's state graph.

Source: docs/reference/protocol/pulling.md, "Pull requests".
"""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import selection
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.selection import Config, State

TLA = Path(spec.__file__).parent / "tla"
A, B = frozenset({"a"}), frozenset({"b"})
CONFIG = Config()
PULLED = (("Store", "a"), ("Store", "b"), ("Pull",))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    state = selection.initial(config)[0]
    for name, *parameters in actions:
        changed = selection.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_the_broker_passes_a_tag_with_the_same_hash_code_and_the_member_drops_it() -> None:
    two = Config(batch_max=2)
    answered = after(*PULLED, ("Answer", 2), config=two)
    assert answered.answer.found == {1, 2}
    received = selection.receive(two, answered)
    assert received is not None
    assert (set(received.received), received.position) == ({1}, 2)


def test_a_full_response_ends_before_the_next_message() -> None:
    assert selection.give_answer(CONFIG, after(*PULLED), 2) is None
    assert after(*PULLED, ("Answer", 1)).answer.next == 2


def test_the_expression_of_the_pull_decides() -> None:
    state = after(*PULLED, ("Answer", 1), ("Subscribe", B), ("Receive",))
    assert (set(state.received), state.judged) == ({1}, (A,))
    later = after(
        *PULLED, ("Answer", 1), ("Subscribe", B), ("Receive",), ("Pull",), ("Answer", 2), ("Receive",)
    )
    assert (set(later.received), later.judged) == ({1, 2}, (A, B))


def test_only_the_expression_for_all_selects_messages_without_a_tag() -> None:
    every = frozenset({"", "a"})
    config = Config(tags=("", "a"), colliding=("a",), expressions=(every, A))
    assert selection.passes(config, "", every)
    assert not selection.passes(config, "", A)


def test_a_lost_pull_passes_nothing() -> None:
    assert after(*PULLED, ("Answer", 1), ("Lose",)).position == 0


def test_larger_models_have_as_many_states_as_in_tlc_and_no_violation() -> None:
    for name, size in {"MCSelection_three": (4142, 18), "MCSelection_exact": (4952, 13)}.items():
        text = (TLA / f"{name}.cfg").read_text(encoding="utf-8")
        exploration = explore(selection.MODEL, selection.MODEL.from_constants(constants(text)))
        assert exploration.violation is None
        assert (len(exploration.parents), exploration.depth) == size


@pytest.mark.deep("a run of TLC; the number of states of other models is compared in every run")
def test_the_selection_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCSelection_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert selection.MODEL.from_constants(constants(text)) == CONFIG
    equivalence = compare(selection.MODEL, "MCSelection", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 266
