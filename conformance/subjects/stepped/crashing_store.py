"""Our store as a target for behaviours of Flush, without services or waiting, one step at a time.

Disk, clock and fsync are simulated. A flush that ends after the log has grown started before: the script is
known in advance, so the flush starts in time and its end is held. Recovery is one call here; it runs at the
last of its steps.
"""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.dispatch import Appended
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.layout import Layout
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetStatus, PutStatus

T = TypeVar("T")

_TOPIC: Final = "T"
_GROUP: Final = "G"
_DIRECTORY: Final = "store"
_OFFSETS: Final = f"{_DIRECTORY}/config/consumerOffset.json"
_ENTRY_BYTES: Final = 20
_ENDS: Final = frozenset({"ProcessCrash", "OsCrash", "PowerLoss", "Shutdown"})
_STATUS: Final = {"AnswerOk": PutStatus.PUT_OK, "AnswerTimeout": PutStatus.FLUSH_DISK_TIMEOUT}
_MOVED: Final = frozenset(
    {GetStatus.OFFSET_OVERFLOW_BADLY, GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE}
)


class _Fsync:
    """Runs blocking functions; if `held` is set, the return of the next one is delayed."""

    def __init__(self) -> None:
        self.held = False

    async def __call__(self, function: Callable[[], T]) -> T:
        result = function()
        if self.held:
            self.held = False
            self.returns = asyncio.get_running_loop().create_future()
            await self.returns
        return result


class _Store(MessageStore):
    """A store whose dispatch is a separate step, one record at a time."""

    def _flushed(self) -> None:
        pass

    def dispatch_one(self, end: int) -> int:
        return self._dispatcher.run(min(end, self.confirm_offset()))


