"""Who may send and read.

See docs/reference/protocol/sending.md, "Topics"; docs/reference/protocol/groups.md, "Subscription groups".
"""

import pytest

from mqproof.reference.administration import READ, WRITE, Group, Topic, may_pull, may_send

MAY = Group(consumes=True, retries_max=16)


@pytest.mark.parametrize(
    ("topic", "queue_id", "sends", "pulls"),
    [
        (None, 0, False, False),
        (Topic(1, 3, READ | WRITE), 0, True, True),
        (Topic(1, 3, READ | WRITE), 1, True, False),
        (Topic(3, 1, READ | WRITE), 2, True, True),
        (Topic(3, 3, READ | WRITE), 3, False, False),
        (Topic(1, 1, READ), 0, True, True),
        (Topic(1, 1, WRITE), 0, True, False),
    ],
)
def test_queues_and_permissions_count(topic: Topic | None, queue_id: int, sends: bool, pulls: bool) -> None:
    assert (may_send(topic, queue_id), may_pull(topic, MAY, queue_id)) == (sends, pulls)


def test_a_group_may_be_kept_from_consuming() -> None:
    assert not may_pull(Topic(1, 1, READ), MAY._replace(consumes=False), 0)
    assert may_pull(Topic(1, 1, READ), None, 0)
