"""Goal: one member at a time consumes an orderly queue, and the model matches TLC's state graph."""

from pathlib import Path

from mqproof import spec
from mqproof.reference import order_lock
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.order_lock import NO_MEMBER, Config, State

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config()


def after(*actions: tuple[str, ...], config: Config = CONFIG) -> State:
    (state,) = order_lock.initial(config)
    for name, *parameters in actions:
        changed = order_lock.ACTIONS[name].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def lock(member: str) -> tuple[tuple[str, ...], ...]:
    return (("Ask", member), ("LockQueue", member), ("Hear", member))


def test_only_one_of_two_members_gets_the_lock() -> None:
    state = after(("Gain", "c1"), ("Gain", "c2"), *lock("c1"), *lock("c2"))
    assert state.holder == "c1"
    assert order_lock.begin(CONFIG, state, "c1")
    assert order_lock.begin(CONFIG, state, "c2") is None


def test_a_member_stops_using_its_lock_before_the_broker_can_grant_it_to_another() -> None:
    lost = (("Ask", "c1"), ("Lose", "c1"), ("Tick",))
    state = after(("Gain", "c1"), *lock("c1"), ("Tick",), *lost)
    assert state.holder == "c1"
    assert not order_lock.trusts(CONFIG, state, "c1")
    assert order_lock.lock_queue(CONFIG, state._replace(asking=("no", "asked")), "c2").asking[1] == "refused"  # type: ignore[union-attr]
    over = after(("Gain", "c1"), *lock("c1"), ("Tick",), *lost, *lost)
    assert order_lock.lock_queue(CONFIG, over._replace(asking=("no", "asked")), "c2").holder == "c2"  # type: ignore[union-attr]


def test_the_lease_cannot_expire_during_a_listener_call_unless_the_listener_stalls() -> None:
    lost = (("Ask", "c1"), ("Lose", "c1"))
    state = after(("Gain", "c1"), *lock("c1"), ("Begin", "c1"), ("Tick",), *lost, ("Tick",), *lost)
    assert order_lock.tick(CONFIG, state) is None
    stalled = order_lock.stall(CONFIG, state, "c1")
    assert stalled is not None
    assert order_lock.tick(CONFIG, stalled) is not None


def test_a_queue_is_unlocked_only_after_its_listener_has_returned() -> None:
    state = after(("Gain", "c1"), *lock("c1"), ("Begin", "c1"), ("Drop", "c1"))
    assert order_lock.unlock_queue(CONFIG, state, "c1") is None
    free = order_lock.unlock_queue(CONFIG, state._replace(calls=frozenset()), "c1")
    assert free is not None
    assert (free.holder, free.leaving) == (NO_MEMBER, frozenset())


def test_the_smoke_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    exploration = explore(order_lock.MODEL, CONFIG)
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (12908, 31)


def test_the_order_lock_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCOrderLock_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert order_lock.MODEL.from_constants(constants(text)) == Config(faults=False)
    equivalence = compare(order_lock.MODEL, "MCOrderLock", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 1444