class SteppedStore:
    def open(self, script: Script) -> None:
        self._steps = script.steps
        self.disk = SimulatedDisk()
        self._clock = ManualClock()
        self._loop = StepLoop()
        self._run = self._loop.run
        self._mode = FlushMode(script.initial["mode"])
        self._queues = len(script.initial["queue"])
        self._names = [f"q{number}" for number in range(self._queues)]
        self._answers = dict.fromkeys(_messages(script), "unsent")
        self._order = list(self._answers)
        self._seen: list[list[str]] = [[] for _ in range(self._queues)]
        self._appended: list[Appended] = []
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._up = False
        self._start()

    def take(self, at: int) -> None:
        step = self._steps[at]
        getattr(self, f"_{_snake(step.action)}")(*step.parameters)
        if step.action in ("AppendRecord", "Start"):
            self._begin_early("FlushLog", "AppendRecord", len(self._appended), at)
        if step.action == "Dispatch":
            self._begin_early("FlushQueues", "Dispatch", self._count(self._store.dispatched_end), at)

    def look(self) -> Variables:
        files = {
            "abort": self.disk.exists(Layout(_DIRECTORY).abort),
            "persisted": self._persisted(),
            "seen": [list(seen) for seen in self._seen],
        }
        if not self._up:
            return files
        store = self._store
        return {
            **files,
            "phase": "running",
            "answer": [self._answers[message] for message in self._order],
            "log": self._log(),
            "flushed": self._count(store.log_flushed),
            "dispatched": self._count(store.dispatched_end),
            "queue": [self._entries(number) for number in range(self._queues)],
            "next_offset": [store.next_queue_offset(_TOPIC, number) for number in range(self._queues)],
            "committed": [self._committed(number) for number in range(self._queues)],
        }

    def close(self) -> None:
        self._cancel()
        self._loop.close()

    # The running broker.

    def _append_record(self, message: str, queue: str) -> None:
        number = self._names.index(queue)
        self._appended.append(self._store.append(Message(_TOPIC, b".", {UNIQUE_KEY: message}, number)))
        self._answers[message] = "waiting"

    def _flush_log(self, length: int) -> None:
        self._end_flush("FlushLog", self._store.flush_log, is_new=length == len(self._appended))

    def _flush_queues(self, length: int) -> None:
        is_new = length == self._count(self._store.dispatched_end)
        self._end_flush("FlushQueues", self._store.flush_queues, is_new=is_new)

    def _answer_ok(self, message: str) -> None:
        self._answer(message, PutStatus.PUT_OK, "SEND_OK")

    def _answer_timeout(self, message: str) -> None:
        self._answer(message, PutStatus.FLUSH_DISK_TIMEOUT, "FLUSH_DISK_TIMEOUT")

    def _dispatch(self) -> None:
        done = self._count(self._store.dispatched_end)
        if self._store.dispatch_one(self._appended[done].end) != 1:
            raise DeviationError("nothing was dispatched")

    def _write_checkpoint(self) -> None:
        self._run(self._store.write_checkpoint())

    def _deliver(self, queue: str) -> None:
        message = self._next(queue)
        if message is None:
            raise DeviationError(f"nothing to read in {queue}")
        self._seen[self._names.index(queue)].append(message)

    def _correct_offset(self, queue: str) -> None:
        number = self._names.index(queue)
        found = self._store.get(_TOPIC, number, len(self._seen[number]), 1)
        if found.status not in _MOVED:
            raise DeviationError(f"a pull beyond the end of {queue} was answered {found.status}")
        del self._seen[number][found.next_offset :]
        self._offsets.commit(_GROUP, _TOPIC, number, found.next_offset)

    def _commit_offset(self, queue: str) -> None:
        number = self._names.index(queue)
        self._offsets.commit(_GROUP, _TOPIC, number, len(self._seen[number]))

    def _persist_offsets(self) -> None:
        self._run(self._offsets.persist())

    # Stops and starts.

    def _shutdown(self) -> None:
        self._run(self._store.stop())
        self._die()

    def _process_crash(self) -> None:
        self._die()
        self.disk.crash_process()

    def _os_crash(self, length: int, torn: bool, kept: Sequence[int]) -> None:
        image = self.image(length, torn, kept)
        self._die()
        self.disk.crash_os(image)

    def _power_loss(self) -> None:
        self._die()
        self.disk.lose_power()

    def _recover_log(self) -> None:
        pass

    def _truncate_queues(self) -> None:
        pass

    def _redispatch(self) -> None:
        pass

    def _start(self) -> None:
        self._fsync = _Fsync()
        runtime = Runtime(self._clock, self.disk, SimulatedNetwork(), random.Random(0), self._fsync)
        config = StoreConfig(
            flush_mode=self._mode,
            commit_log_segment_bytes=1 << 12,
            consume_queue_segment_bytes=_ENTRY_BYTES * 16,
            index_enabled=False,
        )
        self._store = _Store(_DIRECTORY, config, runtime)
        self._offsets = OffsetTable(_OFFSETS, runtime)
        try:
            self._store.load()
            self._store.begin()
            self._offsets.load()
        except StoreError as error:
            raise DeviationError(f"the store does not start: {error}") from None
        self._up = True
        del self._appended[len(self._log()) :]

    def image(self, length: int, torn: bool, kept: Sequence[int]) -> Image:
        """Return the image of a system crash after which these numbers of records and entries are found."""
        most = self.disk.unsynced()
        lost = {"/commitlog/": sum(one.size for one in self._appended[length:])}
        if torn:
            lost["/commitlog/"] -= self._appended[length].size // 2
        for number, entries in enumerate(kept):
            lost[f"/{_TOPIC}/{number}/"] = (
                _ENTRY_BYTES * (len(self._entries(number)) - entries) if self._up else 0
            )
        contents = {
            label: size - sum(bytes_ for part, bytes_ in lost.items() if part in label)
            for label, size in most.contents.items()
        }
        return Image(most.names, contents)

    def continue_from(self, other: "SteppedStore", image: Image) -> None:
        """Take over the other store's state after a crash that leaves this image, and start.

        The other store is unchanged.
        """
        self._die()
        self.disk = other.disk.copy()
        self.disk.crash_os(image)
        self._appended = list(other._appended)
        self._answers = dict(other._answers)
        self._seen = [list(seen) for seen in other._seen]
        self._start()

    # Disabled actions.

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        if tried is None or not self._up or self._pending:
            return False
        return tried(self, step.parameters)

    def _refuses_flush(self, parameters: Sequence[Any]) -> bool:
        """Flush everything again.

        A flush of fewer records would already be over; one of more is impossible.
        """
        if parameters[0] != len(self._appended):
            return False
        self._run(self._store.flush_log())
        return True

    def _refuses_answer(self, action: str, parameters: Sequence[Any]) -> bool:
        """Check that the store would give another answer now."""
        if self._answers[parameters[0]] != "waiting":
            return False
        return _refused(self._status(parameters[0]) is not _STATUS[action], action)

    def _refuses_dispatch(self, _: Sequence[Any]) -> bool:
        return _refused(self._store.dispatch() == 0, "Dispatch")

    def _refuses_delivery(self, parameters: Sequence[Any]) -> bool:
        return _refused(self._next(parameters[0]) is None, "Deliver")

    def _refuses_queue_flush(self, parameters: Sequence[Any]) -> bool:
        """Flush all queue entries again.

        A flush of fewer would have had to start earlier; one of more is impossible.
        """
        if parameters[0] != self._count(self._store.dispatched_end):
            return False
        self._run(self._store.flush_queues())
        return True

    def _refuses_checkpoint(self, _: Sequence[Any]) -> bool:
        self._write_checkpoint()
        return True

    def _refuses_commit(self, parameters: Sequence[Any]) -> bool:
        """Commit the same offset again; a lower one would be a reset, which succeeds."""
        number = self._names.index(parameters[0])
        if self._committed(number) != len(self._seen[number]):
            return False
        self._commit_offset(parameters[0])
        return True

    def _refuses_correction(self, parameters: Sequence[Any]) -> bool:
        number = self._names.index(parameters[0])
        offset = len(self._seen[number])
        found = self._store.get(_TOPIC, number, offset, 1)
        return _refused(found.status not in _MOVED or found.next_offset == offset, "CorrectOffset")

    def _refuses_persisting(self, _: Sequence[Any]) -> bool:
        self._run(self._offsets.persist())
        return True

    def _refuses_start(self, _: Sequence[Any]) -> bool:
        """Start another process on the same directory."""
        try:
            _Store(_DIRECTORY, self._store.config, self._store_runtime()).load()
        except StoreError:
            return True
        raise DeviationError("Start is disabled, but was executed")

    def _store_runtime(self) -> Runtime:
        return Runtime(self._clock, self.disk, SimulatedNetwork(), random.Random(0), self._fsync)

    # Helper methods.

    def _answer(self, message: str, status: PutStatus, description: str) -> None:
        if self._answers[message] != "waiting":
            raise DeviationError(f"{message} was answered {self._answers[message]} before")
        found = self._status(message)
        if found is not status:
            raise DeviationError(f"{message} was answered {found}, {status} expected")
        self._answers[message] = description

    def _status(self, message: str) -> PutStatus:
        """Return the status that the producer receives if it is answered now.

        Simulated time passes as necessary.
        """
        appended = next(one for one in self._appended if one.message_id == message)
        return self._run(self._store.settle(appended, True))

    def _next(self, queue: str) -> str | None:
        number = self._names.index(queue)
        found = self._store.get(_TOPIC, number, len(self._seen[number]), 1)
        return record.decode(found.records[0]).message_id if found.status is GetStatus.FOUND else None

    def _begin_early(self, flush: str, growth: str, length: int, at: int) -> None:
        """Start a flush early if it ends only after its data has grown."""
        grown = False
        for step in self._steps[at + 1 :]:
            if step.action in _ENDS:
                return
            if step.action == flush:
                if grown and step.parameters[0] == length and flush not in self._pending:
                    self._fsync.held = True
                    begun = self._store.flush_log() if flush == "FlushLog" else self._store.flush_queues()
                    self._pending[flush] = self._loop.loop.create_task(begun)
                    self._run(asyncio.sleep(0))
                    self._pending_return = self._fsync.returns
                return
            grown = grown or step.action == growth

    def _end_flush(
        self, flush: str, flush_again: Callable[[], Coroutine[Any, Any, None]], *, is_new: bool
    ) -> None:
        begun = self._pending.pop(flush, None)
        if begun is not None:
            self._pending_return.set_result(None)
            self._loop.loop.run_until_complete(begun)
        elif is_new:
            self._run(flush_again())
        else:
            raise ImpossibleError(f"{flush} of a part of the data, which no earlier step started")

    def _die(self) -> None:
        self._cancel()
        self._up = False
        for message, answer in self._answers.items():
            if answer == "waiting":
                self._answers[message] = "unknown"

    def _cancel(self) -> None:
        for task in self._pending.values():
            task.cancel()
            self._loop.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        self._pending.clear()

    def _count(self, end: int) -> int:
        """Return how many records end at or before a commit offset."""
        return sum(one.end <= end for one in self._appended)

    def _log(self) -> list[dict[str, Any]]:
        found, position = [], self._store.log_begin
        while position < self._store.log_end:
            size, _ = record.peek(self._store.log_read(position, 8))
            stored = record.decode(self._store.log_read(position, size), position)
            queue = self._names[stored.message.queue_id]
            found.append({"message": stored.message_id, "queue": queue, "offset": stored.queue_offset})
            position += size
        return found

    def _entries(self, number: int) -> list[int]:
        """Return the positions in the log of the queue's entries, counted from 1."""
        starts = [one.commit_offset for one in self._appended]
        units = self._store.units(_TOPIC, number, 0, self._store.max_offset(_TOPIC, number))
        return [starts.index(unit.commit_offset) + 1 for unit in units]

    def _committed(self, number: int) -> int:
        return self._offsets.query(_GROUP, _TOPIC, number) or 0

    def _persisted(self) -> list[int]:
        if not self.disk.exists(_OFFSETS):
            return [0] * self._queues
        file = self.disk.open(_OFFSETS)
        table = json.loads(file.read(0, file.size()))["offsetTable"].get(f"{_TOPIC}@{_GROUP}", {})
        return [table.get(str(number), 0) for number in range(self._queues)]


