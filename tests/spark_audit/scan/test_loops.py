"""Hashes distinguish texts, and do not depend on the position of a text."""

from collections.abc import Callable
from typing import Any

import numba
import pyarrow as pa
import pytest

from mqproof.spark_audit.scan import loops
from mqproof.spark_audit.scan.loops import compiled, number


def hashes(texts: pa.Array) -> list[int]:
    return [int(loops.hash_at(*loops.texts(texts), row)) for row in range(len(texts))]


def test_texts_that_differ_in_one_character_or_in_length_have_different_hashes() -> None:
    texts = [*("x" * length for length in range(40))]
    texts += [text[:at] + "y" + text[at + 1 :] for text in texts for at in range(len(text))]
    assert len(set(map(number, texts))) == len(texts)
    # Half of all numbers are even, by chance.
    assert 0.4 < sum(number(text) % 2 for text in texts) / len(texts) < 0.6


def test_the_hash_of_a_text_does_not_depend_on_its_position() -> None:
    texts = pa.array(["a message", None, "m", "", "another message", "m"])
    hashed = hashes(texts)
    assert hashed[2] == hashed[5] == hashes(texts[2:])[0] == hashes(pa.array(["m"]))[0]
    assert hashes(texts.slice(4, 1)) == [hashed[4]]


def test_loops_are_compiled_without_a_writable_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def without_a_folder(*, cache: bool = False, **options: Any) -> Callable[..., Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        compiler: Callable[..., Any] = njit(**options)
        return compiler

    monkeypatch.setattr(numba, "njit", without_a_folder)

    @compiled
    def twice(value: int) -> int:
        return 2 * value

    assert twice(21) == 42
