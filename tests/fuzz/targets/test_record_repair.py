"""Tests the target that damages a record of a broker with peers."""

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge


def test_the_first_seeds_break_no_invariant_and_test_every_one() -> None:
    target = targets.load("record-repair")
    for _, seed in zip(range(8), target.seeds(), strict=False):
        assert judge(target, seed) is None, seed.hex()
        assert len(seed) <= target.input_bytes_max
    assert set(+target.checked) == set(target.invariants)


@pytest.mark.deep("60 CPU seconds; eight seeds are judged in every run")
def test_no_damage_of_a_byte_breaks_an_invariant() -> None:
    """All bytes of a record that a checksum covers, in a master, a slave and a member: 60 CPU seconds."""
    target = targets.load("record-repair")
    for kind in range(8):
        for byte in range(88):
            assert judge(target, bytes([kind, byte, byte, byte])) is None, (kind, byte)
