"""Strategies that decide which queues a member of a consumer group reads.

See docs/reference/protocol/groups.md, "Queue allocation". A strategy is a function of the sorted queues, the
sorted client ids and the member's own id. It returns the member's queues. All members of a group must use the
same strategy. A member whose id is not among the ids gets no queues.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import md5
from typing import Final

from mqproof.impl.client.model import MessageQueue

Strategy = Callable[[Sequence[MessageQueue], Sequence[str], str], list[MessageQueue]]

_VIRTUAL_NODES: Final = 10


def averagely(queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:
    """AVG, the default: give each member a block of consecutive queues.

    The first members get one more if the division leaves a remainder.
    """
    if own not in ids:
        return []
    place, (each, extra) = ids.index(own), divmod(len(queues), len(ids))
    start = place * each + min(place, extra)
    return list(queues[start : start + each + (place < extra)])


def by_circle(queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:
    """AVG_BY_CIRCLE: assign the queues to the members one at a time, in turn."""
    return list(queues[ids.index(own) :: len(ids)]) if own in ids else []


def by_config(configured: Sequence[MessageQueue]) -> Strategy:
    """CONFIG: assign those of the configured queues that exist, regardless of the other members."""

    def allocate(queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:  # noqa: ARG001  # a Strategy's signature
        return [queue for queue in configured if queue in queues]

    return allocate


def by_machine_room(rooms: Collection[str]) -> Strategy:
    """MACHINE_ROOM: divide the queues of brokers in these rooms into equal blocks.

    A broker is in a room if its name is `<room>@<name>`. The queues that remain go to the first members, one
    each.
    """
    return partial(_by_machine_room, frozenset(rooms))


def by_nearest_room(
    strategy: Strategy,
    room_of: Callable[[str], str | None],
    room_of_queue: Callable[[MessageQueue], str | None] | None = None,
) -> Strategy:
    """MACHINE_ROOM_NEARBY: divide the queues of each room among its members, by another strategy.

    The queues of a room without members are divided among all members. `room_of` returns the room of a
    member's client id. The room of a queue is the one in the broker name `<room>@<name>`, unless
    `room_of_queue` is given.
    """
    return partial(_by_nearest_room, strategy, room_of, room_of_queue or _room)


def consistent_hash(queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:
    """CONSISTENT_HASH: few queues move when a member joins or leaves.

    Members may get unequal numbers of queues.
    """
    if own not in ids:
        return []
    ring = sorted((ring_position(f"{each}-{node}"), each) for each in ids for node in range(_VIRTUAL_NODES))
    return [queue for queue in queues if _owner(queue, ring) == own]


def ring_position(text: str) -> int:
    """Return the position of a text on the hash ring: 0 to 2**32 - 1."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


def _by_machine_room(
    rooms: Collection[str], queues: Sequence[MessageQueue], ids: Sequence[str], own: str
) -> list[MessageQueue]:
    if own not in ids:
        return []
    near = [queue for queue in queues if _room(queue) in rooms]
    place, (each, _) = ids.index(own), divmod(len(near), len(ids))
    left_over = near[each * len(ids) :]
    return near[place * each : (place + 1) * each] + left_over[place : place + 1]


def _by_nearest_room(
    strategy: Strategy,
    room_of: Callable[[str], str | None],
    room_of_queue: Callable[[MessageQueue], str | None],
    queues: Sequence[MessageQueue],
    ids: Sequence[str],
    own: str,
) -> list[MessageQueue]:
    if own not in ids:
        return []
    members = {each: room_of(each) for each in ids}
    assigned: list[MessageQueue] = []
    for room in dict.fromkeys(map(room_of_queue, queues)):
        near = [each for each in ids if members[each] == room] or ids
        if own in near:
            assigned += strategy([queue for queue in queues if room_of_queue(queue) == room], near, own)
    return assigned


def _room(queue: MessageQueue) -> str | None:
    room, at, _ = queue.broker_name.partition("@")
    return room if at else None


def _owner(queue: MessageQueue, ring: Sequence[tuple[int, str]]) -> str:
    text = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
    return ring[bisect_left(ring, (ring_position(text), "")) % len(ring)][1]
