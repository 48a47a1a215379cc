"""Goal: a request ends once, with its own reply or an error, and the model matches TLC's state graph."""

from pathlib import Path

from mqproof import spec
from mqproof.reference import request_reply
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.request_reply import Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()
SENT = (("Connect", "c1"), ("Request", "c1", "r1"), ("Store", "r1"))
REPLIED = (*SENT, ("Reply", "r1"), ("Receive", "c1", "r1", True))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = request_reply.initial(config)
    for name, *parameters in actions:
        changed = request_reply.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_a_request_waits_for_a_heartbeat_of_its_client() -> None:
    (state,) = request_reply.initial(CONFIG)
    assert request_reply.request(CONFIG, state, "c1", "r1") is None


def test_a_second_reply_is_received_and_gives_no_second_result() -> None:
    state = after(*REPLIED, ("Reply", "r1"), ("Receive", "c1", "r1", True))
    assert (state.outcome[0], state.results[0]) == ("reply", 1)


def test_a_late_reply_does_not_change_the_outcome() -> None:
    state = after(*SENT, ("Expire", "r1"), ("Reply", "r1"), ("Receive", "c1", "r1", True))
    assert (state.outcome[0], state.results[0], state.confirmed) == ("timeout", 1, frozenset({"r1"}))


def test_a_reply_to_a_client_that_is_gone_changes_nothing() -> None:
    assert request_reply.reply(CONFIG, after(*SENT, ("Disconnect", "c1")), "r1") is None


def test_the_next_process_with_the_same_client_id_drops_the_reply() -> None:
    state = after(*SENT, ("Restart", "c1"), ("Connect", "c1"), ("Reply", "r1"))
    assert after(*SENT, ("Restart", "c1")).outcome[0] == "lost"
    received = request_reply.receive(CONFIG, state, "c1", "r1", True)
    assert received is not None
    assert (received.outcome[0], received.results[0]) == ("lost", 0)


def test_a_refused_request_is_never_stored() -> None:
    state = after(("Connect", "c1"), ("Request", "c1", "r1"), ("Refuse", "r1"))
    assert request_reply.store(CONFIG, state, "r1") is None


def test_the_largest_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCRequestReply_two.cfg").read_text(encoding="utf-8")
    exploration = explore(request_reply.MODEL, request_reply.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (3708, 17)


def test_the_request_reply_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCRequestReply_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert request_reply.MODEL.from_constants(constants(text)) == CONFIG
    equivalence = compare(request_reply.MODEL, "MCRequestReply", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 508
