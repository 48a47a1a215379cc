"""Which queues a consumer of a group reads: the five strategies of "Queue allocation" in docs/protocol.md.

Each member computes its own share from the sorted queues and the sorted ids, so all of them must run the same
strategy and see the same inputs. Whoever is not among the ids gets nothing.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from hashlib import md5
from typing import Final, NamedTuple, TypeVar

QueueT = TypeVar("QueueT")

VIRTUAL_NODES: Final = 10
"""Of each consumer on the ring of `consistent_hash`."""


class Queue(NamedTuple):
    """Sorted as clients sort them."""

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
    """AVG_BY_CIRCLE: queues are dealt out like cards."""
    if own not in ids:
        return []
    return list(queues[ids.index(own) :: len(ids)])


def by_machine_room(queues: Sequence[Queue], ids: Sequence[str], own: str, rooms: Set[str]) -> list[Queue]:
    """MACHINE_ROOM: of the queues in these rooms equal blocks, and one each of what is left at the end.

    The room of a broker stands before the `@` of its name.
    """
    if own not in ids:
        return []
    eligible = [queue for queue in queues if "@" in queue.broker and queue.broker.split("@")[0] in rooms]
    index, (each, extra) = ids.index(own), divmod(len(eligible), len(ids))
    share = eligible[index * each : (index + 1) * each]
    return share + eligible[len(ids) * each + index :][:1] if index < extra else share


def by_config(configured: Sequence[QueueT]) -> list[QueueT]:
    """CONFIG: what the member was told, whatever there is; a partition only if the operator made one."""
    return list(configured)


def ring_position(text: str) -> int:
    """Where a text stands on the ring: the first 4 bytes of its MD5, unsigned."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


def owner(position: int, ring: Sequence[tuple[int, str]]) -> str:
    """Of a position on the sorted ring of (position, id): the next virtual node, after the last the first."""
    return ring[bisect_left(ring, (position,)) % len(ring)][1]


def consistent_hash(
    queues: Sequence[Queue],
    ids: Sequence[str],
    own: str,
    position: Callable[[str], int] = ring_position,
) -> list[Queue]:
    """CONSISTENT_HASH: a member that comes or goes moves only queues of its own; shares are not equal."""
    if own not in ids:
        return []
    ring = sorted((position(f"{each}-{node}"), each) for each in ids for node in range(VIRTUAL_NODES))
    return [queue for queue in queues if owner(position(ring_text(queue)), ring) == own]


def ring_text(queue: Queue) -> str:
    """The text of a queue whose position counts."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"
