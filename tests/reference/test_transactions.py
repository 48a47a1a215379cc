"""Goal: a message is visible if and only if it was committed, and the model matches TLC's state graph."""

from pathlib import Path

from mqproof import spec
from mqproof.reference import transactions
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.transactions import Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()
RUNNING = (("Send", "t1"), ("Secure",), ("Acknowledge", "t1"))
COMMITTED = (*RUNNING, ("Commit", "t1"), ("Report", "t1", 1, "commit"), ("End", "t1", 1, "commit"))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = transactions.initial(config)
    for name, *parameters in actions:
        changed = transactions.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_the_local_transaction_waits_until_the_half_message_is_safe() -> None:
    assert transactions.acknowledge(CONFIG, after(("Send", "t1")), "t1") is None
    assert after(*RUNNING).phase == ("running",)


def test_a_final_message_without_its_operation_record_ends_the_transaction_after_a_crash() -> None:
    state = after(*COMMITTED, ("Crash", 2, 0), ("Read",))
    assert not transactions.is_open(state, "t1")
    assert transactions.end_transaction(CONFIG, state, "t1", 1, "commit") is None
    assert transactions.is_open(after(*COMMITTED, ("Crash", 1, 0), ("Read",)), "t1")


def test_a_request_that_names_the_original_ends_a_transaction_with_copies() -> None:
    state = after(*RUNNING, ("Ripen", "t1"), ("Check", "t1"), ("Commit", "t1"), ("Report", "t1", 1, "commit"))
    ended = transactions.end_transaction(CONFIG, state, "t1", 1, "commit")
    assert ended is not None
    assert not transactions.is_open(ended, "t1")


def test_the_progress_passes_a_half_message_only_when_its_end_is_safe() -> None:
    state = after(*COMMITTED, ("WriteOperations",))
    assert transactions.advance(CONFIG, state) is None
    assert after(*COMMITTED, ("WriteOperations",), ("Secure",), ("Advance",)).progress == 1


def test_a_request_for_a_lost_half_message_does_not_end_the_one_in_its_place() -> None:
    config = Config(txs=("t1", "t2"), checks_max=0)
    lost = (("Send", "t1"), ("Abort", "t1"), ("Report", "t1", 1, "rollback"), ("Crash", 0, 0), ("Read",))
    state = after(*lost, ("Send", "t2"), config=config)
    assert transactions.end_transaction(config, state, "t1", 1, "rollback") is None


def test_the_smoke_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCTransactions_smoke.cfg").read_text(encoding="utf-8")
    exploration = explore(transactions.MODEL, transactions.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (3645, 18)


def test_the_transactions_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCTransactions_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert transactions.MODEL.from_constants(constants(text)) == CONFIG
    equivalence = compare(transactions.MODEL, "MCTransactions", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 770
