"""Goal: a message is visible once, when due, unless recalled; the model matches the state graph of TLC."""

from pathlib import Path

from mqproof import spec
from mqproof.reference import timers
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.timers import Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()
ACKED = (("Send", "m1", 1), ("Learn",), ("Secure",), ("Acknowledge", "m1"))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = timers.initial(config)
    for name, *parameters in actions:
        changed = timers.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_a_message_is_delivered_when_it_is_due_and_not_before() -> None:
    assert timers.deliver(CONFIG, after(*ACKED), "m1") is None
    assert after(*ACKED, ("Tick",), ("Deliver", "m1")).log[-1].at == 1


def test_a_delay_beyond_the_maximum_is_refused() -> None:
    assert timers.send(CONFIG, after(), "m1", 3) is None


def test_a_restart_finds_the_final_message_in_the_log() -> None:
    delivered = (*ACKED, ("Tick",), ("Deliver", "m1"))
    assert after(*delivered, ("Crash", 2), ("Read",)).waiting == frozenset()
    assert after(*delivered, ("Crash", 1), ("Read",)).waiting == {1}


def test_a_recalled_message_is_not_delivered_after_a_restart() -> None:
    state = after(*ACKED, ("Recall", "m1"), ("Tick",), ("Crash", 2), ("Read",))
    assert timers.deliver(CONFIG, state, "m1") is None


def test_a_point_covers_only_what_was_read_and_is_done() -> None:
    state = after(("Send", "m1", 1), ("Tick",), ("Point",), ("Crash", 2), ("Read",))
    assert state.waiting == {1}


def test_the_original_is_deleted_only_when_its_copy_is_safe() -> None:
    config = Config(copies_max=2)
    rolled = (*ACKED, ("Roll", "m1"))
    assert timers.delete(config, after(*rolled, config=config)) is None
    assert after(*rolled, ("Secure",), ("Delete",), config=config).begin == 1


def test_the_smoke_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCTimers_smoke.cfg").read_text(encoding="utf-8")
    exploration = explore(timers.MODEL, timers.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (9671, 16)


def test_the_timers_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCTimers_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert timers.MODEL.from_constants(constants(text)) == CONFIG
    equivalence = compare(timers.MODEL, "MCTimers", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 2706
