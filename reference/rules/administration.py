"""The settings that administrators make on a broker, and their consequences for producers and consumers.

These are pure functions of values; spec/tla has no model of topics that are created and deleted. See
docs/reference/protocol/administration.md, "Administration of a broker"; docs/reference/protocol/sending.md,
"Topics"; docs/reference/protocol/groups.md, "Subscription groups".
"""

from typing import Final, NamedTuple

READ: Final = 4
WRITE: Final = 2


class Topic(NamedTuple):
    """The configuration of a topic."""

    reads: int
    """The number of queues that can be read."""
    writes: int
    perm: int
    """READ, WRITE, both or none."""


class Group(NamedTuple):
    """The configuration of a group."""

    consumes: bool
    retries_max: int


def may_send(topic: Topic | None, queue_id: int) -> bool:
    """Return whether a broker accepts a message for a queue.

    A missing write permission keeps clients away through the topic's route. The broker checks only that the
    topic exists. So a producer with an old route loses no message.
    """
    return topic is not None and 0 <= queue_id < max(topic.reads, topic.writes)


def may_pull(topic: Topic | None, group: Group | None, queue_id: int) -> bool:
    """Return whether a group may read a queue.

    A group that does not exist is created by its first request.
    """
    if group is not None and not group.consumes:
        return False
    return topic is not None and bool(topic.perm & READ) and 0 <= queue_id < topic.reads
