"""Goal: damage is repaired, reported or refused by name, and the model matches TLC's state graph."""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import damage
from mqproof.reference.constants import constants
from mqproof.reference.damage import Config, Read, State
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore

TLA = Path(spec.__file__).parent / "tla"
CONFIG = Config(messages=2, faults=("flip", "lost", "missing"))
STORED = (("Send",), ("Send",), ("Checkpoint",))


def after(*actions: tuple[object, ...], config: Config = CONFIG) -> State:
    (state,) = damage.initial(config)
    for name, *parameters in actions:
        changed = damage.ACTIONS[str(name)].apply(config, state, *parameters)
        assert changed is not None, f"{name}{parameters} is disabled in {state}"
        state = changed
    return state


def test_a_damaged_record_is_left_out_and_reported() -> None:
    state = after(*STORED, ("DamageRecord", 1, "flipped"), ("Consume", 1))
    assert (state.read, state.reported) == (Read(1), frozenset({1}))


def test_a_slave_with_the_record_repairs_it() -> None:
    damaged = (*STORED, ("Copy",), ("DamageRecord", 1, "blank"), ("Consume", 1))
    assert after(*damaged, ("Repair", 1), ("Consume", 1)).read == Read(1, 1, "good")


def test_a_slave_without_the_record_cannot_repair_it() -> None:
    state = after(*STORED, ("Copy",), ("DamageRecord", 2, "blank"), ("Consume", 2))
    assert damage.repair(CONFIG, state, 2) is None
    assert damage.copy(CONFIG, state) is None, "a damaged record is not copied"


def test_a_damaged_queue_entry_is_repaired_by_a_read() -> None:
    state = after(*STORED, ("DamageEntry", 1, 2), ("Consume", 1))
    assert (state.read, state.queue) == (Read(1, 1, "good"), (1, 2))


def test_damage_that_a_checkpoint_covers_does_not_end_the_log() -> None:
    stopped = (*STORED, ("Stop",), ("DamageRecord", 1, "flipped"), ("Recover",))
    state = after(*stopped)
    assert (len(state.log), state.queue) == (2, (1, 2))
    assert after(*stopped, ("Consume", 2)).read.content == "good"


def test_damage_that_no_checkpoint_covers_ends_the_log_and_what_follows_is_named() -> None:
    state = after(("Send",), ("Send",), ("Stop",), ("DamageRecord", 1, "flipped"), ("Recover",))
    assert (state.log, state.reported) == ((), frozenset({1, 2}))


def test_missing_segments_of_the_durable_log_are_refused_by_name() -> None:
    state = after(*STORED, ("Stop",), ("LoseSegments", 1), ("Refuse",))
    assert (state.phase, state.named) == ("refused", "log")


def test_the_newer_copy_of_a_table_counts() -> None:
    state = after(*STORED, ("DamageTable", "main", "old"), ("Stop",), ("Recover",), ("Consume", 1))
    assert (state.topic, state.table, state.read.content) == (True, ("new", "new"), "good")


@pytest.mark.parametrize(("name", "size"), [("MCDamage_smoke", (1254, 10)), ("MCDamage_alone", (1289, 9))])
def test_the_models_have_as_many_states_as_in_tlc_and_no_violation(name: str, size: tuple[int, int]) -> None:
    text = (TLA / f"{name}.cfg").read_text(encoding="utf-8")
    exploration = explore(damage.MODEL, damage.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == size


def test_the_damage_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCDamage_liveness_smoke.cfg").read_text(encoding="utf-8")
    assert damage.MODEL.from_constants(constants(text)) == Config()
    equivalence = compare(damage.MODEL, "MCDamage", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 209
