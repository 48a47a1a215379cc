"""Tests clients that wait until their entries are committed."""

from mqproof.impl.dledger.pending import Pending


def waiting() -> Pending[str]:
    pending: Pending[str] = Pending()
    for index, term, client in ((0, 1, "a"), (1, 1, "b"), (2, 2, "c")):
        pending.add(index, term, client)
    return pending


def test_clients_are_answered_up_to_the_committed_index() -> None:
    pending = waiting()
    assert pending.committed(0, 1) == ["a"]
    assert pending.committed(1, 1) == ["b"]


def test_an_entry_of_another_term_is_not_a_success() -> None:
    pending = waiting()
    assert pending.committed(2, 2) == ["c"]
    assert pending.drop() == []


def test_uncommitted_requests_are_dropped() -> None:
    pending = waiting()
    pending.committed(0, 1)
    assert pending.drop() == ["b", "c"]
    assert pending.committed(9, 2) == []