def _refused(is_refused: bool, action: str) -> bool:
    if not is_refused:
        raise DeviationError(f"{action} is disabled, but was executed")
    return True


_REFUSALS: Final[dict[str, Callable[[SteppedStore, Sequence[Any]], bool]]] = {
    "FlushLog": SteppedStore._refuses_flush,
    "FlushQueues": SteppedStore._refuses_queue_flush,
    "WriteCheckpoint": SteppedStore._refuses_checkpoint,
    "CommitOffset": SteppedStore._refuses_commit,
    "AnswerOk": lambda store, parameters: store._refuses_answer("AnswerOk", parameters),
    "AnswerTimeout": lambda store, parameters: store._refuses_answer("AnswerTimeout", parameters),
    "Dispatch": SteppedStore._refuses_dispatch,
    "Deliver": SteppedStore._refuses_delivery,
    "CorrectOffset": SteppedStore._refuses_correction,
    "PersistOffsets": SteppedStore._refuses_persisting,
    "Start": SteppedStore._refuses_start,
}
"""Functions that try a disabled action; they return whether it could be tried."""


def _messages(script: Script) -> list[str]:
    """Return the names of the model's messages: as many as there are answers."""
    return [f"m{number}" for number in range(1, len(script.initial["answer"]) + 1)]


def _snake(action: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in action).lstrip("_")
