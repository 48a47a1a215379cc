"""The queues that each consumer of a group reads.

These are the five strategies of docs/reference/protocol/groups.md, "Queue allocation".

Each member computes its own queues from the sorted queues and the sorted ids. Therefore all members must use
the same strategy and see the same inputs. A member that is not among the ids gets no queue.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from hashlib import md5
from typing import Final, NamedTuple, TypeVar

QueueT = TypeVar("QueueT")

VIRTUAL_NODES: Final = 10
"""The number of points of each consumer on the ring of `consistent_hash`."""


class Queue(NamedTuple):
    """A queue; queues sort as clients sort them."""

    topic: str
    broker: str
    queue_id: int


def averagely(queues: Sequence[QueueT], ids: Sequence[str], own: str) -> list[QueueT]:
    """AVG: consecutive queues; the first `len(queues) % len(ids)` members get one more."""
    if own not in ids:
        return []
    index, (each, extra) = ids.index(own), divmod(len(queues), len(ids))
    start = index * each + min(index, extra)
    return list(queues[start : start + each + (index < extra)])


def averagely_by_circle(queues: Sequence[QueueT], ids: Sequence[str], own: str) -> list[QueueT]:
    """AVG_BY_CIRCLE: each member in turn gets the next queue."""
    if own not in ids:
        return []
    return list(queues[ids.index(own) :: len(ids)])


def by_machine_room(queues: Sequence[Queue], ids: Sequence[str], own: str, rooms: Set[str]) -> list[Queue]:
    """MACHINE_ROOM: equal blocks of the queues in these rooms; the remaining queues go one to each member.

    The room of a broker is the part of its name before the `@`.
    """
    if own not in ids:
        return []
    eligible = [queue for queue in queues if "@" in queue.broker and queue.broker.split("@")[0] in rooms]
    index, (each, extra) = ids.index(own), divmod(len(eligible), len(ids))
    share = eligible[index * each : (index + 1) * each]
    return share + eligible[len(ids) * each + index :][:1] if index < extra else share


def by_config(configured: Sequence[QueueT]) -> list[QueueT]:
    """CONFIG: the queues configured for the member. They form a partition only if the operator made one."""
    return list(configured)


def ring_position(text: str) -> int:
    """Return the position of a text on the ring: the first 4 bytes of its MD5, unsigned."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


def owner(position: int, ring: Sequence[tuple[int, str]]) -> str:
    """Return the owner of a position on the sorted ring of (position, id).

    It is the next virtual node; after the last one, it is the first.
    """
    return ring[bisect_left(ring, (position,)) % len(ring)][1]


def consistent_hash(
    queues: Sequence[Queue],
    ids: Sequence[str],
    own: str,
    position: Callable[[str], int] = ring_position,
) -> list[Queue]:
    """CONSISTENT_HASH: a member that joins or leaves moves only its own queues.

    Members' numbers of queues differ.
    """
    if own not in ids:
        return []
    ring = sorted((position(f"{each}-{node}"), each) for each in ids for node in range(VIRTUAL_NODES))
    return [queue for queue in queues if owner(position(ring_text(queue)), ring) == own]


def ring_text(queue: Queue) -> str:
    """Return the text of a queue that determines its position on the ring."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"
