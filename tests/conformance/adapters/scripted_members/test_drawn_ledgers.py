"""The files and entries of drawn ledgers are as stated; a ledger that accepts damaged entries differs."""

from collections import Counter

import pytest

from mqproof.conformance.adapters.scripted_members import drawn_ledgers
from mqproof.conformance.adapters.scripted_members.ledger_damages import DAMAGES
from mqproof.conformance.mutants import dledger
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.subjects import own_group


@pytest.mark.parametrize("seed", range(4))
def test_drawn_ledgers_have_the_stated_files(seed: int) -> None:
    assert own_group.files(seed).wrong == ()


def test_each_damage_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: Counter[str] = Counter()
    for name, damage in DAMAGES.items():

        def counted(one: object, name: str = name, damage: object = damage) -> bool:
            happened[name] += (done := damage(one))  # type: ignore[operator]
            return bool(done)

        monkeypatch.setitem(DAMAGES, name, counted)
    for seed in range(12):
        drawn_ledgers.wrong_ledgers(seed)
    assert happened.keys() == DAMAGES.keys()
    assert all(happened.values()), happened


def test_a_damaged_entry_that_is_accepted_is_found() -> None:
    with injected(dledger.OBSERVED["checksum-not-checked"]):
        assert any("altered" in each for seed in range(6) for each in own_group.files(seed).wrong)
