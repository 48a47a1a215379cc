"""Brokers, producers and consumers that act in simulated time and write the event log.

Times here are true times. A node writes its own clock, which differs from true time by a constant.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

MS = 1_000
SECOND = 1_000_000
BEGIN = 1_795_574_400 * SECOND
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
LEVELS_S = (1, 5, 10, 30, 60, 120)
"""The delays of the first levels."""
Queue = tuple[str, str, int]
"""Broker, topic, queue id."""


class Cluster:
    """The agenda, the clocks and the rows of all nodes."""

    def __init__(self, seed: int, skew_us: int) -> None:
        self.random = Random(seed)
        self.now = BEGIN
        self.brokers: dict[str, Broker] = {}
        self.rows: list[tuple[int, str, dict[str, Any]]] = []
        self._skew_us = skew_us
        self._skews: dict[str, int] = {}
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._ids = itertools.count()

    def after(self, delay_us: int, action: Callable[[], None]) -> None:
        self.at(self.now + delay_us, action)

    def at(self, time: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (max(time, self.now), next(self._count), action))

    def run(self, until: int) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        self.now = until

    def clock(self, node: str) -> int:
        """Return the time that the node's clock shows."""
        if node not in self._skews:
            self._skews[node] = self.random.randint(-self._skew_us // 2, self._skew_us // 2)
        return self.now + self._skews[node]

    def write(self, node: str, kind: str, attrs: dict[str, str] | None = None, **columns: Any) -> None:
        row = {"ts": self.clock(node), "node": node, "kind": kind, "attrs": dict(attrs or {})}
        present = {name: value for name, value in columns.items() if value is not None}
        self.rows.append((self.now, node, {**row, **present}))

    def new_id(self) -> str:
        return f"7F{self.random.getrandbits(64):016X}{next(self._ids):014X}"

    def between(self, low_us: int, high_us: int) -> int:
        return self.random.randint(low_us, high_us)

    def chance(self, share: float) -> bool:
        return self.random.random() < share


@dataclass(frozen=True)
class Message:
    msg_id: str
    topic: str
    born_ts: int
    keys: str | None = None


@dataclass(frozen=True)
class Copy:
    """A record in a queue."""

    message: Message
    offset: int
    commit_offset: int
    tries: int = 0
    """How often its group has failed to consume the message."""


@dataclass
class Broker:
    cluster: Cluster
    name: str
    flush: str = "SYNC_FLUSH"
    slave: str | None = None
    down: bool = False
    log_end: int = 0
    queues: dict[tuple[str, int], list[Copy]] = field(default_factory=lambda: defaultdict(list))
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Committed offsets by group, topic and queue id."""
    waiting: dict[tuple[str, int], list[Callable[[], None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    read: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    """The end of what any consumer has read of each queue."""
    tail: list[tuple[tuple[str, int], Copy]] = field(default_factory=list)

    def start(self, *, abnormal: bool = False) -> None:
        self.cluster.brokers[self.name] = self
        role = {"role": "SYNC_MASTER"} if self.slave else {"role": "ASYNC_MASTER"}
        how = {"abnormal": str(abnormal).lower(), "flush_disk_type": self.flush}
        self.write("recover", how | role, commit_offset=self.log_end)
        self.down = False
        for readers in [*self.waiting.values()]:
            while readers:
                self.cluster.after(self.cluster.between(50 * MS, SECOND), readers.pop())

    def write(self, kind: str, attrs: dict[str, str] | None = None, **columns: Any) -> None:
        self.cluster.write(self.name, kind, attrs, **columns)

    def store(
        self, message: Message, topic: str, queue_id: int, tries: int = 0, *, flushed: bool = True
    ) -> Copy:
        """Append a record and make it visible."""
        size = self.cluster.between(150, 400)
        copy = Copy(message, len(self.queues[topic, queue_id]), self.log_end, tries)
        where: dict[str, Any] = {
            "msg_id": message.msg_id,
            "topic": topic,
            "queue_id": queue_id,
            "queue_offset": copy.offset,
            "commit_offset": copy.commit_offset,
        }
        stamp = {"stored_ms": str(self.cluster.clock(self.name) // MS)} if topic == SCHEDULE else {}
        self.write("append", {"size": str(size)} | stamp, **where)
        self.log_end += size
        if self.flush == "SYNC_FLUSH" and flushed:
            self.write("flush", {"file": "log"}, commit_offset=self.log_end)
        if self.slave:
            of_slave = {"slave": self.slave, "role": "SYNC_MASTER"}
            self.write("ha_transfer", of_slave, commit_offset=self.log_end)
            self.write("ha_ack", of_slave, commit_offset=self.log_end)
        self.write("dispatch", **where)
        self.queues[topic, queue_id].append(copy)
        self.tail.append(((topic, queue_id), copy))
        readers = self.waiting[topic, queue_id]
        while readers:
            self.cluster.after(self.cluster.between(MS, 30 * MS), readers.pop())
        return copy

    def answer(self, copy: Copy, topic: str, queue_id: int) -> None:
        self.write(
            "send_ack",
            msg_id=copy.message.msg_id,
            topic=topic,
            queue_id=queue_id,
            queue_offset=copy.offset,
            commit_offset=copy.commit_offset,
            status="SEND_OK",
        )

    def delay(self, message: Message, level: int, topic: str, queue_id: int, tries: int = 0) -> Copy:
        """Keep a message in the schedule topic; append it to its topic when it is due."""
        copy = self.store(message, SCHEDULE, level - 1)

        def due() -> None:
            if self.down:
                self.cluster.after(SECOND, due)
            else:
                self.store(message, topic, queue_id, tries)

        self.cluster.after(LEVELS_S[level - 1] * SECOND + self.cluster.between(5 * MS, 100 * MS), due)
        return copy

    def sent_back(self, copy: Copy, group: str, topic: str, queue_id: int, *, last: bool) -> None:
        """Store a message again whose consumption failed, for a retry or as a dead letter."""
        if last:
            self.store(copy.message, f"%DLQ%{group}", 0)
        else:
            self.delay(copy.message, 3 + copy.tries, f"%RETRY%{group}", 0, copy.tries + 1)
        self.write(
            "dead_letter" if last else "retry",
            msg_id=copy.message.msg_id,
            topic=topic,
            queue_id=queue_id,
            queue_offset=copy.offset,
            group=group,
        )

    def stop(self, *, clean: bool) -> None:
        """End the process and start it again later."""
        self.down = True
        lost = [] if clean else self._unread_tail()
        cause = "power" if lost else "process"
        if not clean:
            self.cluster.write("harness", "crash", {"kind": cause, "node": self.name})
        self.cluster.after(self.cluster.between(3 * SECOND, 12 * SECOND), lambda: self._again(clean, lost))

    def _unread_tail(self) -> list[tuple[tuple[str, int], Copy]]:
        """Return the last records, of plain topics and read by no consumer, that a power failure takes."""
        lost: list[tuple[tuple[str, int], Copy]] = []
        if self.flush == "SYNC_FLUSH":
            return lost
        for queue, copy in reversed(self.tail[-5:]):
            if queue[0].startswith(("%", SCHEDULE)) or self.read[queue] > copy.offset:
                break
            lost.append((queue, copy))
        return lost

    def _again(self, clean: bool, lost: list[tuple[tuple[str, int], Copy]]) -> None:
        if not clean:
            self.write("crash", {"kind": "unknown"})
        if lost:
            removed = self.log_end - lost[-1][1].commit_offset
            self.log_end = lost[-1][1].commit_offset
            for queue, _ in lost:
                self.queues[queue].pop()
                self.tail.pop()
            self.write("truncate", {"bytes": str(removed)}, commit_offset=self.log_end)
        self.start(abnormal=not clean)


@dataclass
class Producer:
    cluster: Cluster
    node: str
    attempts: int = 2

    def send(self, topic: str, brokers: list[str], queues: int, level: int = 0, half: str = "") -> Message:
        """Send a message to one of the brokers. `half` is `commit` or `rollback` for a transaction."""
        number = self.cluster.between(1, 999)
        keys = f"order-{number}" if self.cluster.chance(0.5) else None
        born = self.cluster.clock(self.node) // MS * MS
        message = Message(self.cluster.new_id(), topic, born, keys)
        self._attempt(message, 1, list(brokers), queues, level, half)
        return message

    def _attempt(
        self, message: Message, attempt: int, brokers: list[str], queues: int, level: int, half: str
    ) -> None:
        broker = self.cluster.brokers[self.cluster.random.choice(brokers)]
        queue_id = self.cluster.between(0, queues - 1)
        columns: dict[str, Any] = {
            "msg_id": message.msg_id,
            "topic": message.topic,
            "queue_id": queue_id,
            "group": f"of-{self.node}",
            "client": f"{self.node}@1",
            "attempt": attempt,
            "keys": message.keys,
            "born_ts": message.born_ts,
        }
        to = {"broker": broker.name}
        self.cluster.write(self.node, "send", to, **columns)

        def fail() -> None:
            self.cluster.write(self.node, "send_fail", to, **columns, status="unknown")
            others = [name for name in brokers if name != broker.name]
            if attempt < self.attempts and others:
                self._attempt(message, attempt + 1, others, queues, level, half)

        def arrive() -> None:
            if broker.down:
                self.cluster.after(3 * SECOND, fail)
                return
            if not level and not half and self.cluster.chance(0.02):  # the response gets lost
                broker.answer(
                    broker.store(message, message.topic, queue_id),
                    message.topic,
                    queue_id,
                )
                self.cluster.after(3 * SECOND, fail)
                return
            offset = self._stored(broker, message, queue_id, level, half)
            self.cluster.after(
                self.cluster.between(200, 3 * MS),
                lambda: self.cluster.write(
                    self.node, "send_ack", to, **columns, queue_offset=offset, status="SEND_OK"
                ),
            )

        self.cluster.after(self.cluster.between(200, 3 * MS), arrive)

    def _stored(self, broker: Broker, message: Message, queue_id: int, level: int, half: str) -> int | None:
        if level:
            broker.answer(broker.delay(message, level, message.topic, queue_id), SCHEDULE, level - 1)
            return None
        if half:
            broker.write("half", msg_id=message.msg_id, topic=message.topic)
            self.cluster.after(
                self.cluster.between(50 * MS, 2 * SECOND), lambda: _end(broker, message, queue_id, half)
            )
            return None
        copy = broker.store(message, message.topic, queue_id)
        broker.answer(copy, message.topic, queue_id)
        return copy.offset


def _end(broker: Broker, message: Message, queue_id: int, half: str) -> None:
    broker.write(half, msg_id=message.msg_id, topic=message.topic)
    if half == "commit":
        broker.store(message, message.topic, queue_id)


@dataclass
class Group:
    cluster: Cluster
    name: str
    topics: dict[str, tuple[list[str], int]]
    """Brokers and queues of each topic."""
    fails: float = 0.03
    tries: int = 2
    broadcast: bool = False
    orderly: bool = False
    settle_us: int = 12 * SECOND
    """Within this time all members have computed their queues after a change."""
    members: list["Member"] = field(default_factory=list)

    def queues(self) -> list[Queue]:
        own = [
            (broker, topic, queue_id)
            for topic, (brokers, queues) in self.topics.items()
            for broker in brokers
            for queue_id in range(queues)
        ]
        if self.broadcast:
            return own
        return own + [
            (broker, f"%RETRY%{self.name}", 0)
            for broker in dict.fromkeys(own_broker for own_broker, *_ in own)
        ]

    def join(self, node: str) -> "Member":
        member = Member(self, node)
        self.members.append(member)
        self._changed(first=member)
        return member

    def leave(self, member: "Member", *, killed: bool) -> None:
        if killed:
            self.cluster.write("harness", "crash", {"kind": "process", "node": member.node})
        else:
            member.give_up()
            member.write("unregister")
        member.owned.clear()
        self.members.remove(member)
        self._changed()

    def _changed(self, first: "Member | None" = None) -> None:
        for member in self.members:
            soon = member is first or self.broadcast
            self.cluster.after(self.cluster.between(1, SECOND if soon else self.settle_us), member.rebalance)


@dataclass
class Member:
    group: Group
    node: str
    owned: dict[Queue, object] = field(default_factory=dict)
    """The queues that it reads, with the loop that reads each."""
    positions: dict[Queue, int] = field(default_factory=dict)
    committed_at: dict[Queue, int] = field(default_factory=dict)

    @property
    def client(self) -> str:
        return f"{self.node}@815"

    def write(self, kind: str, attrs: dict[str, str] | None = None, **columns: Any) -> None:
        self.group.cluster.write(self.node, kind, attrs, client=self.client, **columns)

    def rebalance(self) -> None:
        group = self.group
        if self not in group.members:
            return
        mine = group.queues()
        if not group.broadcast:
            members = sorted(group.members, key=lambda each: each.node)
            mine = [queue for i, queue in enumerate(mine) if members[i % len(members)] is self]
        for topic in dict.fromkeys(topic for _, topic, _ in group.queues()):
            number = sum(queue[1] == topic for queue in mine)
            orderly = {"orderly": "true"} if group.orderly else {}
            self.write("rebalance", {"queues": str(number)} | orderly, topic=topic, group=group.name)
        for queue in [queue for queue in self.owned if queue not in mine]:
            if group.cluster.chance(0.7):
                self._commit(queue)
            del self.owned[queue]
        for queue in mine:
            if queue not in self.owned:
                self._take(queue)

    def give_up(self) -> None:
        """Commit what was consumed, before a regular end."""
        for queue in self.owned:
            self._commit(queue)

    def _take(self, queue: Queue) -> None:
        broker = self.group.cluster.brokers[queue[0]]
        if not self.group.broadcast:
            self.positions[queue] = broker.offsets.get((self.group.name, *queue[1:]), 0)
        self.positions.setdefault(queue, 0)
        self.committed_at[queue] = self.group.cluster.now
        loop = object()
        self.owned[queue] = loop
        self._poll(queue, loop)

    def _poll(self, queue: Queue, loop: object) -> None:
        cluster, (name, topic, queue_id) = self.group.cluster, queue
        broker = cluster.brokers[name]
        if self.owned.get(queue) is not loop:
            return
        copies = broker.queues[topic, queue_id]
        if broker.down or self.positions[queue] >= len(copies):
            broker.waiting[topic, queue_id].append(lambda: self._poll(queue, loop))
            return
        copy = copies[self.positions[queue]]
        broker.read[topic, queue_id] = max(broker.read[topic, queue_id], copy.offset + 1)
        self._event("deliver", queue, copy)
        cluster.after(cluster.between(MS, 20 * MS), lambda: self._end(queue, loop, copy))

    def _end(self, queue: Queue, loop: object, copy: Copy) -> None:
        group, cluster = self.group, self.group.cluster
        broker = cluster.brokers[queue[0]]
        if self not in group.members or self.owned.get(queue) is not loop:
            return
        if broker.down:  # it keeps what it has, and commits later
            cluster.after(SECOND, lambda: self._end(queue, loop, copy))
            return
        if cluster.chance(group.fails):
            self._event("consume_fail", queue, copy)
            last = copy.tries >= group.tries
            broker.sent_back(copy, group.name, *queue[1:], last=last)
            self._event("dead_letter" if last else "retry", queue, copy)
        else:
            self._event("consume_ok", queue, copy)
        self.positions[queue] = copy.offset + 1
        if cluster.now - self.committed_at[queue] > 5 * SECOND:
            self._commit(queue)
        self._poll(queue, loop)

    def _commit(self, queue: Queue) -> None:
        name, topic, queue_id = queue
        cluster, broker = self.group.cluster, self.group.cluster.brokers[name]
        offset = self.positions[queue]
        key = (self.group.name, topic, queue_id)
        self.committed_at[queue] = cluster.now
        if self.group.broadcast or broker.down or offset <= broker.offsets.get(key, 0):
            return
        broker.offsets[key] = offset
        where: dict[str, Any] = {
            "topic": topic, "queue_id": queue_id, "queue_offset": offset, "group": self.group.name
        }  # fmt: skip
        broker.write("offset_commit", **where)
        self.write("offset_commit", {"broker": name}, **where)

    def _event(self, kind: str, queue: Queue, copy: Copy) -> None:
        self.write(
            kind,
            {"broker": queue[0]},
            msg_id=copy.message.msg_id,
            topic=queue[1],
            queue_id=queue[2],
            queue_offset=copy.offset,
            commit_offset=copy.commit_offset,
            group=self.group.name,
            keys=copy.message.keys,
            born_ts=copy.message.born_ts,
        )
