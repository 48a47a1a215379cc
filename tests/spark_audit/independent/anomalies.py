"""Anomalies of messages, queues, offsets and routes, each in a topic and a group of its own.

Each script runs beside the traffic of the clean cluster, and states which violations the audit must find.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.spark_audit.independent.clean_cluster import BROADCAST
from tests.spark_audit.independent.simulation import (
    BEGIN,
    MS,
    SCHEDULE,
    SECOND,
    Broker,
    Cluster,
    Copy,
    Message,
)

CALM_US = 12 * SECOND
FIRST_S = 105
"""The anomalies begin when the log of each node is complete, with the time in which causes count."""
Steps = Iterator[int]
"""The delays between the steps of a script, in microseconds."""


@dataclass(frozen=True)
class Violation:
    """A violation that the audit must find, by some columns of its finding.

    The value of `names` may be in any of its texts.
    """

    invariant: str
    rule: str
    columns: tuple[tuple[str, Any], ...]


@dataclass
class Truth:
    violations: list[Violation] = field(default_factory=list)

    def add(self, invariant: str, rule: str, **columns: Any) -> None:
        self.violations.append(Violation(invariant, rule, tuple(columns.items())))


class Stream:
    """One queue of a topic, one producer, and a group with one consumer."""

    def __init__(self, cluster: Cluster, truth: Truth, name: str, broker: Broker | None = None) -> None:
        self.cluster, self.truth, self.name = cluster, truth, name
        self.broker = broker or cluster.brokers["broker-a"]
        self.topic, self.group, self.consumer = f"T-{name}", f"g-{name}", f"c-{name}"
        self.to = {"broker": self.broker.name}
        self.tags: dict[str, str] = {}
        """The column `tags` of the messages, if they state it."""

    def subscribe(self, expression: str) -> None:
        columns = {"topic": self.topic, "group": self.group, "client": f"{self.consumer}@9"}
        attrs = {"type": "TAG", "expression": expression}
        self.cluster.write(self.consumer, "subscribe", attrs, **columns)

    def start(self, *nodes: str, orderly: bool = False) -> None:
        for node in nodes or (self.consumer,):
            attrs = {"queues": "1"} | ({"orderly": "true"} if orderly else {})
            columns = {"topic": self.topic, "group": self.group, "client": f"{node}@9"}
            self.cluster.write(node, "rebalance", attrs, **columns)

    def message(self) -> Message:
        born = self.cluster.clock("producer-1") // MS * MS
        return Message(self.cluster.new_id(), self.topic, born)

    def send(
        self,
        message: Message | None = None,
        *,
        one_way: bool = False,
        node: str = "producer-1",
        flushed: bool = True,
    ) -> Copy:
        """Send, store and acknowledge a message."""
        message = message or self.message()
        columns: dict[str, Any] = {
            "msg_id": message.msg_id,
            "topic": self.topic,
            "queue_id": 0,
            "born_ts": message.born_ts,
            "attempt": 1,
        }
        self.cluster.write(node, "send", self.to, **columns, **self.tags)
        copy = self.broker.store(message, self.topic, 0, flushed=flushed)
        if not one_way:
            self.broker.answer(copy, self.topic, 0)
            stored = {"queue_offset": copy.offset, "status": "SEND_OK"}
            self.cluster.write(node, "send_ack", self.to, **columns, **stored)
        return copy

    def event(self, kind: str, copy: Copy, node: str = "", topic: str = "", group: str = "") -> None:
        node = node or self.consumer
        self.cluster.write(
            node,
            kind,
            self.to,
            msg_id=copy.message.msg_id,
            topic=topic or self.topic,
            queue_id=0,
            queue_offset=copy.offset,
            commit_offset=copy.commit_offset,
            group=group or self.group,
            client=f"{node}@9",
            born_ts=copy.message.born_ts,
        )

    def consume(self, copy: Copy, node: str = "", group: str = "") -> None:
        self.event("deliver", copy, node, group=group)
        self.event("consume_ok", copy, node, group=group)

    def commit(self, offset: int, node: str = "") -> None:
        node = node or self.consumer
        where: dict[str, Any] = {
            "topic": self.topic, "queue_id": 0, "queue_offset": offset, "group": self.group
        }  # fmt: skip
        self.broker.write("offset_commit", **where)
        self.cluster.write(node, "offset_commit", self.to, client=f"{node}@9", **where)

    def some(self, number: int = 0) -> Steps:
        """Send and consume some messages."""
        for _ in range(number or self.cluster.between(2, 6)):
            copy = self.send()
            yield self.cluster.between(50 * MS, SECOND)
            self.consume(copy)
            yield self.cluster.between(10 * MS, 100 * MS)
            self.commit(copy.offset + 1)

    def found(self, invariant: str, rule: str, copy: Copy | None = None, **columns: Any) -> None:
        if copy:
            columns = {"msg_id": copy.message.msg_id, **columns}
        self.truth.add(invariant, rule, **columns)


def lost(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.found("DELIV-1", "lost-write", copy, group=s.group)
    yield from s.some()


def lost_to_one_group(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.consume(copy, f"{s.consumer}-other", f"{s.group}-other")
    s.found("DELIV-1", "lost-write", copy, group=s.group)
    s.found("DELIV-4", "poll-skip", copy, group=s.group)
    for _ in range(3):
        later = s.send()
        yield 200 * MS
        s.consume(later, f"{s.consumer}-other", f"{s.group}-other")
        s.consume(later)


def offset_ahead(s: Stream) -> Steps:
    yield from s.some()
    s.commit(s.cluster.between(50, 90))
    s.found("DELIV-1", "offset-ahead", topic=s.topic, group=s.group)


def phantom(s: Stream) -> Steps:
    yield from s.some()
    copy = s.broker.store(s.message(), s.topic, 0)
    s.consume(copy)
    s.found("DELIV-2", "phantom", copy)
    yield from s.some()


def delivered_twice(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.consume(copy)
    yield s.cluster.between(SECOND, 9 * SECOND)
    s.consume(copy)
    s.found("DELIV-3", "duplicate-delivery", copy, group=s.group)
    yield from s.some()


def stored_twice(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.consume(copy)
    s.consume(s.broker.store(copy.message, s.topic, 0))
    s.found("DELIV-3", "duplicate-offset", copy, group=s.group)
    yield from s.some()


def id_reused(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.consume(copy)
    s.consume(s.send(copy.message, node="producer-2"))
    s.found("DELIV-3", "msgid-reused", copy)
    yield from s.some()


def out_of_order(s: Stream) -> Steps:
    yield from s.some()
    first, second = s.send(), s.send()
    s.consume(second)
    yield 300 * MS
    s.consume(first)
    s.found("DELIV-4", "nonmonotonic-poll", first, group=s.group)
    yield from s.some()


def skipped(s: Stream) -> Steps:
    """No group must receive a message without an acknowledgement; but another group shows that it exists."""
    yield from s.some()
    copy = s.send(one_way=True)
    s.consume(copy, f"{s.consumer}-other", f"{s.group}-other")
    s.found("DELIV-4", "poll-skip", queue_offset=copy.offset, topic=s.topic, group=s.group)
    for _ in range(3):
        later = s.send()
        yield 200 * MS
        s.consume(later, f"{s.consumer}-other", f"{s.group}-other")
        s.consume(later)


def offset_back(s: Stream) -> Steps:
    yield from s.some(4)
    s.commit(s.cluster.between(0, 3))
    s.found("DELIV-5", "offset-regression", topic=s.topic, group=s.group)
    yield SECOND
    yield from s.some()


def negative_offset(s: Stream) -> Steps:
    s.commit(-1)
    s.found("DELIV-5", "negative-commit", topic=s.topic, group=s.group)
    yield SECOND
    yield from s.some()


def two_owners(s: Stream) -> Steps:
    """Two members read one queue: some messages come twice, some to one of them, and both commit."""
    pair = (s.consumer, f"{s.consumer}-b")
    s.start(pair[1])
    yield 32 * SECOND - CALM_US
    s.found("DELIV-6", "double-owned", topic=s.topic, group=s.group)
    for number in range(18):
        copy = s.send()
        yield 900 * MS
        # At first and at last, each of them has one.
        readers = pair if number % 3 else (pair[number // 3 % 2],)
        for node in readers:
            s.consume(copy, node)
            yield 40 * MS
        if number % 4 == 3:
            s.commit(copy.offset + 1, pair[0])
            s.commit(copy.offset - 1, pair[1])


def dropped(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.event("deliver", copy)
    s.event("consume_fail", copy)
    s.commit(copy.offset + 1)
    s.found("DELIV-7", "failed-and-dropped", copy, group=s.group)
    yield from s.some()


def dead_and_delivered(s: Stream) -> Steps:
    yield from s.some()
    copy = s.send()
    s.event("deliver", copy)
    s.event("consume_fail", copy)
    s.broker.sent_back(copy, s.group, s.topic, 0, last=True)
    s.event("dead_letter", copy)
    s.commit(copy.offset + 1)
    yield 14 * SECOND
    again = s.broker.store(copy.message, f"%RETRY%{s.group}", 0)
    s.event("deliver", again, topic=f"%RETRY%{s.group}")
    s.event("consume_ok", again, topic=f"%RETRY%{s.group}")
    s.found("DELIV-7", "dead-letter-delivered", copy, group=s.group)


def early(s: Stream) -> Steps:
    yield from s.some()
    message = s.message()
    columns: dict[str, Any] = {"msg_id": message.msg_id, "topic": s.topic, "queue_id": 0, "attempt": 1}
    s.cluster.write("producer-1", "send", s.to, **columns)
    waiting = s.broker.store(message, SCHEDULE, 3)
    s.broker.answer(waiting, SCHEDULE, 3)
    s.cluster.write("producer-1", "send_ack", s.to, **columns, status="SEND_OK")
    yield s.cluster.between(2 * SECOND, 22 * SECOND)
    copy = s.broker.store(message, s.topic, 0)
    s.consume(copy)
    s.found("DELIV-8", "early", copy)
    yield from s.some()


def _half(s: Stream) -> Message:
    message = s.message()
    columns: dict[str, Any] = {"msg_id": message.msg_id, "topic": s.topic, "queue_id": 0, "attempt": 1}
    s.cluster.write("producer-1", "send", s.to, **columns)
    s.broker.write("half", msg_id=message.msg_id, topic=s.topic)
    s.cluster.write("producer-1", "send_ack", s.to, **columns, status="SEND_OK")
    return message


def aborted_read(s: Stream) -> Steps:
    yield from s.some()
    message = _half(s)
    yield SECOND
    s.broker.write("rollback", msg_id=message.msg_id, topic=s.topic)
    copy = s.broker.store(message, s.topic, 0)
    s.consume(copy)
    s.found("DELIV-9", "aborted-read", copy, group=s.group)


def precommitted_read(s: Stream) -> Steps:
    yield from s.some()
    message = _half(s)
    copy = s.broker.store(message, s.topic, 0)
    s.consume(copy)
    yield 14 * SECOND
    s.broker.write("commit", msg_id=message.msg_id, topic=s.topic)
    s.found("DELIV-9", "precommitted-read", copy, group=s.group)


def ended_twice(s: Stream) -> Steps:
    yield from s.some()
    message = _half(s)
    yield SECOND
    s.broker.write("commit", msg_id=message.msg_id, topic=s.topic)
    copy = s.broker.store(message, s.topic, 0)
    s.consume(copy)
    yield SECOND
    s.broker.write("rollback", msg_id=message.msg_id, topic=s.topic)
    s.found("DELIV-9", "committed-and-rolled-back", copy)
    s.found("TXN-2", "ended-twice", copy)


def committed_twice(s: Stream) -> Steps:
    yield from s.some()
    message = _half(s)
    for _ in range(2):
        s.broker.write("commit", msg_id=message.msg_id, topic=s.topic)
        copy = s.broker.store(message, s.topic, 0)
        s.consume(copy)
        yield SECOND
    s.found("TXN-1", "visible-twice", copy)
    s.found("DELIV-3", "duplicate-offset", copy, group=s.group)


def checked_after_end(s: Stream) -> Steps:
    yield from s.some()
    message = _half(s)
    for kind in ("check", "commit", "check"):
        s.broker.write(kind, msg_id=message.msg_id, topic=s.topic)
        yield SECOND
    copy = s.broker.store(message, s.topic, 0)
    s.consume(copy)
    s.found("TXN-4", "checked-after-end", copy)


def recalled_read(s: Stream) -> Steps:
    yield from s.some()
    message = s.message()
    columns: dict[str, Any] = {"msg_id": message.msg_id, "topic": s.topic, "queue_id": 0, "attempt": 1}
    s.cluster.write("producer-1", "send", s.to, **columns)
    s.cluster.write("producer-1", "send_ack", s.to, **columns, status="SEND_OK")
    s.broker.write("recall", msg_id=message.msg_id, topic=s.topic, status="PUT_OK")
    yield 14 * SECOND
    copy = s.broker.store(message, s.topic, 0)
    s.consume(copy)
    s.found("TIMER-3", "recalled-read", copy, group=s.group)


def not_selected(s: Stream) -> Steps:
    """A group subscribes by tag; it receives a message of another tag, and rightly misses some."""
    s.subscribe("coffee || espresso")
    yield 12 * SECOND
    s.tags = {"tags": "coffee"}
    yield from s.some()
    s.tags = {"tags": "milk"}
    s.send()
    s.tags = {"tags": "tea"}
    copy = s.send()
    s.consume(copy)
    s.found("DELIV-10", "not-selected", copy, group=s.group)
    s.tags = {"tags": "espresso"}
    yield from s.some()


def broadcast_gap(s: Stream) -> Steps:
    pair = (s.consumer, f"{s.consumer}-b")
    s.group = BROADCAST
    number = s.cluster.between(2, 4)
    for at in range(7):
        copy = s.send()
        yield 500 * MS
        for node in pair:
            if at != number or node != pair[1]:
                s.consume(copy, node)
            else:
                s.found("DELIV-11", "broadcast-gap", copy)
                s.found("DELIV-4", "poll-skip", copy, group=f"{BROADCAST}@{node}@9")


def overlap(s: Stream) -> Steps:
    yield from s.some(2)
    first, second, third = s.send(), s.send(), s.send()
    s.event("deliver", first)
    s.event("deliver", second)
    yield 100 * MS
    s.event("consume_ok", first)
    s.event("deliver", third)
    s.found("DELIV-13", "orderly-overlap", third, group=s.group)
    yield 100 * MS
    s.event("consume_ok", second)
    s.event("consume_ok", third)
    yield from s.some()


def truncated(s: Stream) -> Steps:
    """A broker loses acknowledged messages, in a power failure or (ASYNC_FLUSH) in a crash of the process."""
    is_sync = s.name.startswith("power")
    s.broker = Broker(s.cluster, f"broker-{s.name}", flush="SYNC_FLUSH" if is_sync else "ASYNC_FLUSH")
    s.to = {"broker": s.broker.name}
    s.broker.start()
    yield from s.some()
    copy = s.send()
    if is_sync:
        s.found("FLUSH-1", "acked-then-truncated", copy)
        s.found("DELIV-1", "acked-then-truncated", copy, group=s.group)
    else:
        s.found("FLUSH-2", "acked-then-truncated", copy)
    # A report by the harness's clock must be between the two starts by the broker's clock.
    yield CALM_US
    cause = "power" if is_sync else "process"
    s.cluster.write("harness", "crash", {"kind": cause, "node": s.broker.name})
    yield CALM_US
    s.broker.write("crash", {"kind": "unknown"})
    removed = {"bytes": str(s.broker.log_end - copy.commit_offset)}
    s.broker.log_end = copy.commit_offset
    s.broker.queues[s.topic, 0].pop()
    s.broker.write("truncate", removed, commit_offset=s.broker.log_end)
    s.broker.start(abnormal=True)
    yield SECOND
    yield from s.some()


def not_flushed(s: Stream) -> Steps:
    s.broker = Broker(s.cluster, f"broker-{s.name}")
    s.to = {"broker": s.broker.name}
    s.broker.start()
    yield from s.some()
    copy = s.send(flushed=False)
    s.found("REPL-3", "ok-before-flush", copy)
    s.consume(copy)
    yield from s.some()


def not_on_slave(s: Stream) -> Steps:
    s.broker = Broker(s.cluster, f"broker-{s.name}", slave="10.0.0.9:51022")
    s.to = {"broker": s.broker.name}
    s.broker.start()
    yield from s.some()
    slave, s.broker.slave = s.broker.slave, None
    copy = s.send()
    s.broker.slave = slave
    s.found("REPL-1", "acked-before-slave", copy)
    s.consume(copy)
    yield from s.some()


def same_broker_again(s: Stream) -> Steps:
    other = Broker(s.cluster, f"broker-{s.name}")
    other.start()
    usual, node = s.to, f"p-{s.name}"

    def attempt(message: Message, number: int, to: dict[str, str], kind: str = "send", **more: Any) -> None:
        columns: dict[str, Any] = {"msg_id": message.msg_id, "topic": s.topic, "queue_id": 0}
        s.cluster.write(node, kind, to, **columns, attempt=number, client=f"{node}@1", **more)

    for to in (usual, {"broker": other.name}):
        message = s.message()
        attempt(message, 1, to)
        attempt(message, 1, to, "send_fail", status="TOPIC_NOT_EXIST")
        yield SECOND
    message = s.message()
    for number in (1, 2):
        attempt(message, number, usual)
        attempt(message, number, usual, "send_fail", status="SYSTEM_BUSY")
        yield SECOND
    s.found("ROUTE-5", "same-broker-again", msg_id=message.msg_id)
    attempt(s.message(), 1, {"broker": other.name})


def _served(s: Stream, expiry_ms: int = 120_000) -> Callable[..., None]:
    """Start a name server with one broker, and return the function that writes about the broker."""
    server, name = f"namesrv-{s.name}", f"broker-{s.name}"
    s.cluster.write(server, "recover", {"expiry_ms": str(expiry_ms), "scan_interval_ms": "10000"})
    about = {"broker": name, "address": f"{s.name}:10911"}

    def write(kind: str, **more: str) -> None:
        topic = s.topic if kind == "route" else None
        s.cluster.write(server, kind, more if topic else about | more, topic=topic)

    write("register", id="0", topics=s.topic, version="0.1.1")
    return write


def route_to_dropped(s: Stream) -> Steps:
    write = _served(s)
    yield SECOND
    write("expire", reason="connection closed")
    yield SECOND
    write("route", brokers=f"broker-{s.name}:0", writable="")
    s.found("ROUTE-1", "route-to-dropped-broker", names=s.name)


def queue_without_broker(s: Stream) -> Steps:
    write = _served(s)
    yield SECOND
    write("route", brokers=f"broker-{s.name}:0", writable=f"broker-{s.name},elsewhere")
    s.found("ROUTE-1", "queue-without-broker", names=s.name)


def live_evicted(s: Stream) -> Steps:
    write = _served(s)
    yield 10 * SECOND
    write("heartbeat")
    yield 20 * SECOND
    write("expire", reason="silent")
    s.found("ROUTE-2", "live-broker-evicted", names=s.name)


def route_to_dead(s: Stream) -> Steps:
    write = _served(s, expiry_ms=30_000)
    yield 55 * SECOND
    write("route", brokers=f"broker-{s.name}:0", writable=f"broker-{s.name}")
    s.found("ROUTE-3", "route-to-dead-broker", names=s.name)


SCRIPTS: dict[str, Callable[[Stream], Steps]] = {
    "lost": lost,
    "lost-one": lost_to_one_group,
    "ahead": offset_ahead,
    "phantom": phantom,
    "twice": delivered_twice,
    "stored-twice": stored_twice,
    "reused": id_reused,
    "swapped": out_of_order,
    "skipped": skipped,
    "back": offset_back,
    "negative": negative_offset,
    "owners": two_owners,
    "dropped": dropped,
    "dead": dead_and_delivered,
    "early": early,
    "aborted": aborted_read,
    "precommitted": precommitted_read,
    "both": ended_twice,
    "committed_twice": committed_twice,
    "checked_after_end": checked_after_end,
    "recalled_read": recalled_read,
    "filtered": not_selected,
    "gap": broadcast_gap,
    "overlap": overlap,
    "power": truncated,
    "killed": truncated,
    "unflushed": not_flushed,
    "no-slave": not_on_slave,
    "same-broker": same_broker_again,
    "dropped-route": route_to_dropped,
    "no-broker": queue_without_broker,
    "evicted": live_evicted,
    "dead-route": route_to_dead,
}
_WITHOUT_GROUP = {"gap", "same-broker", "dropped-route", "no-broker", "evicted", "dead-route"}


def inject(cluster: Cluster, truth: Truth) -> None:
    """Put every script on the agenda, each once or twice."""
    for name, script in SCRIPTS.items():
        for number in range(cluster.between(1, 2)):
            begin = BEGIN + FIRST_S * SECOND + cluster.between(0, 8 * SECOND)
            cluster.at(begin, partial(_begin, cluster, truth, f"{name}-{number}", script))


def _begin(cluster: Cluster, truth: Truth, name: str, script: Callable[[Stream], Steps]) -> None:
    stream, kind = Stream(cluster, truth, name), name.rpartition("-")[0]
    if kind in _WITHOUT_GROUP:
        run_script(cluster, script(stream))
        return
    stream.start(orderly=kind == "overlap")
    # A rebalance explains what happens around it, by the clocks of two nodes.
    cluster.after(CALM_US, lambda: run_script(cluster, script(stream)))


def run_script(cluster: Cluster, steps: Steps) -> None:
    for delay in steps:
        cluster.after(delay, lambda: run_script(cluster, steps))
        return
