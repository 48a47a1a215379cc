"""Tests stores on copies of a disk: one that repairs everything holds, and one that does not is reported."""

import pytest

from mqproof.conformance.adapters.store_copies.recovered_copies import DAMAGES
from mqproof.conformance.mutants.answers import MUTANTS
from mqproof.conformance.mutants.replacement import injected
from tests.conformance.answers.stopped_store import stopped_store


def test_a_store_recovers_from_each_damage_that_a_start_repairs() -> None:
    _, watch = stopped_store(numbers=range(len(DAMAGES)))

    assert not watch.wrong


@pytest.mark.parametrize("name", ["index-not-written", "only-first-entry-repaired"])
def test_a_store_that_repairs_too_little_is_reported(name: str) -> None:
    with injected(MUTANTS[name]):
        _, watch = stopped_store(numbers=range(3 * len(DAMAGES)))

    assert watch.wrong
