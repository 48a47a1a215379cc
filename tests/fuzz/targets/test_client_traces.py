"""Tests the target of a client's traces."""

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge


def test_the_seeds_break_no_invariant_and_test_every_one() -> None:
    target = targets.load("client-traces")
    for seed in target.seeds():
        assert judge(target, seed) is None, seed.hex()
        assert len(seed) <= target.input_bytes_max
    assert set(+target.checked) == set(target.invariants)


def test_an_empty_input_is_no_program() -> None:
    target = targets.load("client-traces")
    assert judge(target, b"") is None
    assert not target.checked
