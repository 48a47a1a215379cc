"""What is seen of a simulated cluster, as the histories and the life that conformance's checkers judge.

A history is that of one topic with its producer, alone on it; what its queues hold is looked at in the
master's store, at once and on no wire. A send that was under way when the master ended is of open outcome: in
which of its lives it was answered nobody can tell.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from conformance.history.steps import Down, End, History, Operation, Pull, Query, Restart, Send
from conformance.replication import Life, LogsSeen, ReadsSeen, SendSeen
from conformance.target import Outcome, Pulled, PulledMessage, PullStatus, Sent
from conformance.target import Setup as HistorySetup
from conformance.targets.machines import MASTER, SLAVE, Cluster
from fuzz import cluster_judge
from impl.client.model import Outcome as SendOutcome
from impl.client.model import Refused, Unknown
from impl.client.model import Sent as Stored
from impl.message import StoredMessage
from impl.replication.config import Role
from impl.store.config import FlushMode
from impl.store.record import RecordError, decode

GROUP: Final = "G"
_LOOK_COUNT: Final = 1000


@dataclass(slots=True)
class Sending:
    """A send under way: its place in the history of its topic, and what was so when it began."""

    place: int
    queue_id: int
    name: str
    body: bytes
    life: int
    slaveless: int | None
    """The slave machine's life when there was no slave to wait for; None when there was."""


@dataclass(slots=True)
class Topic:
    """One topic, as its producer and the one who looks at its queues see it."""

    name: str
    operations: list[Operation] = field(default_factory=list)
    delivered: list[PulledMessage] = field(default_factory=list)
    """To the consumers of the group, in the order of their calls."""


