"""Tests coverage: it consists of the edges of watched code with the magnitude of their counts."""

import sys

import pytest

from mqproof.fuzz.engine.coverage import Coverage, dictionary
from tests.fuzz import faulty


def features(coverage: Coverage, data: bytes) -> set[int]:
    coverage.measure(faulty.loop, data)
    return coverage.features()


def test_the_same_path_has_the_same_features() -> None:
    coverage = Coverage(["tests.fuzz.faulty"])
    assert features(coverage, b"\x03") == features(coverage, b"\x03")
    assert features(coverage, b"\x03") != features(coverage, b"\x00")


def test_loop_counts_are_grouped_by_magnitude() -> None:
    coverage = Coverage(["tests.fuzz.faulty"])
    assert features(coverage, b"\x09") == features(coverage, b"\x0e")
    assert features(coverage, b"\x09") != features(coverage, b"\x20")


def test_unwatched_code_has_no_features() -> None:
    assert features(Coverage(["mqproof.fuzz.targets.canary"]), b"\x09") == set()


def test_errors_propagate_and_tracing_ends() -> None:
    coverage = Coverage(["tests.fuzz.faulty"])
    before = sys.gettrace()
    with pytest.raises(ZeroDivisionError):
        coverage.measure(faulty.divides, b"")
    assert sys.gettrace() is before
    assert coverage.features()


def test_watching_an_unknown_module_is_refused() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tests\.fuzz\.nowhere"):
        Coverage(["tests.fuzz.nowhere"])


def test_the_dictionary_has_the_constants_of_watched_code() -> None:
    from mqproof.fuzz.targets import canary

    words = dictionary([canary.__name__])
    assert {b"g", b"a", b"s", b"!", b"\x07", b"\x00\x00\x00\x07"} <= set(words)
    assert words == sorted(words)
