"""Tests the strategies with the numbers of docs/reference/protocol/groups.md, "Queue allocation"."""

from collections.abc import Sequence
from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.client.consuming import allocation
from mqproof.impl.client.consuming.allocation import (
    Strategy,
    averagely,
    by_circle,
    by_config,
    by_machine_room,
    by_nearest_room,
    consistent_hash,
    ring_position,
)
from mqproof.impl.client.model import MessageQueue

IDS = ("a", "b", "c")


def queues(count: int, broker: str = "b") -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for queue_id in range(count)]


def allocated(strategy: Strategy, of: Sequence[MessageQueue], ids: Sequence[str] = IDS) -> list[list[int]]:
    return [[queue.queue_id for queue in strategy(of, ids, own)] for own in ids]


def test_averagely_gives_blocks_and_the_first_members_get_one_more() -> None:
    assert allocated(averagely, queues(7)) == [[0, 1, 2], [3, 4], [5, 6]]
    assert allocated(averagely, queues(2)) == [[0], [1], []]


def test_by_circle_gives_queues_in_turn() -> None:
    assert allocated(by_circle, queues(7)) == [[0, 3, 6], [1, 4], [2, 5]]
    assert allocated(by_circle, queues(2)) == [[0], [1], []]


def test_by_machine_room_uses_the_configured_rooms_and_gives_the_rest_from_the_end() -> None:
    some = queues(5, "r1@x") + queues(3, "r2@y") + queues(2, "z")
    assert allocated(by_machine_room({"r1"}), some, ("a", "b")) == [[0, 1, 4], [2, 3]]
    assert allocated(by_machine_room({"z"}), some, ("a", "b")) == [[], []]


def of_three_rooms() -> list[MessageQueue]:
    """Room 2 has no member among IDS."""
    return queues(4, "r1@x") + queues(3, "r2@y") + queues(2, "r3@z")


NEARBY = by_nearest_room(averagely, {"a": "r1", "b": "r1", "c": "r3"}.get)


def test_by_nearest_room_divides_a_room_among_its_members_or_else_among_all() -> None:
    near = [NEARBY(of_three_rooms(), IDS, own) for own in IDS]
    rooms = [
        [f"{queue.broker_name[:2]}:{queue.queue_id}" for queue in queues_of_member]
        for queues_of_member in near
    ]
    assert rooms == [["r1:0", "r1:1", "r2:0"], ["r1:2", "r1:3", "r2:1"], ["r2:2", "r3:0", "r3:1"]]


def test_by_nearest_room_uses_the_given_strategy_and_rooms() -> None:
    strategy = by_nearest_room(by_circle, lambda _: None, lambda _: "everywhere")
    assert allocated(strategy, queues(7, "r1@x")) == allocated(by_circle, queues(7))


def test_by_config_returns_the_configured_queues_that_exist() -> None:
    strategy = by_config([MessageQueue("T", "b", 3), MessageQueue("T", "b", 1), MessageQueue("U", "b", 0)])
    assert allocated(strategy, queues(3)) == [[1], [1], [1]]


def test_positions_on_the_ring_are_those_of_the_documentation() -> None:
    assert ring_position("cid-0") == 2711717015
    assert ring_position("cid-1") == 2502203909


def test_consistent_hash_moves_only_the_queues_of_a_new_member() -> None:
    some = queues(64)
    before = {queue: own for own in IDS for queue in consistent_hash(some, IDS, own)}
    after = {queue: own for own in "abcd" for queue in consistent_hash(some, "abcd", own)}
    assert {owner for queue, owner in after.items() if before[queue] != owner} == {"d"}


STRATEGIES = [
    averagely,
    by_circle,
    by_machine_room({"r"}),
    consistent_hash,
    by_nearest_room(averagely, lambda client_id: client_id[-3:]),  # no member is in the room of the queues
    by_nearest_room(by_circle, lambda _: "r"),
]


MEMBERS = ["10.0.0.1@1", "10.0.0.1@2", "10.0.0.2@1"]


def room_of_member(client_id: str) -> str:
    return {"10.0.0.1": "r1", "10.0.0.2": "r3"}[client_id.partition("@")[0]]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (averagely, ("10 11 12 13 14 15 16 17", "20 21 22 23 24 25 26 27", "30 31 32 33 34 35 36 37")),
        (by_circle, ("10 13 16 21 24 27 32 35", "11 14 17 22 25 30 33 36", "12 15 20 23 26 31 34 37")),
        (by_machine_room({"r1", "r3"}), ("10 11 12 13 14 37", "15 16 17 30 31", "32 33 34 35 36")),
        (consistent_hash, ("11 26 32 35", "14 15 16 17 21 24 30 31 37", "10 12 13 20 22 23 25 27 33 34 36")),
        (
            by_nearest_room(averagely, room_of_member),
            ("10 11 12 13 20 21 22", "14 15 16 17 23 24 25", "26 27 30 31 32 33 34 35 36 37"),
        ),
        (
            by_nearest_room(by_circle, room_of_member),
            ("10 12 14 16 20 23 26", "11 13 15 17 21 24 27", "22 25 30 31 32 33 34 35 36 37"),
        ),
    ],
)
def test_allocations_are_those_of_released_clients(strategy: Strategy, expected: tuple[str, ...]) -> None:
    """The values were recorded from the strategies of 4.9.5 and 5.5.0: one group may have members of both."""
    some = [queue for room in ("r1@x", "r2@y", "r3@z") for queue in queues(8, room)]
    got = [
        " ".join(f"{queue.broker_name[1]}{queue.queue_id}" for queue in strategy(some, MEMBERS, own))
        for own in MEMBERS
    ]
    assert got == list(expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_client_that_is_not_among_the_ids_gets_no_queue(strategy: Strategy) -> None:
    assert strategy(queues(5, "r@b"), IDS, "z") == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(count=st.integers(0, 40), members=st.integers(1, 9))
def test_deliv_6_one_owner(strategy: Strategy, count: int, members: int) -> None:
    """DELIV-6 OneOwner: members that see the same group get a partition of the queues."""
    ids = [f"10.0.0.{n}@x" for n in range(members)]
    given_out = [queue for own in ids for queue in strategy(queues(count, "r@b"), ids, own)]
    assert sorted(given_out) == queues(count, "r@b")


def test_the_ring_does_not_use_md5_for_security(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems that forbid MD5 for security allow it for other purposes."""

    def restricted(data: bytes, *, usedforsecurity: bool) -> object:
        if usedforsecurity:
            raise ValueError("disabled for FIPS")
        return md5(data, usedforsecurity=False)

    monkeypatch.setattr(allocation, "md5", restricted)
    assert ring_position("") == 0xD41D8CD9
