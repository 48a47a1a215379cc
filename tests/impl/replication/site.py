"""The stores of a master and a slave on separate disks, and both ends of a connection without a network."""

import random

from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import Follow
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.message_store import MessageStore

CONFIG = StoreConfig(
    commit_log_segment_bytes=4096, consume_queue_segment_bytes=2000, index_slots=10, index_entries=100
)
RECORD_BYTES_MAX = 2000


def message(number: int, *, size: int = 20, topic: str = "T", queue_id: int = 0) -> Message:
    return Message(
        topic=topic,
        body=f"{number}".encode().ljust(size, b"."),
        queue_id=queue_id,
        born_host=Address("127.0.0.1", 1),
        store_host=Address("127.0.0.1", 10911),
    )


def store(disk: SimulatedDisk | None = None, config: StoreConfig = CONFIG) -> MessageStore:
    """Return a loaded store without background tasks; the test itself dispatches and flushes."""
    runtime = Runtime(ManualClock(), disk or SimulatedDisk(), SimulatedNetwork(), random.Random(0), inline)
    made = MessageStore("/store", config, runtime)
    made.load()
    made.begin()
    return made


def filled(count: int, *, size: int = 20, disk: SimulatedDisk | None = None) -> MessageStore:
    made = store(disk)
    for number in range(count):
        made.append(message(number, size=size))
    made.dispatch()
    return made


class Link:
    """A connection between two stores; `step` passes the bytes."""

    def __init__(
        self, master: MessageStore, slave: MessageStore, check: LogCheck = LogCheck.COMPARED
    ) -> None:
        self.acks = Acks()
        self.feed = Feed(master, self.acks, check)
        self.follow = Follow(slave, RECORD_BYTES_MAX, check)
        self.feed.received(self.follow.report())

    def step(self) -> bool:
        """Pass one frame and its answer. Returns False when the master has nothing to send."""
        frame = self.feed.next_frame()
        self.feed.received(self.follow.received(frame))
        return bool(frame)

    def run(self) -> None:
        while self.step():
            pass


def take_all(follow: Follow, data: bytes) -> None:
    """Pass the bytes of a master to a slave, with all their transfers."""
    while follow.received(data):
        data = b""


def log_of(made: MessageStore) -> bytes:
    """Return all bytes of a log, across its segments."""
    found = bytearray()
    while chunk := made.log_read(made.log_begin + len(found), 1 << 20):
        found += chunk
    return bytes(found)
