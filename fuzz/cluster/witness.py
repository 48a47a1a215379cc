"""Records what is observed of a simulated cluster, in the form that conformance's checkers judge.

There is one history per topic, with that topic's only producer. The content of its queues is read directly
from the master's store, in one step and without the network. A send that was in progress when the master
ended is recorded as indeterminate: it cannot be decided which life of the master answered it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqproof.conformance.hosts.simulated import MASTER, SLAVE, Cluster
from mqproof.conformance.suites.flush.steps import Down, End, History, Operation, Pull, Query, Restart, Send
from mqproof.conformance.suites.flush.target import Outcome, Pulled, PulledMessage, PullStatus, Sent
from mqproof.conformance.suites.flush.target import Setup as HistorySetup
from mqproof.conformance.suites.replication.checkers import Life, LogsSeen, ReadsSeen, SendSeen
from mqproof.fuzz.cluster import judge
from mqproof.fuzz.target import Finding
from mqproof.impl.client.model import Outcome as SendOutcome
from mqproof.impl.client.model import Refused, Unknown
from mqproof.impl.client.model import Sent as Stored
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.replication.config import Role
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.files.record import RecordError, decode

GROUP: Final = "G"
RESERVED_MS: Final = 10_000
"""The minimum age of messages that an operator's request may delete."""
_LOOK_COUNT: Final = 1000


@dataclass(slots=True)
class Sending:
    """A send in progress: its place in the history of its topic, and the conditions when it began."""

    operations: list[Operation]
    place: int
    """The index in `operations`."""
    queue_id: int
    name: str
    body: bytes
    life: int
    slaveless: int | None
    """The life of the slave machine if no slave was there to wait for when the send began; otherwise None."""
    begun_s: float


@dataclass(slots=True)
class Topic:
    """One topic, as observed by its producer and by the reads of its queues."""

    name: str
    operations: list[Operation] = field(default_factory=list)
    delivered: list[PulledMessage] = field(default_factory=list)
    """The messages delivered to the consumers of the group, in the order of their calls."""
    past: list[list[Operation]] = field(default_factory=list)
    """The histories of earlier topics of this name, which were deleted."""
    is_deleted: bool = False
    """Whether deletion of the topic was requested at least once."""

    @property
    def sends(self) -> list[Send]:
        """The sends to all topics of this name, current and deleted."""
        histories = (*self.past, self.operations)
        return [each for operations in histories for each in operations if isinstance(each, Send)]


class Place(NamedTuple):
    """The position of a message that was answered SEND_OK."""

    topic: str
    queue_id: int
    queue_offset: int
    begun_s: float
    """The time when its send began."""


@dataclass(slots=True)
class SlaveOffsets:
    """The successive values that a slave reports for one committed offset, in rows that must not decrease."""

    rows: list[list[int]] = field(default_factory=list)
    _master_life: int = -1
    _is_reported: bool = True

    def saw(self, offset: int, *, is_reported: bool, master_life: int) -> None:
        """Add the offset that the slave reports.

        A new row begins when the master may have restarted from an older offset file, which its slave then
        copies. An offset that the slave has not yet reported to the master survives one such restart.
        """
        lives = master_life - self._master_life  # 2 lives: the master ended and began again
        if not self.rows or lives > (0 if self._is_reported else 2):
            self.rows.append([])
        self.rows[-1].append(offset)
        self._master_life, self._is_reported = master_life, is_reported


