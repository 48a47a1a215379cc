"""Tests the table of open transactions: copies, operations, progress, and what a restart has to read.

Source: docs/reference/protocol/transactions.md, "Operations".
"""

import pytest

from mqproof.impl.broker.state import open_transactions
from mqproof.impl.broker.state.open_transactions import End, HalfMessage, OpenTransactions, offsets_of


def half(original: int, place: int | None = None, times: int = 0) -> HalfMessage:
    at = original if place is None else place
    return HalfMessage(original, at, 100 * at, times, stored_ms=0, immunity_ms=None)


def table(*halves: HalfMessage) -> OpenTransactions:
    made = OpenTransactions()
    for one in halves:
        made.add(one)
        made.read_end = max(made.read_end, one.place + 1)
    return made


def test_a_copy_replaces_its_original_at_the_end() -> None:
    made = table(half(0), half(1), half(0, 2, 1))
    assert [one.place for one in made.open_halves()] == [1, 2]
    assert made.progress(0) == (1, 0)


def test_an_older_copy_that_is_read_again_changes_nothing() -> None:
    made = table(half(0), half(0, 1, 1))
    made.add(half(0))
    assert made.find(0) == half(0, 1, 1)


def test_a_copy_that_is_added_early_does_not_advance_the_progress_beyond_others() -> None:
    made = table(half(0))
    made.add(half(0, 2, 1))  # when it was put; nothing is readable after 0
    assert made.progress(0) == (1, 0)
    made.add(half(1))
    made.read_end = 3
    assert made.progress(0) == (1, 0)
    assert [one.place for one in made.open_halves()] == [1, 2]


def test_a_copy_of_a_transaction_that_has_ended_is_not_open() -> None:
    made = table(half(0), half(1))
    made.end(0, End.COMMIT, 50)
    made.operation_stored(0, made.without_operation(4096))
    made.read_end = 2
    made.add(half(0, 2, 1))
    assert made.find(0) is None
    assert offsets_of(made.without_operation(4096)) == [0, 2]


def test_the_progress_waits_for_the_operation_record() -> None:
    made = table(half(0), half(1))
    made.end(0, End.ROLLBACK, 50)
    assert made.progress(0) == (0, 0)
    made.operation_stored(0, made.without_operation(4096))
    assert made.progress(1) == (1, 1)


def test_an_operation_is_needed_until_the_progress_has_passed_its_places() -> None:
    made = table(half(0), half(1), half(2))
    made.end(2, End.COMMIT, 50)
    made.operation_stored(0, made.without_operation(4096))
    assert made.progress(1) == (0, 0)
    made.end(0, End.COMMIT, 60)
    made.end(1, End.COMMIT, 60)
    made.operation_stored(1, made.without_operation(4096))
    assert made.progress(2) == (3, 2)


def test_a_restart_scans_from_the_first_end_that_no_operation_shows() -> None:
    made = table(half(0), half(1), half(2))
    made.end(0, End.COMMIT, 50)
    made.begin(1, 70)
    recorded = made.without_operation(4096)
    assert made.scan_from(recorded, 500) == 70
    made.end(1, End.COMMIT, 500)
    assert made.scan_from(recorded, 600) == 70
    assert made.scan_from(made.without_operation(4096), 600) == 600


def test_an_operation_has_a_limited_size_and_takes_the_oldest_ends() -> None:
    made = table(*(half(place) for place in range(100)))
    for place in range(99, -1, -1):
        made.end(place, End.ROLLBACK, 0)
    recorded = made.without_operation(40)
    assert offsets_of(recorded) == list(range(99, 99 - len(recorded), -1))
    assert len(",".join(map(str, offsets_of(recorded)))) <= 40


def test_no_operation_is_written_for_a_transaction_whose_copy_is_being_put() -> None:
    made = table(half(0))
    made.hold(0)
    made.end(0, End.COMMIT, 0)
    assert not made.awaits_operation
    made.release(0)
    assert made.awaits_operation


