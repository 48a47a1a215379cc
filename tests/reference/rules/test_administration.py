"""The right to send and to pull.

See docs/reference/protocol/sending.md, "Topics"; docs/reference/protocol/groups.md, "Subscription groups".
"""

import pytest

from mqproof.reference.rules.administration import READ, WRITE, Group, Topic, may_pull, may_send

ENABLED = Group(consumes=True, retries_max=16)


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
    ids=[
        "unknown topic",
        "queue for reads and writes",
        "queue for writes only",
        "queue for reads only",
        "unknown queue",
        "only read permission",
        "only write permission",
    ],
)
def test_a_send_needs_any_queue_but_a_pull_needs_a_read_queue_and_the_read_permission(
    topic: Topic | None, queue_id: int, sends: bool, pulls: bool
) -> None:
    assert (may_send(topic, queue_id), may_pull(topic, ENABLED, queue_id)) == (sends, pulls)


def test_a_disabled_group_cannot_pull_but_an_unknown_group_can() -> None:
    assert not may_pull(Topic(1, 1, READ), ENABLED._replace(consumes=False), 0)
    assert may_pull(Topic(1, 1, READ), None, 0)