class Witness:
    """Records events; `judge` checks them against the catalogue.

    `found` is called immediately with violations that are detected while the run goes on.
    """

    def __init__(
        self,
        cluster: Cluster,
        topics: int,
        members: int,
        checked: Counter[str],
        found: Callable[[Finding], None],
    ) -> None:
        self.checked = checked
        self._found = found
        self._members = members
        self.topics = [Topic(f"T{number}") for number in range(topics)]
        self.tail_lost = False
        """Whether the master restarted with less data than consumers or its slave may have seen."""
        self.clocks_agree = True
        """Whether no clock was ever changed. All nodes then agree on the age of a message."""
        self._cluster = cluster
        cluster.on_recovered = self.recovered
        self._by_name = {topic.name: topic for topic in self.topics}
        self._sends: list[SendSeen] = []
        self._logs: list[LogsSeen] = []
        self._reads: list[ReadsSeen] = []
        self._slave_offsets: dict[tuple[int, str, int], SlaveOffsets] = {}
        """The offsets observed at the slave, keyed by its life, the topic and the queue."""
        self._known: set[str] = set()
        self._held: set[str] = set()
        self._last_log: frozenset[str] = frozenset()
        """The messages in the master's log when it was last observed."""
        self._lost: set[str] = set()
        """The messages that were in the master's log before a crash and not after it."""
        self._leadership: tuple[str, int, int] | None = None
        """The master of a DLedger group, with its life and its term."""
        self._forked = False
        self._caught_up: bool | None = None
        self._promised: dict[str, Place] = {}
        self._expired: set[str] = set()
        """Messages expired at any master.

        A consumer that read there skipped them, though the next master may have them.
        """
        self._deleted: Mapping[str, int] = {}
        """The deletion table that the master's store last reported."""
        self._life = 0
        """Incremented when the master begins to serve and when it ends."""

    def clock_was_set(self) -> None:
        """Record that the clock of a machine was changed."""
        self.clocks_agree = False

    # -- producers and consumers

    def begins(self, topic: Topic, queue_id: int, name: str, body: bytes) -> Sending:
        """Record that a send begins."""
        self._notice_deletions()
        sent = Sent(Outcome.INDETERMINATE, "under way")
        topic.operations.append(Send(queue_id, name, body, sent))
        # A send that begins while the broker does not serve may be answered by the broker that is being
        # stopped.
        life = self._life if self._cluster.master else -1
        place = len(topic.operations) - 1
        now_s = self._cluster.now_s
        return Sending(topic.operations, place, queue_id, name, body, life, self._slaveless, now_s)

    def ended(self, topic: Topic, sending: Sending, outcome: SendOutcome) -> None:
        """Record the outcome of a send as its producer knows it."""
        self._notice_deletions()
        if self._life != sending.life:
            if self._cluster.setup.elected:  # the promise holds for any leader
                self._promise(topic, sending, outcome)
            return
        if sending.operations is topic.operations:  # otherwise either topic may have it
            answer = _sent(outcome)
            topic.operations[sending.place] = Send(sending.queue_id, sending.name, sending.body, answer)
        if isinstance(outcome, Stored):
            self.look()
            name = sending.name
            expected = self._expected(sending)
            held, known = name in self._held, name in self._known
            self._sends.append(SendSeen(name, outcome.status, True, expected, held, known))
            if sending.operations is topic.operations:
                self._promise(topic, sending, outcome)

    def _promise(self, topic: Topic, sending: Sending, outcome: SendOutcome) -> None:
        if isinstance(outcome, Stored) and outcome.status == "SEND_OK":
            place = Place(topic.name, sending.queue_id, outcome.queue_offset, sending.begun_s)
            self._promised[sending.name] = place

    def delivered(self, stored: StoredMessage) -> None:
        """Record a message that was delivered to a consumer."""
        message = _pulled(stored)
        if topic := self._by_name.get(message.topic):
            topic.delivered.append(message)

    # -- brokers

    def dies(self, node: str, how: End) -> None:
        """Record that a broker is about to end in the given way."""
        self.look()
        if node == MASTER:
            self._life += 1
            self._note(lambda _: Down(how))
            if how in (End.OS_CRASH, End.POWER_LOSS) and self._is_asynchronous:
                self._promised.clear()
                self.tail_lost = True

    def recovered(self, node: str) -> None:
        """Record that a broker has recovered its store and is about to serve."""
        if node == MASTER:
            self._notice_deletions()
            self._life += 1
            self._note(lambda _: Restart())
            self._lost.update(
                self._last_log.difference(stored.message_id for stored in self._records(MASTER))
            )
            for topic in self.topics:
                topic.operations += self._queues(topic)
        self.look()

    def look(self) -> None:
        """Record both logs, and the offsets of the group on both brokers."""
        cluster = self._cluster
        self._look_for_another_master()
        self._notice_deletions()
        self._notice_expiry()
        serving = [node for node in (MASTER, SLAVE) if cluster.is_serving(node)]
        logs = {node: {each.message_id: each for each in self._records(node)} for node in serving}
        if MASTER in logs:
            self._last_log = frozenset(logs[MASTER])
        if not self._lost.isdisjoint(logs.get(SLAVE, ())):  # perhaps it was in transit when the master ended
            self._forked = self.tail_lost = True
        self._known.update(logs.get(MASTER, ()))
        self._held.update(logs.get(SLAVE, ()))
        begin = max((cluster.brokers[node].store.log_begin for node in serving), default=0)
        seen = {
            node: tuple(name for name, each in log.items() if each.commit_offset >= begin)
            for node, log in logs.items()
        }
        if SLAVE in cluster.nodes:
            self._logs.append(LogsSeen(seen.get(MASTER), seen.get(SLAVE), cluster.follows(), self._forked))
        if self.tail_lost:
            return  # consumers go back, and commit lower offsets to any broker
        for node, topic, queue_id, offset in self._offsets():
            if topic.is_deleted:
                continue  # a group may be ahead of a recreated topic, and is sent back
            if node == SLAVE:
                life = cluster.machines[SLAVE].life
                is_reported = (f"{topic.name}@{GROUP}", queue_id) not in (self._slaves_unsent() or ())
                said = self._slave_offsets.setdefault((life, topic.name, queue_id), SlaveOffsets())
                said.saw(offset, is_reported=is_reported, master_life=self._life)
            else:
                topic.operations.append(Query(queue_id, offset))

    def _records(self, node: str) -> Sequence[StoredMessage]:
        """Return the records of a broker's log. Raises Finding if other bytes are between them."""
        try:
            return self._cluster.log(node)
        except RecordError as error:
            raise Finding(
                "RecoveredPrefix", f"the log of {node} has bytes that are not a record: {error}"
            ) from None

    def _look_for_another_master(self) -> None:
        """Record a change of a group's master or term as a restart of one broker that keeps all data."""
        cluster = self._cluster
        if not cluster.setup.elected or (master := cluster.master) is None:
            return
        leadership = master, cluster.machines[master].life, cluster.group_store(master).term
        if self._leadership != leadership:
            self._leadership = leadership
            self._life += 1
            for topic in self.topics:
                topic.operations += [Down(End.OS_CRASH), Restart(), *self._queues(topic)]

    def read(self, log: tuple[str, ...], read: tuple[str, ...]) -> None:
        """Record the messages that were read from the slave while its master was down."""
        self._reads.append(ReadsSeen(log, read))

    def calm(self, *, caught_up: bool) -> None:
        """Record whether the slave caught up after the faults had ended."""
        self._caught_up = None if self._forked else caught_up

    def promised_of(self, node: str) -> set[str]:
        """Return the messages this broker must have: answered SEND_OK, not lost in a crash, not expired."""
        return {name for name, place in self._promised.items() if not self._is_expired(node, place)}

    @property
    def forked(self) -> bool:
        """Whether the slave has data that its master lost."""
        return self._forked

    @property
    def is_apart(self) -> bool:
        """Whether the slave cannot follow: it has data its master lost, or lacks data its master deleted."""
        brokers = [self._cluster.brokers.get(node) for node in (MASTER, SLAVE)]
        stores = [broker.store for broker in brokers if broker is not None]
        return self._forked or (len(stores) == 2 and 0 < stores[1].log_end < stores[0].log_begin)

    def held(self, node: str, topic: Topic, queue_id: int) -> list[StoredMessage]:
        """Return the messages of a queue that are in the broker's log."""
        deleted = self._deleted.get(topic.name, 0)
        key = topic.name, queue_id
        return [
            stored
            for stored in self._records(node)
            if (stored.message.topic, stored.message.queue_id) == key and stored.commit_offset >= deleted
        ]

    def undelivered(self) -> set[str]:
        """Return the messages that must be delivered to the group and have not been delivered yet."""
        if self.tail_lost:  # the offsets of the group may be ahead of the queues
            return set()
        given = {message.msg_id for topic in self.topics for message in topic.delivered}
        master = self._cluster.master
        return {
            name
            for name, place in self._promised.items()
            if name not in given
            and name not in self._expired
            and not self._may_be_skipped(place)
            and not (master and self._is_expired(master, place))
        }

    # -- the verdict

    def judge(self) -> None:
        """Check everything that was recorded. Raises Finding if a catalogue invariant is violated."""
        for topic in self.topics:
            for looked in self._queues(topic):
                topic.operations.append(looked)
            for operations in (*topic.past, topic.operations):
                judge.store_holds(self._history(topic, operations), self.checked)
            given = (Pull(each.queue_id, each.queue_offset, 1, _found(each)) for each in topic.delivered)
            judge.nothing_invented(self._history(topic, [*topic.sends, *given]), self.checked)
        if SLAVE in self._cluster.nodes:
            for offsets in [row for said in self._slave_offsets.values() for row in said.rows] or [[]]:
                judge.pair_holds(self._life_of_the_pair(tuple(offsets)), self.checked)

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
        """The current value for `Sending.slaveless`."""
        cluster = self._cluster
        if SLAVE not in cluster.nodes or SLAVE in cluster.brokers or not cluster.is_serving(MASTER):
            return None
        server = cluster.brokers[MASTER].replicas.server
        return None if server is None or server.acks.slaves else cluster.machines[SLAVE].life

    def _expected(self, sending: Sending) -> frozenset[str]:
        """Return the statuses that can be correct for a send.

        Empty means that any status may be correct, because it is unknown whether a slave received the
        message.
        """
        replication = self._cluster.setup.replication
        if not self._is_synchronous or replication is None:
            return frozenset({"SEND_OK"} | (set() if self._is_asynchronous else {"FLUSH_DISK_TIMEOUT"}))
        if sending.slaveless is None or sending.slaveless != self._slaveless:
            return frozenset()
        # The 5.x rule always waits, even without a slave.
        return frozenset({"FLUSH_SLAVE_TIMEOUT" if replication.in_sync_replicas else "SLAVE_NOT_AVAILABLE"})

    def _note(self, operation: Callable[[Topic], Operation]) -> None:
        for topic in self.topics:
            topic.operations.append(operation(topic))

    def _queues(self, topic: Topic) -> Iterator[Pull]:
        """Yield the current content of the master's queues."""
        if (master := self._cluster.master) is None:
            return
        broker = self._cluster.brokers[master]
        for queue_id in range(self._cluster.setup.queues):
            first = self._first(master, topic, queue_id)
            found = broker.store.get(topic.name, queue_id, first, _LOOK_COUNT, 1 << 30)
            messages = tuple(map(_record, found.records))
            status = PullStatus.FOUND if messages else PullStatus.NO_NEW
            pulled = Pulled(status, messages, found.next_offset, found.min_offset, found.max_offset)
            yield Pull(queue_id, first, _LOOK_COUNT, pulled, peek=True)

    def _first(self, master: str, topic: Topic, queue_id: int) -> int:
        """Return the first offset of a queue: that of its first message that is still in the log."""
        store = self._cluster.brokers[master].store
        if (
            store.log_begin > 0
            and not self._cluster.setup.elected
            and (held := self.held(master, topic, queue_id))
        ):
            return held[0].queue_offset
        return store.min_offset(topic.name, queue_id)

    def _may_be_skipped(self, place: Place) -> bool:
        """Return whether the group may skip a message because its offset was ahead of a recreated topic.

        A group of brokers that elects its master does not delete queues.
        """
        return self._by_name[place.topic].is_deleted and not self._cluster.setup.elected

    def _is_expired(self, node: str, place: Place) -> bool:
        store = self._cluster.brokers[node].store
        return place.queue_offset < store.min_offset(place.topic, place.queue_id)

    # -- upkeep

    def _notice_deletions(self) -> None:
        """Detect topics that the master has deleted, and start a new history for each of them."""
        cluster = self._cluster
        if cluster.setup.elected or not cluster.is_serving(MASTER):
            return
        table = cluster.brokers[MASTER].store.deleted_topics
        if table is self._deleted:
            return
        before, self._deleted = self._deleted, table
        for name in table:
            if table[name] > before.get(name, 0):
                self._start_new_history(self._by_name[name])

    def _start_new_history(self, topic: Topic) -> None:
        topic.past.append(topic.operations)
        topic.operations = [each for each in topic.sends if each.answer.outcome is Outcome.INDETERMINATE]
        self._promised = {name: place for name, place in self._promised.items() if place.topic != topic.name}

    def _notice_expiry(self) -> None:
        """Record expired messages, and report a Finding for one that is younger than RESERVED_MS. A full disk
        is not a reason to delete young messages.
        """
        cluster = self._cluster
        master = cluster.master
        if master is None or cluster.brokers[master].store.log_begin == 0:
            return
        for name, place in self._promised.items():
            if not self._is_expired(master, place):
                continue
            self._expired.add(name)
            age_s = cluster.now_s - place.begun_s
            if self.clocks_agree and age_s * 1000 < RESERVED_MS:
                self._found(Finding("NoAckedLost", f"{name}, answered SEND_OK, expired after {age_s:g} s"))

    def _slaves_unsent(self) -> Collection[tuple[str, int]] | None:
        services = self._cluster.brokers[SLAVE].services
        return services.offsets.unsent if services is not None else None

    def _offsets(self) -> Iterator[tuple[str, Topic, int, int]]:
        if self._members > 1:  # a late commit by a queue's former owner counts
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
