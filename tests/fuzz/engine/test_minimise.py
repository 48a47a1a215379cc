"""Tests minimising: the result still fails and is small, and the effort is bounded."""

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.minimise import minimise


def test_an_input_that_kills_the_canary_shrinks_to_the_smallest_one() -> None:
    target = targets.load("canary")
    big = b"\x01\x00\x00\x00\x05hello" + b"\x07\x00\x00\x00\x0egas! and so on" + b"\x09" * 40
    failure = judge(target, big)
    assert failure is not None
    assert minimise(big, lambda data: judge(target, data) == failure, 5000) == b"\x07\x00\x00\x00\x04gas!"


def test_a_length_field_shrinks_with_its_data() -> None:
    def fails(data: bytes) -> bool:
        return len(data) > 4 and int.from_bytes(data[:4], "big") == len(data) - 4 and b"!" in data

    assert minimise(b"\x00\x00\x00\x0aabcd!efghi", fails, 1000) == b"\x00\x00\x00\x01!"


def test_the_effort_of_minimising_is_bounded() -> None:
    calls = 0

    def fails(data: bytes) -> bool:
        nonlocal calls
        calls += 1
        return len(data) == 100

    assert minimise(b"x" * 100, fails, 50) in (b"x" * 100, bytes(100))
    assert calls <= 50


def test_irrelevant_bytes_become_zero() -> None:
    assert minimise(b"abc!def", lambda data: len(data) == 7 and data[3:4] == b"!", 1000) == b"\0\0\0!\0\0\0"