def test_a_commit_that_could_not_be_stored_opens_the_transaction_again() -> None:
    made = table(half(0))
    made.begin(0, 10)
    assert made.find(0) is None
    assert made.is_ending(0)
    made.give_back(0)
    assert made.find(0) == half(0)


def test_the_memory_of_ends_and_operations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "_REMEMBERED_MAX", 2)
    monkeypatch.setattr(open_transactions, "_OPERATIONS_MAX", 2)
    made = table(*(half(place) for place in range(5)))
    for place in range(1, 5):
        made.end(place, End.ROLLBACK, 0)
        made.operation_stored(place - 1, made.without_operation(4096))
    assert [made.known_end(place) for place in range(1, 5)] == [None, None, End.ROLLBACK, End.ROLLBACK]
    assert made.progress(4) == (0, 0)
    made.drop(0)
    assert made.progress(4) == (5, 4)


def test_a_copy_that_was_added_when_it_was_put_is_not_replaced_when_it_is_read() -> None:
    made = table(half(0))
    put = half(0, 1, 1)._replace(stored_ms=70)
    made.add(put)
    made.add(half(0, 1, 1)._replace(stored_ms=71))
    assert made.find(0) == put


def test_ten_thousand_ends_are_known() -> None:
    made = OpenTransactions()
    for place in range(10_001):
        made.end(place, End.COMMIT, 0)
    assert [made.known_end(place) for place in (0, 1, 10_000)] == [None, End.COMMIT, End.COMMIT]


@pytest.mark.parametrize(("operations", "needed"), [(10_000, 9_999), (10_001, 9_999)])
def test_ten_thousand_operations_are_remembered_one_by_one(operations: int, needed: int) -> None:
    """The last one counts as one with those that follow; it is needed until the progress is beyond all."""
    made = OpenTransactions()
    for place in range(operations):
        made.note_operation(place, place)
    made.read_end = operations - 1
    assert made.progress(operations) == (operations - 1, needed)


def test_nothing_of_an_empty_table_is_read() -> None:
    assert OpenTransactions().progress(0) == (0, 0)


def test_a_transaction_that_is_removed_awaits_no_operation() -> None:
    made = table(half(0))
    made.end(0, End.COMMIT, 0)
    assert made.awaiting_count == 1
    made.drop(0)
    made.drop(0)
    assert (len(made), made.awaiting_count, made.awaits_operation) == (0, 0, False)


def test_an_end_that_was_not_announced_is_scanned_from_its_own_place_in_the_log() -> None:
    made = table(half(0))
    made.end(0, End.DISCARD, 50)
    assert made.scan_from([], 500) == 50


@pytest.mark.parametrize(("bytes_max", "count"), [(3, 0), (4, 1), (7, 1), (8, 2), (12, 2), (13, 3)])
def test_an_operation_may_have_exactly_its_size(bytes_max: int, count: int) -> None:
    made = table(half(0), half(1), half(2, 13, 1))
    for original in range(3):
        made.end(original, End.COMMIT, 0)
    recorded = made.without_operation(bytes_max)
    assert [one.original for one in recorded] == list(range(count))


def test_an_operation_leaves_out_a_transaction_whose_copy_is_being_put_and_takes_the_next() -> None:
    made = table(half(0), half(1))
    made.hold(0)
    for original in range(2):
        made.end(original, End.COMMIT, 0)
    assert made.without_operation(4096) == [half(1)]


def test_a_copy_that_is_newer_than_an_operation_awaits_another_one() -> None:
    made = table(half(0), half(1))
    for original in range(2):
        made.end(original, End.COMMIT, 0)
    recorded = made.without_operation(4096)
    made.add(half(0, 2, 1))
    made.drop(1)
    made.operation_stored(0, recorded)
    assert made.without_operation(4096) == [half(0, 2, 1)]
