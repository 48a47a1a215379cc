"""Goal: traces are bounded, true and counted, and the model matches TLC's state graph."""

from pathlib import Path

from mqproof import spec
from mqproof.reference import tracing
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.tracing import Config, State, Trace

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()
SENT = (("Begin", "s1"), ("End", "s1", "good"))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = tracing.initial(config)
    for name, *parameters in actions:
        changed = tracing.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_a_refused_send_has_no_trace() -> None:
    state = after(("Begin", "s1"), ("End", "s1", "refused"))
    assert (state.waiting, state.dropped) == (frozenset(), 0)


def test_a_call_is_not_refused() -> None:
    assert tracing.end(CONFIG, after(("Begin", "c1")), "c1", "refused") is None


def test_a_send_ends_although_there_is_no_room_for_its_trace() -> None:
    config = Config(waiting_max=1)
    state = after(("Begin", "c1"), *SENT, config=config)
    assert state.outcome == ("good", "running")
    assert state.waiting == {Trace("c1", "began")}
    assert state.dropped == 1


def test_a_batch_without_an_answer_is_counted_although_it_is_stored() -> None:
    state = after(*SENT, ("Take",), ("Store",), ("Settle", False))
    assert state.topic == {Trace("s1", "good")}
    assert (len(state.sent), state.dropped) == (0, 1)


def test_a_stop_counts_what_waits_and_what_is_being_sent() -> None:
    state = after(*SENT, ("Take",), ("Begin", "c1"), ("Stop",), ("Stopped",))
    assert (state.phase, state.dropped) == ("stopped", 2)


def test_the_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCTracing_smoke.cfg").read_text(encoding="utf-8")
    exploration = explore(tracing.MODEL, tracing.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (1847, 14)


def test_the_tracing_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCTracing_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert tracing.MODEL.from_constants(constants(text)) == Config(waiting_max=1)
    equivalence = compare(tracing.MODEL, "MCTracing", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 1637
