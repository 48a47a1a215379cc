"""Tests the target that fails on purpose: exactly its one input does."""

import pytest

from mqproof.fuzz.target import Finding
from mqproof.fuzz.targets.canary import Canary


def record(kind: int, text: bytes) -> bytes:
    return bytes([kind]) + len(text).to_bytes(4, "big") + text


def test_the_input_that_kills_the_canary_is_found_behind_others() -> None:
    with pytest.raises(Finding, match="the canary is dead"):
        Canary().run(record(1, b"hello") + record(7, b"gas!"))


@pytest.mark.parametrize(
    "data",
    [b"", b"\x07", record(7, b"gas"), record(7, b"gas?"), record(6, b"gas!"), record(7, b"gas!")[:-1]],
)
def test_other_inputs_do_not_kill_it(data: bytes) -> None:
    canary = Canary()
    canary.run(data)
    assert canary.checked["CanaryAlive"] == 1


def test_no_seed_kills_it() -> None:
    for seed in Canary().seeds():
        Canary().run(seed)
