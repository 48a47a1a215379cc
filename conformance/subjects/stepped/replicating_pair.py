"""The replication of a master and a slave, with their stores, as a target for behaviours of Replication.

There are no services and no waiting; each step is taken when the script says so. Data on the connection is
kept here until the script lets it arrive. The slave flushes at any time: its visible messages do not wait for
that, as in the model.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, TypeVar

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects import stranger
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.remoting.java_json import read
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck, ReplicationConfig, Role
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import DivergedError, Follow
from mqproof.impl.replication.metadata import ConsumerOffsets
from mqproof.impl.replication.stream import StreamError
from mqproof.impl.replication.waits import ReplicaWaits
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store import results
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.dispatch import Appended
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetStatus, PutStatus

T = TypeVar("T")

MASTER: Final = 0
SLAVE: Final = 1
TOPIC: Final = "T"
_GROUP: Final = "G"
_DIRECTORY: Final = "store"
_OFFSETS: Final = "config/consumerOffset.json"
LOG: Final = f"{_DIRECTORY}/commitlog/{0:020}"
_SEGMENT_BYTES: Final = 1 << 12
_BODY: Final = b"."
_NEVER_MS: Final = 10**12
_FALL_BEHIND_MAX: Final = 2
"""The limit in records, the same in all configurations of the model."""
_NOT_SENT: Final = {"flush": "waiting", "replica": "waiting"}
_MOVED: Final = frozenset(
    {GetStatus.OFFSET_OVERFLOW_BADLY, GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE}
)


async def _at_once(function: Callable[[], T]) -> T:
    return function()


class Node:
    """A disk, and the store and consumer offsets on it while its process runs."""

    def __init__(self, flush_mode: FlushMode, *, follows: bool) -> None:
        self.disk = SimulatedDisk()
        self.flush_mode = flush_mode
        self.follows = follows
        self.store: MessageStore | None = None
        self.offsets: OffsetTable
        self._durable = 0

    def start(self) -> None:
        runtime = Runtime(ManualClock(), self.disk, SimulatedNetwork(), random.Random(0), _at_once)
        config = StoreConfig(
            flush_mode=self.flush_mode,
            commit_log_segment_bytes=_SEGMENT_BYTES,
            consume_queue_segment_bytes=20 * 16,
            index_enabled=False,
        )
        store = MessageStore(_DIRECTORY, config, runtime)
        self.offsets = OffsetTable(_OFFSETS, runtime)
        try:
            store.load()
            store.begin()
            self.offsets.load()
            (self.offsets.follow if self.follows else self.offsets.lead)()
        except StoreError as error:
            raise DeviationError(f"the store does not start: {error}") from None
        self.store = store

    def end(self) -> None:
        self._durable, self.store = self.durable(), None

    def running(self) -> MessageStore:
        assert self.store is not None, "its process has ended"
        return self.store

    def records(self) -> list[tuple[str, int]]:
        """Return (message, end) of each record in the log's file, whether or not a process has it open."""
        if not self.disk.exists(LOG):
            return []
        data = self.disk.open(LOG).read(0, _SEGMENT_BYTES)
        found: list[tuple[str, int]] = []
        at = 0
        while at + 8 <= len(data):
            size, magic = record.peek(data[at : at + 8])
            if magic not in record.MAGICS:
                break
            stored = record.decode(data[at : at + size], at)
            at += size
            found.append((stored.message_id, at))
        return found

    def durable(self) -> int:
        """Return the number of durable records."""
        if self.store is None:
            return self._durable
        return sum(end <= self.store.log_flushed for _, end in self.records())

    def image(self, length: int) -> Image:
        """Return the image of a system crash after which this number of records is found."""
        most, ends = self.disk.unsynced(), [0, *(end for _, end in self.records())]
        lost = ends[-1] - ends[length]
        contents = {
            label: size - (lost if "/commitlog/" in f"/{label}" else 0)
            for label, size in most.contents.items()
        }
        return Image(most.names, contents)


@cache
def _record_bytes() -> int:
    """Return the size of a record; all records have the same size."""
    node = Node(FlushMode.ASYNC_FLUSH, follows=False)
    node.start()
    return node.running().append(Message(TOPIC, _BODY, {UNIQUE_KEY: "m1"}, 0)).size


