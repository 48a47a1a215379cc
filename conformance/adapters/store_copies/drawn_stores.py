"""A store with drawn content, which is stopped, damaged, and started again.

The examples of a suite have few topics, and their logs begin at 0. This store has several topics and queues,
delayed, rolled-back and half messages, a topic that was deleted and created again, several files of each
kind, and expired segments.
"""

import asyncio
import random
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.store_copies.altered_records import ALTERATIONS, AlteredRecords
from mqproof.conformance.adapters.store_copies.expired_segments import ExpiredSegments
from mqproof.conformance.adapters.store_copies.recovered_copies import RecoveredCopies
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.message_store import MessageStore

_STORE: Final = "store"
_DELAYED: Final = ("SCHEDULE_TOPIC_XXXX", 4)
_QUEUES: Final = (("A", 0), ("A", 1), ("B", 0), _DELAYED, ("RMQ_SYS_TRANS_HALF_TOPIC", 0))
_DELETED: Final = ("C", 0)
_KINDS: Final = (0, 0, 0, 0, 4, 8, 12)
"""System flags; records with 4 and 12 take no queue offset. A queue does not begin with one."""
_MESSAGES: Final = 12
_DAMAGES_EACH: Final = 2
_ALTERATIONS_EACH: Final = 4


class DrawnStore:
    """A store on a disk of its own; what is wrong goes to the watch."""

    def __init__(self, disk: SimulatedDisk, runtime: Runtime, watch: Watch, number: int) -> None:
        """`number` determines the content, and what happens to it."""
        self._disk = disk
        self._runtime = runtime
        self._watch = watch
        self._number = number
        self._chance = chance = random.Random(number)
        self._config = StoreConfig(
            flush_mode=chance.choice(tuple(FlushMode)),
            commit_log_segment_bytes=chance.choice((1024, 1500)),
            consume_queue_segment_bytes=20 * chance.choice((2, 3, 16)),
            index_slots=4,
            index_entries=chance.choice((4, 16)),
            file_reserved_ms=1,
            clean_forcibly=False,
            checkpoint_interval_ms=chance.choice((1000, 60_000)),
            scrub_enabled=False,
        )
        self._sent = 0

    async def examine(self) -> None:
        """Fill the store in two lives, and start stores on copies of its disk."""
        try:
            await self._examine()
        except (
            StoreError,
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            AssertionError,
        ) as error:
            self._watch.found("a drawn store", [Wrong(chapters.STORE_DIRECTORY, f"it raises {error!r}")])

    async def _examine(self) -> None:
        chance = self._chance
        store = await self._start()
        await self._fill(store, _DELETED)
        store.delete_topic(_DELETED[0])
        if chance.random() < 0.5:
            await store.stop()
        else:
            store.kill()
        self._disk.crash_process()
        store = await self._start()
        await self._fill(store, chance.choice((_QUEUES[0], _DELETED)))
        copies = RecoveredCopies(self._disk, _STORE, self._config, self._runtime, self._watch)
        for each in range(_DAMAGES_EACH):
            await copies.examine(self._number * _DAMAGES_EACH + each)
        names = list(ALTERATIONS)
        if self._config.flush_mode is FlushMode.SYNC_FLUSH:
            killed = AlteredRecords(self._killed(), _STORE, copies, self._watch, is_counted=False)
            await killed.examine(names[self._number % len(names)], chance)
        await store.stop()
        self._disk.crash_process()
        altered = AlteredRecords(self._disk, _STORE, copies, self._watch)
        for each in range(_ALTERATIONS_EACH):
            await altered.examine(names[(self._number * _ALTERATIONS_EACH + each) % len(names)], chance)
        await ExpiredSegments(self._disk, _STORE, copies, self._watch).examine(chance)

    def _killed(self) -> SimulatedDisk:
        """Return the disk after a kill: no checkpoint counts the entries of the last records."""
        killed = self._disk.copy()
        killed.crash_process()
        return killed

    async def _start(self) -> MessageStore:
        store = MessageStore(_STORE, self._config, replace(self._runtime, disk=self._disk.process()))
        store.load()
        await store.start()
        return store

    async def _fill(self, store: MessageStore, also: tuple[str, int]) -> None:
        chance = self._chance
        for _ in range(_MESSAGES):
            topic, queue_id = chance.choice((*_QUEUES, also))
            self._sent += 1
            properties = {"UNIQ_KEY": f"m{self._sent}", "KEYS": chance.choice(("k", "k l"))}
            if tag := chance.choice(("", "A", "B")):
                properties["TAGS"] = tag
            if topic == _DELAYED[0]:
                properties["DELAY"] = str(queue_id + 1)
            is_used = topic in "AB" and store.next_queue_offset(topic, queue_id) > 0
            kind = chance.choice(_KINDS) if is_used else 0
            body = chance.choice((b".", b"body" * 20, b"large" * 60))
            await store.put(Message(topic, body, properties, queue_id=queue_id, sys_flag=kind))
            await asyncio.sleep(chance.choice((0, 0, 0.002, 0.3, 2)))
