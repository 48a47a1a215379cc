"""A simulated cluster without faults of its own, whose histories have no anomaly; used to test the rules.

Every client is a generator, so lines of other clients may come between two of its lines. Time and random
choices follow from the seed. `injected/` injects one anomaly into such a history.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Final

from msgspec.structs import replace

from mqproof.conformance.history.lines import (
    AckValue,
    AssignValue,
    BoundsValue,
    CommitValue,
    ConsumeValue,
    Delivered,
    DrainValue,
    Group,
    Line,
    Message,
    PollValue,
    PopValue,
    QueryValue,
    SendValue,
    SetupValue,
    Type,
)
from mqproof.conformance.history.recorder import Historian

MS: Final = 1_000_000
TOPIC: Final = "T"
ORDERS: Final = "O"
LATER: Final = "L"
RETRIES: Final = "%RETRY%r/b/0"
DEAD: Final = "%DLQ%r/b/0"
_RETURNS: Final = 2
_STEP_NS: Final = (1000, 3 * MS)

SETUP: Final = SetupValue(
    name="perfect",
    groups={
        "g": Group(topics=(TOPIC,)),
        "o": Group(topics=(ORDERS,), orderly=True, reconsume_max=1 << 30),
        "r": Group(topics=(TOPIC,), reconsume_max=_RETURNS, retry_delays_ms=(10, 30)),
        "b": Group(topics=(TOPIC,), broadcast=True),
        "f": Group(topics=(TOPIC,), tags=("A",)),
        "p": Group(topics=(TOPIC,)),
        "l": Group(topics=(LATER,)),
        "d": Group(topics=(TOPIC, ORDERS, LATER)),
    },
    visible_within_ms=1000,
    deliver_within_ms=60_000,
    rebalance_within_ms=5000,
    serve_within_ms=2000,
    stall_within_ms=60_000,
    lag_max_ms=60_000,
)

Client = Iterator[None]


class ExactDelivery(Historian):
    """The lines so far, and the contents of the queues."""

    def __init__(self, seed: int, setup: SetupValue = SETUP) -> None:
        self.chance = random.Random(seed)
        self.queues: dict[str, list[Delivered]] = {}
        self.time = 1_000_000 * MS
        self.down = False
        self.sent = 0
        self.producing = 0
        """Number of producers that have not finished."""
        self.waiting: list[Delivered] = []
        """Messages that failed and are due again; `stored` is the due time."""
        self.returning = 0
        """Number of listeners that may still return a message."""
        super().__init__(self._tick, setup)

    def queue(self, name: str) -> list[Delivered]:
        return self.queues.setdefault(name, [])

    def run(self, clients: list[Client]) -> None:
        """Run all clients, one line at a time in random order, until they end."""
        left = list(clients)
        while left:
            place = self.chance.randrange(len(left))
            if next(left[place], self) is self:
                left[place] = left[-1]
                left.pop()

    def wait(self, milliseconds: int) -> None:
        self.time += milliseconds * MS

    def message(self, *, key: str = "", deliver_in_ms: int = 0) -> Message:
        self.sent += 1
        tag = self.chance.choice("AB")
        deliver_at = self.time + deliver_in_ms * MS if deliver_in_ms else 0
        return Message(f"m{self.sent}", f"{self.sent:x}", tag, key, deliver_at)

    def append(self, queue: str, message: Message) -> int:
        """Store the message; returns its offset."""
        stored = self.queue(queue)
        at = len(stored)
        stored.append(
            Delivered(message.id, at, message.body, message.tag, message.key, 0, self.time - 1, self.time,
                   f"{queue}#{at}")
        )  # fmt: skip
        return at

    def edit(self, change: Callable[[Line], Line]) -> None:
        self.lines = list(map(change, self.lines))

    def _tick(self) -> int:
        now, self.time = self.time, self.time + self.chance.randrange(*_STEP_NS)
        return now


def clean(seed: int, messages: int = 40, setup: SetupValue = SETUP) -> ExactDelivery:
    """Return a history that contains everything the rules examine, without any anomaly."""
    world = ExactDelivery(seed, setup)
    queues = [f"{TOPIC}/b/0", f"{TOPIC}/b/1"]
    orders = [f"{ORDERS}/b/0", f"{ORDERS}/b/1"]
    for name in (*queues, *orders, f"{LATER}/b/0"):
        world.queue(name)
    producers = [
        _producer(world, "p1", queues, messages),
        _producer(world, "p2", queues, messages),
        _orders(world, "p3", orders, messages // 2),
        _later(world, "p4", messages // 8),
    ]
    consumers = [
        _members(world, queues),
        *(_listener(world, "o", f"o{n}", queue) for n, queue in enumerate(orders)),
        *(_returning(world, _listener(world, "r", f"r{n}", queue)) for n, queue in enumerate(queues)),
        _retries(world),
        *(_listener(world, "b", f"b{n}", queue) for n in (1, 2) for queue in queues),
        *(_reader(world, "f", f"f{n}", queue, "A") for n, queue in enumerate(queues)),
        _reader(world, "l", "l0", f"{LATER}/b/0"),
        _popper(world, "p", queues[0]),
        _observer(world, queues),
        _nemesis(world),
    ]
    world.producing, world.returning = len(producers), len(queues)
    world.run([*(_producing(world, producer) for producer in producers), *consumers])
    _drain(world)
    return world


def _producing(world: ExactDelivery, producer: Client) -> Client:
    yield from producer
    world.producing -= 1


def _returning(world: ExactDelivery, listener: Client) -> Client:
    yield from listener
    world.returning -= 1


def _producer(world: ExactDelivery, name: str, queues: list[str], count: int) -> Client:
    for _number in range(count):
        queue = world.chance.choice(queues)
        batch = tuple(world.message() for _ in range(world.chance.choice((1, 1, 1, 1, 2, 3))))
        was_down = world.down
        world.begin(name, SendValue(TOPIC, batch))
        yield
        fate = world.chance.random() if was_down or world.down else 1.0
        if fate < 0.2:
            world.end(name, SendValue(), Type.FAIL, "SYSTEM_BUSY")
        elif fate < 0.4:
            world.end(name, SendValue(), Type.INFO, "timed out")
        else:
            offset = min([world.append(queue, message) for message in batch])
            yield
            if fate < 0.6:
                world.end(name, SendValue(), Type.INFO, "timed out")
            else:
                at = f"{queue}#{offset}"
                world.end(name, SendValue(status="SEND_OK", queue=queue, offset=offset, offset_id=at))
        yield


def _orders(world: ExactDelivery, name: str, queues: list[str], count: int) -> Client:
    for _ in range(count):
        number = world.chance.randrange(4)
        queue = queues[number % 2]
        message = world.message(key=f"k{number}")
        world.begin(name, SendValue(ORDERS, (message,)))
        yield
        offset = world.append(queue, message)
        yield
        world.end(name, SendValue(status="SEND_OK", queue=queue, offset=offset))
        yield


def _later(world: ExactDelivery, name: str, count: int) -> Client:
    for _ in range(count):
        message = world.message(deliver_in_ms=world.chance.randrange(1, 200))
        world.did(name, SendValue(LATER, (message,)), SendValue(status="SEND_OK"))
        while world.time < message.deliver_at:
            world.wait(1)
            yield
        world.append(f"{LATER}/b/0", message)
        yield


def _members(world: ExactDelivery, queues: list[str]) -> Client:
    """Two members of a group that poll, commit, and occasionally swap their queues."""
    owned = {"g1": [queues[0]], "g2": [queues[1]]}
    committed = dict.fromkeys(queues, 0)
    position = dict(committed)
    for name, mine in owned.items():
        world.did(name, AssignValue("g", name, tuple(mine)))
    while world.producing or any(position[queue] < len(world.queue(queue)) for queue in queues):
        if world.chance.random() < 0.03:
            owned = dict(zip(owned, reversed(owned.values()), strict=True))
            for name, mine in owned.items():
                world.did(name, AssignValue("g", name, tuple(mine)))
                position[mine[0]] = committed[mine[0]]
        for name, mine in owned.items():
            queue = mine[0]
            position[queue] = yield from _poll(world, "g", name, queue, position[queue])
            if world.chance.random() < 0.3:
                world.begin(name, CommitValue("g", queue, position[queue], name))
                yield
                committed[queue] = position[queue]
                world.end(name, CommitValue("g", queue, position[queue], name))
            if world.chance.random() < 0.1:
                world.did(name, QueryValue("g", queue), QueryValue(offset=committed[queue]))
            yield


def _poll(
    world: ExactDelivery, group: str, name: str, queue: str, offset: int, tags: str = "AB", count: int = 4
) -> Generator[None, None, int]:
    world.begin(name, PollValue(group, queue, offset))
    yield
    stored = world.queue(queue)
    after = min(offset + count, len(stored))
    found = tuple(message for message in stored[offset:after] if message.tag in tags)
    answer = PollValue(messages=found, next=after, min=0, max=len(stored))
    yield
    world.end(name, answer)
    return after


def _listener(world: ExactDelivery, group: str, name: str, queue: str) -> Client:
    """Consume a queue in order, one batch at a time.

    In the group o a failed batch is retried at once; in r it goes to the retry topic; in a broadcast group
    nothing fails.
    """
    position, again = 0, tuple[Delivered, ...]()
    name = f"{name}:{queue}" if group == "b" else name
    client = name.partition(":")[0]
    if group == "o":
        world.did(name, AssignValue(group, client, (queue,)))
    while world.producing or again or position < len(world.queue(queue)):
        count = 1 if group == "r" else world.chance.choice((1, 2))
        batch = again or tuple(world.queue(queue)[position : position + count])
        if not batch:
            world.wait(1)
            yield
            continue
        fails = group != "b" and world.chance.random() < 0.2
        value = ConsumeValue(group, queue, client, batch)
        world.begin(name, value)
        yield
        world.end(name, value, Type.FAIL if fails else Type.OK)
        if fails and group == "r":
            _again(world, batch[0])
        position += 0 if again else len(batch)
        again = ()
        if fails and group == "o":
            again = tuple(replace(message, times=message.times + 1) for message in batch)
        yield


_delays: Final = SETUP.groups["r"].retry_delays_ms


def _again(world: ExactDelivery, message: Delivered) -> None:
    """Put the message into the retry topic after its delay, or into the dead letters."""
    if message.times >= _RETURNS:
        at = len(world.queue(DEAD))
        world.queue(DEAD).append(replace(message, offset=at, times=message.times, stored=0, offset_id=""))
    else:
        due = world.time + _delays[message.times] * MS
        world.waiting.append(replace(message, times=message.times + 1, stored=due, offset_id=""))


def _retries(world: ExactDelivery) -> Client:
    """Consume the retry topic of the group r."""
    at = 0
    while world.returning or world.waiting:
        due = [message for message in world.waiting if message.stored <= world.time]
        if not due:
            world.wait(1)
            yield
            continue
        world.waiting.remove(due[0])
        message = replace(due[0], offset=at, stored=0)
        at += 1
        fails = world.chance.random() < 0.5
        value = ConsumeValue("r", RETRIES, "r0", (message,))
        world.begin("r0:retry", value)
        yield
        world.end("r0:retry", value, Type.FAIL if fails else Type.OK)
        if fails:
            _again(world, message)
        yield


def _reader(world: ExactDelivery, group: str, name: str, queue: str, tags: str = "AB") -> Client:
    """Poll one queue, for messages with the given tags only."""
    position = 0
    while world.producing or position < len(world.queue(queue)):
        position = yield from _poll(world, group, name, queue, position, tags)
        yield


def _popper(world: ExactDelivery, group: str, queue: str) -> Client:
    """Pop a few messages at a time, acknowledge most of them, and receive the others again."""
    position, hidden = 0, deque[tuple[int, Delivered]]()
    while world.producing or position < len(world.queue(queue)) or hidden:
        world.begin("p0", PopValue(group, queue, invisible_ms=50))
        yield
        found = world.queue(queue)[position : position + 2]
        position += len(found)
        while hidden and hidden[0][0] < world.time:
            found.append(hidden.popleft()[1])
        world.end("p0", PopValue(messages=tuple(found)))
        for message in found:
            if world.chance.random() < 0.8:
                world.did("p0", AckValue(group, queue, message.offset))
            else:
                hidden.append((world.time + 60 * MS, message))
            yield
        world.wait(5)
        yield


def _observer(world: ExactDelivery, queues: list[str]) -> Client:
    while world.producing:
        queue = world.chance.choice(queues)
        world.begin("observer", BoundsValue(queue))
        yield
        answer = BoundsValue(queue, 0, len(world.queue(queue)))
        yield
        world.end("observer", answer)
        yield


def _nemesis(world: ExactDelivery) -> Client:
    for _ in range(2):
        for _ in range(60):
            yield
        world.down = True
        world.fault("kill")
        for _ in range(30):
            yield
        world.fault("start")
        world.down = False


def _drain(world: ExactDelivery) -> None:
    """Drain: one more group reads everything, including the dead letters."""
    topics = (TOPIC, ORDERS, LATER, "%DLQ%r")
    world.begin("d1", DrainValue("d", topics))
    for queue in list(world.queues):
        offset = 0
        while offset < len(world.queue(queue)):
            step = _poll(world, "d", "d0", queue, offset, count=8)
            try:
                while True:
                    next(step)
            except StopIteration as done:
                offset = done.value
    world.end("d1", DrainValue("d", topics))
