"""Tests the terms of the entries of a ledger, which are stored as runs."""

import pytest

from mqproof.impl.dledger.rpc_bodies import NO_TERM
from mqproof.impl.dledger.terms import Terms


def test_terms_are_found_by_index() -> None:
    terms = Terms([1, 1, 3, 3, 4])
    assert [terms.at(index) for index in range(-1, 6)] == [NO_TERM, 1, 1, 3, 3, 4, None]
    assert (terms.end, terms.end_term) == (4, 4)
    assert [terms.first_of(index) for index in range(5)] == [0, 0, 2, 2, 4]


def test_an_empty_ledger_ends_before_its_beginning() -> None:
    assert (Terms().end, Terms().end_term, Terms(begin=5).end) == (-1, NO_TERM, 4)


@pytest.mark.parametrize("end", range(-1, 5))
def test_a_cut_keeps_the_entries_up_to_its_end(end: int) -> None:
    all_terms = [1, 1, 3, 3, 4]
    terms = Terms(all_terms)
    terms.cut(end)
    assert [terms.at(index) for index in range(terms.end + 1)] == all_terms[: end + 1]
    assert terms.end_term == (all_terms[end] if end >= 0 else NO_TERM)
    terms.append(9)
    assert (terms.at(end + 1), terms.end) == (9, end + 1)


def test_deleted_entries_agree_with_every_term() -> None:
    terms = Terms([2, 3], begin=10)
    assert terms.at(9) is None
    assert terms.agrees(9, 7)
    assert terms.agrees(10, 2)
    assert not terms.agrees(10, 3)