class Witness:
    """Notes what happens; `judge` holds it against the catalogue."""

    def __init__(self, cluster: Cluster, topics: int, members: int, checked: Counter[str]) -> None:
        self.checked = checked
        self._members = members
        self.topics = [Topic(f"T{number}") for number in range(topics)]
        self.tail_lost = False
        """The master came back with less than consumers or its slave may have seen of it."""
        self._cluster = cluster
        cluster.on_recovered = self.recovered
        self._by_name = {topic.name: topic for topic in self.topics}
        self._sends: list[SendSeen] = []
        self._logs: list[LogsSeen] = []
        self._reads: list[ReadsSeen] = []
        self._slave_offsets: dict[tuple[int, str, int], list[int]] = {}
        """By life of the slave, topic and queue."""
        self._known: set[str] = set()
        self._held: set[str] = set()
        self._last_log: frozenset[str] = frozenset()
        """The master's, when it was last seen."""
        self._lost: set[str] = set()
        """What was in it before a crash, and not after."""
        self._reign: tuple[str, int, int] | None = None
        """Of a group: its master, its life and its term."""
        self._forked = False
        self._caught_up: bool | None = None
        self._promised: set[str] = set()
        self._life = 0
        """Grows when the master begins to serve, and when it ends."""

    # -- producers and consumers

    def begins(self, topic: Topic, queue_id: int, name: str, body: bytes) -> Sending:
        """A send leaves."""
        sent = Sent(Outcome.INDETERMINATE, "under way")
        topic.operations.append(Send(queue_id, name, body, sent))
        # One that begins while the broker does not serve may be answered by the one that is being stopped.
        life = self._life if self._cluster.master else -1
        return Sending(len(topic.operations) - 1, queue_id, name, body, life, self._slaveless)

    def ended(self, topic: Topic, sending: Sending, outcome: SendOutcome) -> None:
        """What its producer knows of it."""
        if self._life != sending.life:
            if self._cluster.setup.elected and getattr(outcome, "status", "") == "SEND_OK":
                self._promised.add(sending.name)  # whoever leads
            return
        answer = _sent(outcome)
        topic.operations[sending.place] = Send(sending.queue_id, sending.name, sending.body, answer)
        if isinstance(outcome, Stored):
            self.look()
            name = sending.name
            expected = self._expected(sending)
            held, known = name in self._held, name in self._known
            self._sends.append(SendSeen(name, outcome.status, True, expected, held, known))
            if outcome.status == "SEND_OK":
                self._promised.add(name)

    def delivered(self, stored: StoredMessage) -> None:
        """A consumer was given a message."""
        message = _pulled(stored)
        if topic := self._by_name.get(message.topic):
            topic.delivered.append(message)

    # -- brokers

    def dies(self, node: str, how: End) -> None:
        """A broker is about to end so."""
        self.look()
        if node == MASTER:
            self._life += 1
            self._note(lambda _: Down(how))
            if how in (End.OS_CRASH, End.POWER_LOSS) and self._is_asynchronous:
                self._promised.clear()
                self.tail_lost = True

    def recovered(self, node: str) -> None:
        """A broker has recovered its store, and is about to serve."""
        if node == MASTER:
            self._life += 1
            self._note(lambda _: Restart())
            self._lost.update(
                self._last_log.difference(stored.message_id for stored in self._cluster.log(MASTER))
            )
            for topic in self.topics:
                topic.operations += self._queues(topic)
        self.look()

    def look(self) -> None:
        """Note both logs, and the offsets that both have of the group."""
        cluster = self._cluster
        self._look_for_another_master()
        seen: dict[str, tuple[str, ...] | None] = {MASTER: None, SLAVE: None}
        for node in (MASTER, SLAVE):
            if cluster.is_serving(node):
                seen[node] = tuple(stored.message_id for stored in cluster.log(node))
        if (log := seen[MASTER]) is not None:
            self._last_log = frozenset(log)
        if not self._lost.isdisjoint(seen[SLAVE] or ()):  # perhaps it was on its way when the master died
            self._forked = self.tail_lost = True
        self._known.update(seen[MASTER] or ())
        self._held.update(seen[SLAVE] or ())
        if SLAVE in cluster.nodes:
            self._logs.append(LogsSeen(seen[MASTER], seen[SLAVE], cluster.follows(), self._forked))
        for node, topic, queue_id, offset in self._offsets():
            if node == SLAVE:
                life = cluster.machines[SLAVE].life
                self._slave_offsets.setdefault((life, topic.name, queue_id), []).append(offset)
            elif not self.tail_lost:  # else consumers go back
                topic.operations.append(Query(queue_id, offset))

    def _look_for_another_master(self) -> None:
        """A group's new master, or one that leads anew, is as one that came back: with all there was."""
        cluster = self._cluster
        if not cluster.setup.elected or (master := cluster.master) is None:
            return
        reign = master, cluster.machines[master].life, cluster.group_store(master).term
        if self._reign != reign:
            self._reign = reign
            self._life += 1
            for topic in self.topics:
                topic.operations += [Down(End.OS_CRASH), Restart(), *self._queues(topic)]

    def read(self, log: tuple[str, ...], read: tuple[str, ...]) -> None:
        """So much was read of the slave, its master being away."""
        self._reads.append(ReadsSeen(log, read))

    def calm(self, *, caught_up: bool) -> None:
        """Whether the slave caught up after the faults had ended."""
        self._caught_up = None if self._forked else caught_up

    @property
    def promised(self) -> frozenset[str]:
        """What was answered SEND_OK, and no crash may have taken."""
        return frozenset(self._promised)

    @property
    def forked(self) -> bool:
        """The slave has what its master lost."""
        return self._forked

    def undelivered(self) -> set[str]:
        """What must be delivered to the group and was not yet."""
        if self.tail_lost:  # the offsets of the group may be ahead of the queues
            return set()
        given = {message.msg_id for topic in self.topics for message in topic.delivered}
        return self._promised - given

    # -- the verdict

    def judge(self) -> None:
        """Raises Finding: a catalogue's invariant is violated."""
        for topic in self.topics:
            for looked in self._queues(topic):
                topic.operations.append(looked)
            cluster_judge.store_holds(self._history(topic, topic.operations), self.checked)
            given = (Pull(each.queue_id, each.queue_offset, 1, _found(each)) for each in topic.delivered)
            sends = [operation for operation in topic.operations if isinstance(operation, Send)]
            cluster_judge.nothing_invented(self._history(topic, [*sends, *given]), self.checked)
        if SLAVE in self._cluster.nodes:
            for offsets in self._slave_offsets.values() or [[]]:
                cluster_judge.pair_holds(self._life_of_the_pair(tuple(offsets)), self.checked)

    def _history(self, topic: Topic, operations: list[Operation]) -> History:
        setup = self._cluster.setup
        flush = FlushMode.ASYNC_FLUSH if self._is_asynchronous else FlushMode.SYNC_FLUSH
        return History(HistorySetup(flush, setup.queues, topic=topic.name, group=GROUP), tuple(operations))

    def _life_of_the_pair(self, offsets: tuple[int, ...]) -> Life:
        return Life(
            synchronous=self._is_synchronous,
            sends=tuple(self._sends),
            logs=tuple(self._logs),
            reads=tuple(self._reads),
            caught_up=self._caught_up,
            slave_offsets=offsets,
        )

    # -- inside

    @property
    def _is_asynchronous(self) -> bool:
        setup = self._cluster.setup
        return setup.flush is FlushMode.ASYNC_FLUSH and not setup.elected

    @property
    def _is_synchronous(self) -> bool:
        replication = self._cluster.setup.replication
        return replication is not None and replication.role is Role.SYNC_MASTER

    @property
    def _slaveless(self) -> int | None:
        """See Sending."""
        cluster = self._cluster
        if SLAVE not in cluster.nodes or SLAVE in cluster.brokers or not cluster.is_serving(MASTER):
            return None
        server = cluster.brokers[MASTER].replicas.server
        return None if server is None or server.acks.slaves else cluster.machines[SLAVE].life

    def _expected(self, sending: Sending) -> frozenset[str]:
        """The statuses that can be true of a send; where a slave may or may not have had it, any may."""
        replication = self._cluster.setup.replication
        if not self._is_synchronous or replication is None:
            return frozenset({"SEND_OK"} | (set() if self._is_asynchronous else {"FLUSH_DISK_TIMEOUT"}))
        if sending.slaveless is None or sending.slaveless != self._slaveless:
            return frozenset()
        # 5.x's rule waits, whoever is there.
        return frozenset({"FLUSH_SLAVE_TIMEOUT" if replication.in_sync_replicas else "SLAVE_NOT_AVAILABLE"})

    def _note(self, operation: Callable[[Topic], Operation]) -> None:
        for topic in self.topics:
            topic.operations.append(operation(topic))

    def _queues(self, topic: Topic) -> Iterator[Pull]:
        """What the master's queues hold now."""
        if (master := self._cluster.master) is None:
            return
        broker = self._cluster.brokers[master]
        for queue_id in range(self._cluster.setup.queues):
            found = broker.store.get(topic.name, queue_id, 0, _LOOK_COUNT, 1 << 30)
            messages = tuple(map(_record, found.records))
            status = PullStatus.FOUND if messages else PullStatus.NO_NEW
            pulled = Pulled(status, messages, found.next_offset, found.min_offset, found.max_offset)
            yield Pull(queue_id, 0, _LOOK_COUNT, pulled, peek=True)

    def _offsets(self) -> Iterator[tuple[str, Topic, int, int]]:
        if self._members > 1:  # a late word of a queue's former owner counts
            return
        for node in (self._cluster.master, SLAVE):
            if node is None or not self._cluster.is_serving(node):
                continue
            broker = self._cluster.brokers[node]
            if broker.services is None:
                continue
            for topic in self.topics:
                for queue_id, offset in broker.services.offsets.of_group(GROUP, topic.name).items():
                    yield node, topic, queue_id, offset


def _sent(outcome: SendOutcome) -> Sent:
    match outcome:
        case Stored(status, _, _, queue_offset):
            return Sent(Outcome.OK, status, queue_offset)
        case Refused(_, status):
            return Sent(Outcome.FAILED, status)
        case Unknown(_, remark):
            return Sent(Outcome.INDETERMINATE, remark)


def _pulled(stored: StoredMessage) -> PulledMessage:
    message = stored.message
    return PulledMessage(
        stored.message_id, message.body, message.topic, message.queue_id, stored.queue_offset
    )


def _record(data: bytes) -> PulledMessage:
    try:
        return _pulled(decode(data))
    except RecordError:
        return PulledMessage("", b"", "", -1, -1)


def _found(message: PulledMessage) -> Pulled:
    offset = message.queue_offset
    return Pulled(PullStatus.FOUND, (message,), offset + 1, 0, offset + 1)
