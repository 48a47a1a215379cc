"""Tests mutation: it is reproducible, bounded, and corrects length fields."""

from random import Random

from mqproof.fuzz.engine.mutate import Mutator, length_fields, systematic

FRAME = b"\x00\x00\x00\x06abcdef"


def test_the_same_seed_produces_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        mutator = Mutator(Random(seed), [b"word"], 64)
        return [mutator.mutate(FRAME, b"other") for _ in range(200)]

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)


def test_mutants_are_bounded_and_any_input_can_be_mutated() -> None:
    mutator = Mutator(Random(3), [b"word"], 16)
    data = b""
    for _ in range(3000):
        data = mutator.mutate(data, data)
        assert len(data) <= 16


def test_length_fields_are_found() -> None:
    assert length_fields(FRAME) == [(0, 4, 0), (2, 2, 0)]
    assert (0, 4, 4) in length_fields(b"\x00\x00\x00\x0aabcdef")  # it counts itself
    assert length_fields(b"\xff\xff\xff\xffabcdef") == []


def test_most_mutants_of_another_size_have_correct_length_fields() -> None:
    mutator = Mutator(Random(5), [], 64)
    mutants = [mutator.mutate(FRAME, b"") for _ in range(1000)]
    resized = [mutant for mutant in mutants if len(mutant) not in (len(FRAME), 0)]
    right = [mutant for mutant in resized if (0, 4, 0) in length_fields(mutant)]
    assert len(right) > len(resized) / 3


def test_the_systematic_stage_writes_each_word_at_each_position() -> None:
    made = set(systematic(b"\x00\x00\x00\x01ab", [b"W"]))
    assert b"W\x00\x00\x01ab" in made
    assert b"\x00\x00\x00\x01aW" in made
    assert b"\x00\x00\x00\x01abW" in made
    assert b"\x00\x00\x00\x02aWb" in made, "the length grows along"
