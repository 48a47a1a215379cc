"""A store on a simulated disk, with the truth about it: the appended records, and those that must survive.

It runs the store step by step, without an event loop. It remembers every record as it was in the log. After a
crash it therefore knows which records must be there, which may be, and which must not.
"""

import random
from dataclasses import dataclass
from typing import Final, TypeVar

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import Image, SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import Recovery

T = TypeVar("T")

DIRECTORY: Final = "store"
QUEUES: Final = (("A", 0), ("A", 1), ("B", 0))
LOG_SEGMENT_BYTES: Final = 512  # four or five records
_QUEUE_SEGMENT_BYTES: Final = 60  # three entries


@dataclass(frozen=True, slots=True)
class Appended:
    """One record as it was appended."""

    queue: tuple[str, int]
    queue_offset: int
    commit_offset: int
    data: bytes
    body: bytes
    key: str
    """The record's key in the index."""

    @property
    def end(self) -> int:
        return self.commit_offset + len(self.data)


class SimulatedStore:
    """One store directory and the successive stores that open it."""

    def __init__(self, flush_mode: FlushMode) -> None:
        self.config = StoreConfig(
            flush_mode=flush_mode,
            commit_log_segment_bytes=LOG_SEGMENT_BYTES,
            consume_queue_segment_bytes=_QUEUE_SEGMENT_BYTES,
            index_slots=3,
            index_entries=8,
        )
        self.disk = SimulatedDisk()
        self.clock = ManualClock()
        self.truth: list[Appended] = []
        """The appended records, without those lost in a crash that was allowed to lose them."""
        self.durable_end = 0
        """The commit offset up to which the store reported the log as durable, and so acknowledges it."""
        self.checkpoints: list[bytes] = []
        """Every content that the checkpoint file has had."""
        self._number = 0
        self.recovery: Recovery | None = None
        """The result of the last recovery."""
        self.store = self._make()
        self.store.load()
        self.store.begin()

    # -- steps of a running store

    def append(self, queue: tuple[str, int], body_bytes: int) -> None:
        self._number += 1
        body = f"m{self._number}".encode().ljust(body_bytes, b".")
        key = f"k{self._number}"
        message = Message(queue[0], body, {"UNIQ_KEY": key}, queue[1])
        done = self.store.append(message)
        data = self.store.record_at(done.commit_offset) or b""
        assert len(data) == done.size, "a record can be read right after it was appended"
        self.truth.append(Appended(queue, done.queue_offset, done.commit_offset, data, body, key))

    def flush_log(self) -> None:
        result_of(self.store.flush_log())
        self.durable_end = self.store.log_flushed

    def flush_log_fails(self) -> None:
        """Flush the log while the next fsync fails: none of that data may count as flushed."""
        failed: list[Step] = []

        def fail(step: Step) -> None:
            if step.kind == "sync" and not failed:
                failed.append(step)
                raise OSError(f"{step.path}: fsync failed on purpose")

        self.disk.on_step = fail
        try:
            self.flush_log()
        finally:
            self.disk.on_step = None

    def flush_queues(self) -> None:
        result_of(self.store.flush_queues())

    def write_checkpoint(self) -> None:
        result_of(self.store.write_checkpoint())
        content = self.read("checkpoint")
        if content is not None and content not in self.checkpoints:
            self.checkpoints.append(content)

    def stop(self) -> None:
        """Stop the store cleanly."""
        result_of(self.store.stop())
        if not self.store.failure:
            self.durable_end = self.store.log_end

    # -- what happens to it

    def crash_process(self) -> None:
        self.disk.crash_process()

    def crash_machine(self, image: Image) -> None:
        self.disk.crash_os(image)

    def load(self, crash_at_step: int | None = None) -> Recovery | None:
        """Recover in a new process. Return None if the process ended during recovery, at that step.

        Raises:
            StoreError: the store refused the files.
        """
        self.store = self._make()
        steps = 0

        def die(_step: Step) -> None:
            nonlocal steps
            steps += 1
            if steps == crash_at_step:
                raise SimulatedCrashError

        self.disk.on_step = die
        try:
            self.recovery = self.store.load()
            return self.recovery
        except SimulatedCrashError:
            return None
        finally:
            self.disk.on_step = None

    def copy(self) -> "SimulatedStore":
        """Return an independent store directory in the same state, whose process was killed."""
        made = SimulatedStore(self.config.flush_mode)
        made.disk = self.disk.copy()
        made.disk.crash_process()
        made.clock.advance_ms(1_000_000)
        made.truth, made.durable_end, made._number = list(self.truth), self.durable_end, self._number
        return made

    def settle(self, recovery: Recovery) -> None:
        """Take the recovered store as the truth from now on: records lost in the crash must not reappear."""
        self.truth = [each for each in self.truth if each.end <= recovery.recovered_end]
        self.durable_end = self.store.log_flushed
        self.store.begin()

    # -- files

    def files(self) -> list[str]:
        """Return the paths of all files, sorted."""
        return self.disk.files(DIRECTORY)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file in the directory, or None if it does not exist."""
        path = f"{DIRECTORY}/{name}"
        if not self.disk.exists(path):
            return None
        file = self.disk.open(path)
        return file.read(0, file.size())

    def write(self, path: str, data: bytes) -> None:
        """Write a file durably, replacing an existing one."""
        if self.disk.exists(path):
            self.disk.remove(path)
        file = self.disk.create(path, len(data))
        file.write(0, data)
        file.sync()
        file.close()
        self.disk.sync_directory(path.rpartition("/")[0])

    def remove(self, path: str) -> None:
        self.disk.remove(path)
        self.disk.sync_directory(path.rpartition("/")[0])

    def _make(self) -> MessageStore:
        runtime = Runtime(self.clock, self.disk, SimulatedNetwork(), random.Random(0), inline)
        return MessageStore(DIRECTORY, self.config, runtime)