class _RecordByRecord:
    """A master's log that returns one record per read: a transfer in the model has one record."""

    def __init__(self, node: Node) -> None:
        self._store = node.running()
        self._node = node
        self.log_segment_bytes = self._store.log_segment_bytes

    @property
    def log_begin(self) -> int:
        return self._store.log_begin

    @property
    def log_end(self) -> int:
        return self._store.log_end

    def damaged_record(self, commit_offset: int, count: int) -> int | None:
        return self._store.damaged_record(commit_offset, count)

    def log_read(self, position: int, size: int) -> bytes:
        end = next(end for _, end in self._node.records() if end > position)
        return self._store.log_read(position, min(size, end - position))


class SteppedPair:
    """Drives a master and a slave through a behaviour of Replication.

    Names of variables and actions are those of Replication.tla, where positions count records.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._loop = StepLoop()
        self._run = self._loop.run
        self._role = script.initial["role"]
        self._messages = [f"m{number + 1}" for number in range(len(script.initial["answer"]))]
        self._nodes = (
            Node(FlushMode(script.initial["flush_mode"]), follows=False),
            Node(FlushMode.ASYNC_FLUSH, follows=True),
        )
        self._gone = False
        self._answer = ["unsent"] * len(self._messages)
        self._seen: list[str] = []
        self._feed: Feed | None = None
        self._follow: Follow | None = None
        self._report = b""
        self._is_reported_early = False
        self._is_cut = True
        self._commits = bounded("Replication", script.configuration).commits
        self._transfers: dict[int, bytes] = {}
        self._acknowledged: dict[int, bytes] = {}
        self._refused = False
        for node in self._nodes:
            node.start()
        self._lead()

    def take(self, at: int) -> None:
        step = self._steps[at]
        if step.action not in _ACTIONS:
            raise ImpossibleError(f"the action {step.action} is not supported")
        _ACTIONS[step.action](self, *step.parameters)

    def refuses(self, step: Stimulus) -> bool:
        """Try a disabled action; return False if a process that it needs is not running."""
        tried = _REFUSALS.get(step.action)
        if tried is None:
            return False
        could: bool = tried(self, *step.parameters)
        return could

    def look(self) -> Variables:
        sent = {"sent": self._sent()} if self._feed is not None else {}
        committed = {"committed": [self._committed(n) for n in (MASTER, SLAVE)]} if self._commits else {}
        return {
            **sent,
            **committed,
            "log": [[message for message, _ in self._records(n)] for n in (MASTER, SLAVE)],
            "flushed": [0 if self._is_gone(n) else self._nodes[n].durable() for n in (MASTER, SLAVE)],
            "connected": [self._feed is not None, self._follow is not None],
            "acked": self._count(self._acks.highest),
            "request": [self._request(m) for m in range(len(self._messages))],
            "verified": self._follow is not None and self._follow.verified,
            "refused": self._refused,
            "answer": list(self._answer),
            "seen": list(self._seen),
        }

    def close(self) -> None:
        self._loop.close()

    def node(self, n: int) -> Node:
        return self._nodes[n]

    # A send

    def _append_record(self, m: int) -> None:
        if self._feed is not None and self._feed.sent is None:
            self._receive_report()
            self._is_reported_early = True
        store = self._nodes[MASTER].running()
        message = Message(TOPIC, _BODY, {UNIQUE_KEY: self._messages[m]}, 0)
        self._appended[m] = store.append(message)
        if self._role == Role.SYNC_MASTER:
            self._replica[m] = self._now(partial(self._waits.wait, self._appended[m].end))
        self._answer[m] = "waiting"

    def _flush_log(self, n: int) -> None:
        self._run(self._nodes[n].running().flush_log())

    def _flush_timeout(self, m: int) -> None:
        status = self._settled(m)
        if status is not PutStatus.FLUSH_DISK_TIMEOUT:
            raise DeviationError(f"the flush of {self._messages[m]} is {status}, and timed out")
        self._late.add(m)

    def _slave_timeout(self, m: int) -> None:
        self._now(partial(self._waits._expire, self._replica[m]))

    def _answer_send(self, m: int) -> None:
        flush = PutStatus.FLUSH_DISK_TIMEOUT if m in self._late else self._settled(m)
        replica = self._replica.get(m)
        if replica is not None and not replica.done():
            raise DeviationError(f"{self._messages[m]} still waits for a slave")
        status = results.put_status(flush, replica.result() if replica else PutStatus.PUT_OK)
        self._answer[m] = "SEND_OK" if status is PutStatus.PUT_OK else str(status)

    def _settled(self, m: int) -> PutStatus:
        """Return the flush result of the send; simulated time passes as necessary."""
        return self._run(self._nodes[MASTER].running().settle(self._appended[m], True))

    # A connection

    def _connect(self) -> None:
        slave, master = self._nodes[SLAVE].running(), self._nodes[MASTER]
        self._hang_up(MASTER)  # the master's old connection was already dead
        self._feed = Feed(_RecordByRecord(master), self._acks, LogCheck.COMPARED)
        self._follow = Follow(slave, _SEGMENT_BYTES, LogCheck.COMPARED)
        self._report, self._transfers, self._acknowledged = self._follow.report(), {}, {}
        self._is_reported_early = self._is_cut = False

    def _accept_report(self, _frame: Any) -> None:
        if not self._is_reported_early:
            self._receive_report()
        self._is_reported_early = False

    def _receive_report(self) -> None:
        """Deliver the slave's first report to the master.

        In the model a slave counts from its connection on; here it counts from its first report on. If it
        must count, the report is delivered early, and shown when the script says so.
        """
        assert self._feed is not None
        try:
            self._feed.received(self._report)
        except StreamError:
            raise ImpossibleError("the first record of a log is requested from its second byte on") from None

    def _sent(self) -> int:
        assert self._feed is not None
        if self._feed.sent is None or self._is_reported_early:
            return -1
        return self._count(self._feed.sent)

    def _refuse_report(self, _frame: Any) -> None:
        assert self._feed is not None
        try:
            self._feed.received(self._report)
        except StreamError:
            self._hang_up(MASTER)
        else:
            raise DeviationError("a report beyond the master's end was accepted")

    def _transfer_record(self) -> None:
        assert self._feed is not None
        assert self._feed.sent is not None
        position = self._count(self._feed.sent)
        self._transfers[position] = self._feed.next_frame()

    def _receive_transfer(self, frame: Mapping[str, Any]) -> None:
        assert self._follow is not None
        try:
            answer = self._follow.received(self._transfers[frame["position"]])
        except (DivergedError, StreamError) as error:
            raise DeviationError(f"a transfer was refused: {error}") from None
        self._acknowledged[len(self._records(SLAVE))] = answer

    def _refuse_transfer(self, frame: Mapping[str, Any]) -> None:
        assert self._follow is not None
        try:
            self._follow.received(self._transfers[frame["position"]])
        except DivergedError:
            self._hang_up(SLAVE)
            self._refused = True
        else:
            raise DeviationError("a different transfer was accepted")

    def _receive_ack(self, frame: Mapping[str, Any]) -> None:
        assert self._feed is not None
        self._feed.received(self._acknowledged[frame["position"]])
        self._now(self._waits.acked)

    def _cut(self) -> None:
        """Cut the connection without notifying either end: data in transit is lost, and no more is sent."""
        self._is_cut = True

    def _stranger_acknowledges(self) -> None:
        self._run(stranger.acknowledge(_RecordByRecord(self._nodes[MASTER]), self._acks))
        self._now(self._waits.acked)

    def _hang_up(self, n: int) -> None:
        self._is_cut = True
        if n == SLAVE:
            self._follow = None
        elif self._feed is not None:
            self._feed.left()
            self._feed = None

    # The consumer

    def _deliver(self, n: int) -> None:
        message = self._next(n)
        if message is None:
            raise DeviationError("there is nothing to read")
        self._seen.append(message)

    def _correct_offset(self) -> None:
        found = self._nodes[MASTER].running().get(TOPIC, 0, len(self._seen), 1)
        if found.status not in _MOVED:
            raise DeviationError(f"a pull beyond the end was answered {found.status}")
        del self._seen[found.next_offset :]
        if self._commits:
            for n in (MASTER, SLAVE):
                self._commit_offset(n)

    def _commit_offset(self, n: int) -> None:
        """Commit and write the offset immediately: in the model a crash does not lose offsets."""
        if self._nodes[n].store is None:
            raise ImpossibleError("a stopped broker receives no offset")
        self._nodes[n].offsets.commit(_GROUP, TOPIC, 0, len(self._seen))
        self._run(self._nodes[n].offsets.persist())

    def _sync_offsets(self) -> None:
        answer = read(ConsumerOffsets, self._nodes[MASTER].offsets.answer())
        self._nodes[SLAVE].offsets.merge(answer.offset_table)
        self._run(self._nodes[SLAVE].offsets.persist())

    def _committed(self, n: int) -> int:
        """Return the committed offset in memory, or in the file while the broker is stopped."""
        return 0 if self._is_gone(n) else self._nodes[n].offsets.query(_GROUP, TOPIC, 0) or 0

    def _next(self, n: int) -> str | None:
        self._nodes[n].running().dispatch()
        found = self._nodes[n].running().get(TOPIC, 0, len(self._seen), 1)
        return record.decode(found.records[0]).message_id if found.status is GetStatus.FOUND else None

    # Stops and starts of a broker

    def _process_crash(self, n: int) -> None:
        self._die(n)
        self._nodes[n].disk.crash_process()

    def _system_crash(self, n: int, length: int) -> None:
        image = self._nodes[n].image(length)
        self._die(n)
        self._nodes[n].disk.crash_os(image)

    def _machine_loss(self) -> None:
        self._die(MASTER)
        self._gone = True

    def _start(self, n: int) -> None:
        self._nodes[n].start()

    def _die(self, n: int) -> None:
        if self._nodes[n].store is not None:
            self._nodes[n].end()
        self._hang_up(n)
        if n == SLAVE:
            self._refused = False
        else:
            self._answer = ["unknown" if answer == "waiting" else answer for answer in self._answer]
            self._lead()

    def _lead(self) -> None:
        """Reset the master's memory."""
        self._acks = Acks()
        self._appended: dict[int, Appended] = {}
        self._replica: dict[int, asyncio.Future[PutStatus]] = {}
        self._late: set[int] = set()
        config = ReplicationConfig(
            role=Role(self._role),
            fall_behind_bytes_max=_FALL_BEHIND_MAX * _record_bytes(),
            slave_timeout_ms=_NEVER_MS,
        )
        self._waits = ReplicaWaits(self._acks, config)

    # Disabled actions; each function returns whether the action could be tried

    def _refuses_flush(self, n: int) -> bool:
        """Flush when everything is already flushed."""
        if self._nodes[n].store is None:
            return False
        self._flush_log(n)
        return True

    def _refuses_delivery(self, n: int) -> bool:
        if self._nodes[n].store is None:
            return False
        return _refused(self._next(n) is None, "Deliver")

    def _refuses_correction(self) -> bool:
        store = self._nodes[MASTER].store
        if store is None:
            return False
        store.dispatch()
        found = store.get(TOPIC, 0, len(self._seen), 1)
        return _refused(found.status not in _MOVED or found.next_offset == len(self._seen), "CorrectOffset")

    def _refuses_commit(self, n: int) -> bool:
        """Commit the offset that is already committed."""
        if self._nodes[n].store is None or len(self._seen) != self._committed(n):
            return False
        self._commit_offset(n)
        return True

    def _refuses_offsets(self) -> bool:
        """Synchronize offsets with a slave that is ahead, which must change nothing."""
        if any(node.store is None for node in self._nodes):
            return False
        self._sync_offsets()
        return True

    def _refuses_flush_timeout(self, m: int) -> bool:
        """Check that the flush cannot time out, because the record is durable or need not be."""
        if self._answer[m] != "waiting" or m in self._late:
            return False
        return _refused(self._settled(m) is PutStatus.PUT_OK, "FlushTimeout")

    def _refuses_slave_timeout(self, m: int) -> bool:
        """Expire the wait for a slave that has acknowledged or timed out, which must change nothing."""
        replica = self._replica.get(m)
        if self._answer[m] != "waiting" or replica is None:
            return False
        result = replica.done() and replica.result()
        self._slave_timeout(m)
        return _refused(replica.result() is result, "SlaveTimeout")

    def _refuses_answer(self, m: int) -> bool:
        """Check that the send still waits for a flush or a slave."""
        if self._answer[m] != "waiting":
            return False
        replica = self._replica.get(m)
        waits = replica is not None and not replica.done()
        return _refused(waits or self._settled(m) is not PutStatus.PUT_OK, "AnswerSend")

    def _refuses_transfer(self) -> bool:
        """Check that there is nothing more to transfer."""
        if self._feed is None or self._feed.sent is None or self._is_cut or self._is_reported_early:
            return False
        return _refused(self._feed.next_frame() == b"", "TransferRecord")

    # Helper methods

    def _request(self, m: int) -> dict[str, str]:
        """Return the waits that timed out, as long as the producer waits."""
        if self._answer[m] != "waiting":
            return dict(_NOT_SENT)
        replica = self._replica.get(m)
        given_up = replica is not None and replica.done() and replica.result() is not PutStatus.PUT_OK
        return {
            "flush": "FLUSH_DISK_TIMEOUT" if m in self._late else "waiting",
            "replica": str(replica.result()) if replica is not None and given_up else "waiting",
        }

    def _is_gone(self, n: int) -> bool:
        return n == MASTER and self._gone

    def _records(self, n: int) -> Sequence[tuple[str, int]]:
        return () if self._is_gone(n) else self._nodes[n].records()

    def _count(self, position: int) -> int:
        """Return how many of the master's records end at or before a position."""
        return sum(end <= position for _, end in self._records(MASTER))

    def _now(self, call: Callable[[], T]) -> T:
        """Call a function that needs a running event loop."""

        async def called() -> T:
            return call()

        return self._run(called())


