"""Histories of a cluster in which nothing fails: several producers, and groups of each kind."""

from collections.abc import Iterator

from msgspec.structs import replace

from mqproof.conformance.history.exact_delivery import SETUP, ExactDelivery
from mqproof.conformance.history.lines import (
    AssignValue,
    CommitValue,
    ConsumeValue,
    DrainValue,
    PollValue,
    SendValue,
    SetupValue,
)

BOUND = replace(SETUP, rebalance_within_ms=None)
UNBOUND = replace(BOUND, stall_within_ms=None, lag_max_ms=None, deliver_within_ms=None)
BROADCASTS = ("b1", "b2")


def healthy(seed: int, messages: int = 30, setup: SetupValue = BOUND) -> ExactDelivery:
    """Return a history whose queues are regular."""
    world = ExactDelivery(seed, setup)
    queues = [f"{topic}/b/{number}" for topic in ("T", "O") for number in range(2)]
    for queue in queues:
        world.queue(queue)
    clients = [
        *(_producer(world, f"p{number}", queues, messages) for number in range(3)),
        *(_poller(world, "g", f"g{number}", queue) for number, queue in enumerate(queues)),
        *(_poller(world, "f", f"f{number}", queue, "A") for number, queue in enumerate(queues)),
        *(_listener(world, "o", "", queue) for queue in queues[2:]),
        *(_listener(world, "c", "c0", queue) for queue in queues),
        *(_listener(world, "b", name, queue) for queue in queues[:2] for name in BROADCASTS),
    ]
    world.producing = 3
    world.run(clients)
    world.begin("d1", DrainValue("d", ("T", "O")))
    for queue in queues:
        for _ in _poller(world, "d", "d0", queue):
            pass
    world.end("d1", DrainValue("d", ("T", "O")))
    return world


def _producer(world: ExactDelivery, name: str, queues: list[str], count: int) -> Iterator[None]:
    for _ in range(count):
        queue = world.chance.choice(queues)
        key = world.chance.choice(("", "k1", "k2"))
        batch = tuple(world.message(key=key) for _ in range(world.chance.choice((1, 1, 1, 3))))
        world.begin(name, SendValue(queue[0], batch))
        yield
        first = min(world.append(queue, message) for message in batch)
        at = f"{queue}#{first}"
        world.end(name, SendValue(status="SEND_OK", queue=queue, offset=first, offset_id=at))
        yield
    world.producing -= 1


def _poller(world: ExactDelivery, group: str, name: str, queue: str, tags: str = "AB") -> Iterator[None]:
    """Poll to the end of the queue, and commit now and then."""
    process, position = f"{name}:{queue}", 0
    world.did(process, AssignValue(group, name, (queue,)))
    while world.producing or position < len(world.queue(queue)):
        world.begin(process, PollValue(group, queue, position, name))
        yield
        stored = world.queue(queue)
        position, before = min(position + world.chance.randrange(1, 6), len(stored)), position
        found = tuple(message for message in stored[before:position] if message.tag in tags)
        world.end(process, PollValue(messages=found, next=position, max=len(stored)))
        if world.chance.random() < 0.2:
            yield
            world.begin(process, CommitValue(group, queue, position, name))
            yield
            world.end(process, CommitValue(group, queue, position, name))
        yield


def _listener(world: ExactDelivery, group: str, client: str, queue: str) -> Iterator[None]:
    process, position = f"{group}:{client}:{queue}", 0
    while world.producing or position < len(world.queue(queue)):
        stored = world.queue(queue)[position : position + world.chance.choice((1, 2))]
        if stored:
            position += len(stored)
            value = ConsumeValue(group, queue, client, tuple(stored))
            world.begin(process, value)
            yield
            world.end(process, value)
        world.wait(1)
        yield
