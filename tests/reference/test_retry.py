"""Goal: a failing message is retried and then a dead letter, and the model matches TLC's state graph.

Source: docs/reference/protocol/retries-and-delays.md, "Retries".
"""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import retry
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.retry import Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()
FAILED = (("Send", "m1"), ("Secure",), ("Deliver", 1), ("Fail", 1))
SENT_BACK = (*FAILED, ("SendBack", 1), ("Secure",), ("Confirm", 2))
RETRIED = (*SENT_BACK, ("Tick",), ("Move", 2), ("Secure",), ("Deliver", 3))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = retry.initial(config)
    for name, *parameters in actions:
        changed = retry.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_the_answer_waits_until_the_copy_is_safe() -> None:
    assert retry.confirm(CONFIG, after(*FAILED, ("SendBack", 1)), 2) is None


def test_a_delayed_copy_is_not_moved_before_it_is_due() -> None:
    state = after(*SENT_BACK)
    assert retry.move(CONFIG, state, 2) is None
    assert after(*SENT_BACK, ("Tick",), ("Move", 2)).log[-1].kind == "retry"


def test_a_message_becomes_a_dead_letter_after_its_last_retry() -> None:
    state = after(*RETRIED, ("Fail", 3), ("SendBack", 3))
    assert [(record.kind, record.times) for record in state.log] == [
        ("topic", 0),
        ("delay", 1),
        ("retry", 1),
        ("dead", 2),
    ]


def test_a_later_retry_waits_longer_up_to_the_last_level() -> None:
    assert [retry.level(Config(level_max=2), number) for number in (1, 2, 3)] == [1, 2, 2]


def test_the_offset_does_not_pass_a_message_that_failed() -> None:
    two = Config(msgs=("m1", "m2"), records_max=6)
    both = (("Send", "m1"), ("Send", "m2"), ("Secure",), ("Deliver", 1), ("Deliver", 2))
    state = after(*both, ("Fail", 1), ("Succeed", 2), ("MemberEnds", False), config=two)
    assert state.done == frozenset()


def test_a_crash_takes_back_progress_whose_copy_is_not_safe() -> None:
    moved = (*SENT_BACK, ("Tick",), ("Move", 2))
    assert after(*moved, ("Crash", 2, False)).moved == frozenset()
    assert after(*moved, ("Secure",), ("Crash", 3, False)).moved == {2}


def test_a_lost_answer_makes_a_second_copy() -> None:
    state = after(*FAILED, ("SendBack", 1), ("Lose", 2), ("SendBack", 1))
    assert [record.origin for record in state.log] == [0, 1, 1]


def test_another_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCRetry_together.cfg").read_text(encoding="utf-8")
    exploration = explore(retry.MODEL, retry.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (1004, 17)


@pytest.mark.deep("a run of TLC; the number of states of another model is compared in every run")
def test_the_retry_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCRetry_smoke.cfg").read_text(encoding="utf-8")
    assert retry.MODEL.from_constants(constants(text)) == CONFIG
    equivalence = compare(retry.MODEL, "MCRetry", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 837