_ACTIONS: Final[Mapping[str, Any]] = {
    "AppendRecord": SteppedPair._append_record,
    "FlushLog": SteppedPair._flush_log,
    "FlushTimeout": SteppedPair._flush_timeout,
    "SlaveTimeout": SteppedPair._slave_timeout,
    "AnswerSend": SteppedPair._answer_send,
    "Connect": SteppedPair._connect,
    "AcceptReport": SteppedPair._accept_report,
    "RefuseReport": SteppedPair._refuse_report,
    "TransferRecord": SteppedPair._transfer_record,
    "ReceiveTransfer": SteppedPair._receive_transfer,
    "RefuseTransfer": SteppedPair._refuse_transfer,
    "ReceiveAck": SteppedPair._receive_ack,
    "Cut": SteppedPair._cut,
    "StrangerAcknowledges": SteppedPair._stranger_acknowledges,
    "Housekeeping": SteppedPair._hang_up,
    "Deliver": SteppedPair._deliver,
    "CorrectOffset": SteppedPair._correct_offset,
    "CommitOffset": SteppedPair._commit_offset,
    "SyncOffsets": SteppedPair._sync_offsets,
    "ProcessCrash": SteppedPair._process_crash,
    "SystemCrash": SteppedPair._system_crash,
    "MachineLoss": SteppedPair._machine_loss,
    "Start": SteppedPair._start,
}

_REFUSALS: Final[Mapping[str, Any]] = {
    "FlushLog": SteppedPair._refuses_flush,
    "Deliver": SteppedPair._refuses_delivery,
    "CorrectOffset": SteppedPair._refuses_correction,
    "CommitOffset": SteppedPair._refuses_commit,
    "SyncOffsets": SteppedPair._refuses_offsets,
    "FlushTimeout": SteppedPair._refuses_flush_timeout,
    "SlaveTimeout": SteppedPair._refuses_slave_timeout,
    "AnswerSend": SteppedPair._refuses_answer,
    "TransferRecord": SteppedPair._refuses_transfer,
}


def _refused(is_refused: bool, action: str) -> bool:
    if not is_refused:
        raise DeviationError(f"{action} is disabled, but was executed")
    return True
