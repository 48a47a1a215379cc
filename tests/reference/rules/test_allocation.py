"""Queue allocation, with the numbers of docs/reference/protocol/groups.md, "Queue allocation"."""

from mqproof.reference.rules import allocation
from mqproof.reference.rules.allocation import Queue

IDS = ("a", "b", "c")
SEVEN = list(range(7))


def test_averagely_assigns_contiguous_blocks_and_the_remainder_to_the_first_members() -> None:
    assert [allocation.averagely(SEVEN, IDS, each) for each in IDS] == [[0, 1, 2], [3, 4], [5, 6]]


def test_averagely_assigns_no_queue_to_members_beyond_the_number_of_queues() -> None:
    assert [allocation.averagely([0, 1], IDS, each) for each in IDS] == [[0], [1], []]


def test_by_circle_assigns_queues_round_robin() -> None:
    assert [allocation.averagely_by_circle(SEVEN, IDS, each) for each in IDS] == [[0, 3, 6], [1, 4], [2, 5]]


def test_by_machine_room_assigns_the_remainder_from_the_end_and_ignores_other_rooms() -> None:
    queues = [Queue("t", "r1@x", n) for n in range(5)] + [Queue("t", "r2@y", 0), Queue("t", "z", 0)]
    assigned = [allocation.by_machine_room(queues, ("a", "b"), each, {"r1"}) for each in ("a", "b")]
    assert [[queue.queue_id for queue in part] for part in assigned] == [[0, 1, 4], [2, 3]]


def test_hash_ring_positions_are_the_documented_ones() -> None:
    assert allocation.ring_position("cid-0") == 2711717015
    assert allocation.ring_text(Queue("t", "b", 3)) == "MessageQueue [topic=t, brokerName=b, queueId=3]"


def test_by_config_returns_the_configured_queues() -> None:
    assert allocation.by_config((3, 1)) == [3, 1]
