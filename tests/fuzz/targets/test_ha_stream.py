"""Tests the target for replication connections: its seeds and its invariants."""

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.search import Engine
from mqproof.fuzz.targets.ha_stream import DIVERGED, TO_MASTER, TO_SLAVE, TO_SLAVE_BY_PROGRAM, masters_log
from mqproof.impl.replication.stream import Transfer, write_position, write_transfer


def test_the_seeds_test_every_invariant() -> None:
    target = targets.load("ha-stream")
    for seed in target.seeds():
        target.run(seed)
    assert set(+target.checked) == set(target.invariants)


def test_the_masters_log_has_several_segments_and_an_empty_slave_receives_all_of_it() -> None:
    log = masters_log()
    assert log.log_end > 2 * log.log_segment_bytes
    target = targets.load("ha-stream")
    target.run(bytes([TO_SLAVE, 0]) + write_transfer(Transfer(0, bytes(log.data))))
    assert target.checked["KeepsWholeRecords"] == 1


def test_data_that_neither_side_can_have_sent_is_refused_and_is_not_a_finding() -> None:
    target = targets.load("ha-stream")
    for said in (b"\xff" * 40, b"\0" * 40, write_position(1 << 40) * 3):
        for to in (TO_SLAVE, TO_SLAVE_BY_PROGRAM, TO_MASTER):
            for state in (0, 3, 3 | DIVERGED):
                assert judge(target, bytes([to, state]) + said) is None


def test_hundreds_of_inputs_break_no_invariant() -> None:
    engine = Engine(targets.load("ha-stream"), "1")
    for _ in range(400):
        data, failure = engine.step()
        assert failure is None, f"{failure} for {data.hex()}"
    assert engine.features > 100
