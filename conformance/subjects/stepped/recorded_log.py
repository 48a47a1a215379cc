"""A broker's log as the list of records that a model has, on a simulated disk.

A target appends through request processors, and flushes, reads and loses the log when the script says so. A
crash keeps a prefix of the records: all that were synced, and some that were not.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.impl.broker.processors import send
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import SendRequest
from mqproof.impl.remoting.message import UNIQUE_KEY, StoredMessage, encode_properties
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.layout import Layout
from mqproof.impl.store.message_store import MessageStore

TOPIC: Final = "T"
GROUP: Final = "G"
BROKER: Final = "broker-a"
ADDRESS: Final = Address("127.0.0.1", 10911)
_DIRECTORY: Final = "store"
_OFFSETS: Final = "config/consumerOffset.json"


class LimitedStore(MessageStore):
    """A store whose records become readable up to a commit offset, if there is one."""

    readable_end: int | None = None

    def confirm_offset(self) -> int:
        end = super().confirm_offset()
        return end if self.readable_end is None else min(end, self.readable_end)


class ClientConnection:
    """The connection of a client that reads what it receives. It keeps the requests of the broker."""

    remote = Address("127.0.0.1", 1)
    takes = True
    is_open = True

    def __init__(self) -> None:
        self.received: list[Command] = []

    def send_oneway(self, command: Command) -> None:
        self.received.append(command)


class RecordedLog:
    """A disk, and the store and the consumer offsets on it while the broker's process runs."""

    def __init__(self, config: StoreConfig) -> None:
        self.config = config
        self.disk = SimulatedDisk()
        self.clock = ManualClock()
        self.runtime = Runtime(self.clock, self.disk, SimulatedNetwork(), random.Random(0), inline)
        self.offsets: OffsetTable
        self._store: LimitedStore | None = None
        self._deleted: list[StoredMessage] = []

    @property
    def store(self) -> LimitedStore:
        assert self._store is not None, "its process has ended"
        return self._store

    @property
    def is_up(self) -> bool:
        return self._store is not None

    def start(self) -> None:
        store = LimitedStore(_DIRECTORY, self.config, self.runtime)
        self.offsets = OffsetTable(_OFFSETS, self.runtime)
        try:
            store.load()
            store.begin()
            self.offsets.load()
            self.offsets.lead()
        except StoreError as error:
            raise DeviationError(f"the store does not start: {error}") from None
        self._store = store

    def records(self) -> list[StoredMessage]:
        """Return the records of the log in their order, with those that were deleted from its begin."""
        return [*self._deleted, *self._existing()]

    @property
    def deleted_count(self) -> int:
        return len(self._deleted)

    async def delete_first(self) -> bool:
        """Let the store delete its first segment, which has one record; return whether it did."""
        first = self._existing()[0]
        await self.store.clean(manually=True)
        if self.store.log_begin <= first.commit_offset:
            return False
        self._deleted.append(first)
        return True

    def durable_count(self) -> int:
        """Return the number of records that no crash removes, as the disk has them."""
        unsynced, found = self._unsynced_log(), self._existing()
        for path, count in unsynced.items():
            start = int(path.rpartition("/")[2])
            inside = [one for one in found if start <= one.commit_offset < start + self._segment_bytes]
            count -= self._filler_bytes(path, inside)
            for one in reversed(inside):
                if count <= 0:
                    break
                count -= one.size
                found = [each for each in found if each.commit_offset < one.commit_offset]
        return len(self._deleted) + len(found)

    async def secure(self) -> None:
        """Make all records durable. The system writes its cache where no process flushes."""
        if self._store is not None:
            await self._store.flush_log()
        else:
            for name in self.disk.names(self._log):
                self.disk.open(f"{self._log}/{name}").sync()
            self.disk.sync_directory(self._log)
        if self.durable_count() < len(self.records()):
            raise DeviationError("a record is not durable after a flush")

    def crash(self, length: int) -> None:
        """End the process. If records are lost, the operating system crashes, too."""
        records = self.records()
        if length < self.durable_count():
            raise ImpossibleError(f"{self.durable_count()} records are synced, {length} shall be left")
        if self._store is not None:
            self._store.kill()
        self._store = None
        if length == len(records):
            self.disk.crash_process()
            return
        self.disk.crash_os(self._image(records[length:]))
        left = len(self.records())
        if left != length:
            raise DeviationError(f"{left} records are left, {length} expected")

    def _image(self, lost: Sequence[StoredMessage]) -> Image:
        most = self.disk.unsynced()
        contents = dict(most.contents)
        for path in self._unsynced_log():
            start = int(path.rpartition("/")[2])
            gone = [one for one in lost if start <= one.commit_offset < start + self._segment_bytes]
            if not gone:
                continue
            label = self._label(path)
            if gone[0].commit_offset == start:
                contents[label] = min(1, contents[label])  # the size of the file
            else:
                contents[label] -= sum(one.size for one in gone) + self._filler_bytes(path, gone)
        return Image(most.names, contents)

    def _unsynced_log(self) -> dict[str, int]:
        """Return the unsynced bytes of each segment that has any."""
        contents, found = self.disk.unsynced().contents, {}
        for name in self.disk.names(self._log):
            path = f"{self._log}/{name}"
            if count := contents.get(self._label(path), 0):
                found[path] = count
        return found

    def _label(self, path: str) -> str:
        """Return the label by which a crash image names the latest file of this path."""
        numbers = (label.rpartition("#") for label in self.disk.unsynced().contents)
        found = [int(number) for name, _, number in numbers if name == path]
        return f"{path}#{max(found, default=-1)}"

    def _filler_bytes(self, path: str, inside: Sequence[StoredMessage]) -> int:
        if not inside:
            return 0
        end = inside[-1].commit_offset + inside[-1].size - int(path.rpartition("/")[2])
        _, magic = record.peek(self.disk.open(path).read(end, 8))
        return record.FILLER_BYTES if magic == record.MAGIC_FILLER else 0

    def _existing(self) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        for name in self.disk.names(self._log):
            start, at = int(name), 0
            data = self.disk.open(f"{self._log}/{name}").read(0, self._segment_bytes)
            while at + 8 <= len(data):
                size, magic = record.peek(data[at : at + 8])
                if magic not in record.MAGICS:
                    break
                found.append(record.decode(data[at : at + size], start + at))
                at += size
        after = self._deleted[-1].commit_offset if self._deleted else -1
        return [one for one in found if one.commit_offset > after]

    @property
    def _log(self) -> str:
        return Layout(_DIRECTORY).commit_log

    @property
    def _segment_bytes(self) -> int:
        return self.config.commit_log_segment_bytes


def send_request(key: str, properties: Mapping[str, str], body: bytes = b".") -> Command:
    """Return a producer's request to send the message with this key."""
    header = SendRequest(
        producer_group="P",
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=0,
        born_timestamp=0,
        flag=0,
        properties=encode_properties({UNIQUE_KEY: key, **properties}),
    )
    return new_request(RequestCode.SEND_MESSAGE_V2, headers.write_send_v2(header), body)


async def sent(services: Any, request: Command) -> Command:
    """Return the broker's answer to a send."""
    reply = send.send_message(services_of(services), request, channel())
    answer = reply if reply is None or isinstance(reply, Command) else await reply
    assert answer is not None, "every send is answered"
    return answer


def services_of(services: Any) -> Services:
    """Return the part of a broker's services that a target has."""
    return services  # type: ignore[no-any-return]


def channel() -> Channel:
    return ClientConnection()  # type: ignore[return-value]
