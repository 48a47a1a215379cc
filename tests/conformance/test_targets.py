"""Targets are found by name, and a wrong name says which there are."""

import pytest

from conformance.targets import UnknownTargetError, resolve
from conformance.targets.mutants import MUTANTS


@pytest.mark.parametrize(
    "name", ["reference", "impl", "remoting://127.0.0.1:9876", "mutant:ack-before-flush"]
)
def test_a_target_knows_its_name(name: str) -> None:
    assert resolve(name)().name == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("apache", "expected reference, impl"),
        ("remoting://nowhere", "remoting://HOST:PORT"),
        ("remoting://:1", "remoting://HOST:PORT"),
        ("mutant:", next(iter(MUTANTS))),
        ("mutant:nonsense", next(iter(MUTANTS))),
    ],
)
def test_a_wrong_name_says_what_was_expected(name: str, expected: str) -> None:
    with pytest.raises(UnknownTargetError, match=expected):
        resolve(name)
