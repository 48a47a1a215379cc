"""The response to a pull in each case (docs/reference/protocol/pulling.md, "Get statuses")."""

import pytest

from mqproof.reference.rules.pulling import (
    Answer,
    Queue,
    Status,
    begins,
    found_by_time,
    held,
    pulled,
    selects,
    tag_hash,
)

QUEUE = Queue(first=1, tags=("A", "A", "", "BB", "A"))


@pytest.mark.parametrize(
    ("offset", "count", "expression", "answer"),
    [
        (0, 9, "*", Answer(Status.MOVED, 1)),
        (1, 9, "*", Answer(Status.FOUND, 5, (1, 2, 3, 4))),
        (1, 4, "*", Answer(Status.FOUND, 5, (1, 2, 3, 4), 5)),
        (1, 2, "*", Answer(Status.FOUND, 3, (1, 2), 3)),
        (1, 1, "A", Answer(Status.FOUND, 4, (1,), 2)),
        (2, 9, "Aa", Answer(Status.FOUND, 5, (3,))),
        (2, 9, "unused", Answer(Status.NO_MATCHED, 5)),
        (5, 9, "*", Answer(Status.NO_NEW, 5)),
        (6, 9, "*", Answer(Status.MOVED, 5)),
    ],
)
def test_a_pull_has_the_documented_status_and_messages_for_each_offset(
    offset: int, count: int, expression: str, answer: Answer
) -> None:
    assert pulled(QUEUE, offset, count, expression) == answer


def test_an_empty_queue_begins_at_offset_zero() -> None:
    assert pulled(Queue(), 0, 1) == Answer(Status.NO_NEW, 0)
    assert pulled(Queue(), 3, 1) == Answer(Status.MOVED, 0)
    assert held(Queue(), 0)
    assert not held(QUEUE, 4)


def test_tags_are_compared_by_hash() -> None:
    assert tag_hash("TagA") == 2598919
    assert tag_hash("polygenelubricants") == -(1 << 31)
    assert selects(" B || Aa ", "BB")
    assert not selects("A", "")


def test_a_broker_reports_the_committed_offset_or_zero_if_the_first_message_exists() -> None:
    assert begins(QUEUE, 3) == {3}
    assert begins(QUEUE, None) == {None}
    assert begins(QUEUE._replace(first=0), None) == {0}
    assert begins(Queue(), None) == {0, None}


@pytest.mark.parametrize(
    ("timestamp", "offsets"),
    [
        (99, {3}),
        (100, {3}),
        (101, {3, 4}),
        (102, {3, 4}),
        (103, {4}),
        (104, {4, 5}),
        (110, {6}),
        (111, {6, 7}),
    ],
)
def test_a_search_by_time_returns_the_nearest_offset_or_the_first_not_before_that_time(
    timestamp: int, offsets: set[int]
) -> None:
    assert found_by_time([(3, 100), (4, 104), (5, 104), (6, 110)], timestamp) == offsets


def test_a_search_by_time_in_an_empty_queue_returns_zero() -> None:
    assert found_by_time([], 7) == {0}
