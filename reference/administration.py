"""What administrators have made of a broker, and what follows for those who send and read.

Pure functions of values; no model of spec/tla has topics that come and go. See "Administration of a broker",
"Topics" and "Consumer groups" in docs/protocol.md.
"""

from typing import Final, NamedTuple

READ: Final = 4
WRITE: Final = 2


class Topic(NamedTuple):
    """As it is configured."""

    reads: int
    """Queues that can be read."""
    writes: int
    perm: int
    """READ, WRITE, both or none."""


class Group(NamedTuple):
    """As it is configured."""

    consumes: bool
    retries_max: int


def may_send(topic: Topic | None, queue_id: int) -> bool:
    """Whether a message is taken for a queue. That a topic is not to be written keeps clients away, by its
    route; a broker asks for the topic only. So a producer whose route is old loses nothing."""
    return topic is not None and 0 <= queue_id < max(topic.reads, topic.writes)


def may_pull(topic: Topic | None, group: Group | None, queue_id: int) -> bool:
    """Whether a group is given messages of a queue; a group that nobody made is made by its first request."""
    if group is not None and not group.consumes:
        return False
    return topic is not None and bool(topic.perm & READ) and 0 <= queue_id < topic.reads
