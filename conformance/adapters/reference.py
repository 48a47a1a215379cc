"""The reference as a target: the flush model itself, with internal steps and crashes chosen by the seed.

It shows that the suite accepts the behaviours of the model; a failure here is a defect of the suite.
"""

import random
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.suites.flush.target import (
    Capability,
    Fault,
    Outcome,
    Pulled,
    PulledMessage,
    PullStatus,
    Sent,
    Setup,
)
from mqproof.reference import flush

_INNER_STEPS_MAX: Final = 4
_TIMEOUT_CHANCE: Final = 0.1


class ReferenceTarget:
    """Drives reference.flush by its own actions."""

    name = "reference"
    capabilities = (
        frozenset(Capability)
        - {Capability.SYNC_FAILURE, Capability.SIMULATED}
        - {Capability(each) for each in Fault}
    )

    def open(self, setup: Setup) -> None:
        self._setup = setup
        self._chance = random.Random(setup.seed)
        queues = tuple(map(str, range(setup.queues)))
        self._config = flush.Config((), queues, (setup.flush_mode,), crashes_max=None)
        (self._state,) = flush.MODEL.initial(self._config)
        self._bodies: dict[str, bytes] = {}

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:
        self._append(topic, queue_id, msg_id, body)
        offset = self._state.log[-1].offset
        self._work()
        position = flush.position(self._state, msg_id)
        if self._state.mode == flush.SYNC_FLUSH and position > self._state.flushed:
            if self._chance.random() < _TIMEOUT_CHANCE:
                self._must("AnswerTimeout", msg_id)
                return Sent(Outcome.OK, "FLUSH_DISK_TIMEOUT", offset)
            self._must("FlushLog", self._chance.randint(position, len(self._state.log)))
        self._must("AnswerOk", msg_id)
        return Sent(Outcome.OK, "SEND_OK", offset)

    def abandon(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> None:
        if self._chance.random() < 0.8:  # otherwise it never arrives
            self._append(topic, queue_id, msg_id, body)

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        self._work()
        end = len(self._state.queue[queue_id])
        if offset > end:
            return Pulled(PullStatus.OFFSET_MOVED, (), end, 0, end)
        entries = self._state.queue[queue_id][offset : offset + max_count]
        if not entries:
            return Pulled(PullStatus.NO_NEW, (), offset, 0, end)
        records = [self._state.log[position - 1] for position in entries]
        messages = tuple(
            PulledMessage(r.message, self._bodies[r.message], topic, int(r.queue), r.offset) for r in records
        )
        return Pulled(PullStatus.FOUND, messages, offset + len(messages), 0, end)

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:  # noqa: ARG002
        """Commit the offset with the model's consumer, which is first moved to where the real consumer is."""
        committed = self._state.committed[queue_id]
        if offset < committed:
            self._consumer_is_at(queue_id, committed)
            self._must("CorrectOffset", str(queue_id))
        elif offset > committed:
            self._consumer_is_at(queue_id, offset)
            self._must("CommitOffset", str(queue_id))
        return self._state.committed[queue_id] == offset

    def query_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        self._work()
        return self._state.committed[queue_id]

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return 0

    def max_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return len(self._state.queue[queue_id])

    def kill(self) -> None:
        self._work()
        self._must("ProcessCrash")

    def crash_os(self, seed: int) -> None:
        self._work()
        chance = random.Random(seed)
        state = self._state
        length = chance.randint(state.flushed, len(state.log))
        torn = length < len(state.log) and chance.random() < 0.5
        kept = tuple(
            chance.randint(flushed, len(entries))
            for flushed, entries in zip(state.queue_flushed, state.queue, strict=True)
        )
        self._must("OsCrash", length, torn, kept)

    def lose_power(self) -> None:
        self._work()
        self._must("PowerLoss")

    def shutdown(self) -> None:
        self._may("FlushLog", len(self._state.log))
        for message, answer in zip(self._config.messages, self._state.answer, strict=True):
            if answer == "waiting":
                self._must("AnswerOk", message)
        while self._may("Dispatch"):
            pass
        self._may("FlushQueues", self._state.dispatched)
        self._may("WriteCheckpoint")
        self._may("PersistOffsets")
        self._must("Shutdown")

    def restart(self) -> None:
        self._must("RecoverLog")
        self._must("TruncateQueues")
        while self._may("Redispatch"):
            pass
        self._must("Start")

    def fail_syncs(self) -> None:
        raise NotImplementedError("the model has no fault of a disk that does not sync")

    def disturb(self, fault: Fault) -> None:
        raise NotImplementedError(f"the model has no fault {fault}")

    def calm(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def _append(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> None:
        assert topic == self._setup.topic
        self._bodies[msg_id] = body
        self._config = replace(self._config, messages=(*self._config.messages, msg_id))
        self._state = replace(self._state, answer=(*self._state.answer, "unsent"))
        self._must("AppendRecord", msg_id, str(queue_id))

    def _consumer_is_at(self, queue_id: int, offset: int) -> None:
        entries = self._state.queue[queue_id][:offset]
        held = tuple(self._state.log[position - 1].message for position in entries)
        held += ("lost",) * (offset - len(held))  # seen before a crash lost it
        seen = self._state.seen
        self._state = replace(self._state, seen=(*seen[:queue_id], held, *seen[queue_id + 1 :]))

    def _work(self) -> None:
        """Take a few random steps that the broker performs on its own."""
        for _ in range(self._chance.randint(0, _INNER_STEPS_MAX)):
            match self._chance.randrange(5):
                case 0 if self._state.log:
                    self._may("FlushLog", self._chance.randint(1, len(self._state.log)))
                case 1:
                    self._may("FlushQueues", self._chance.randint(0, self._state.dispatched))
                case 2:
                    self._may("WriteCheckpoint")
                case 3:
                    self._may("PersistOffsets")
                case _:
                    self._may("Dispatch")

    def _may(self, action: str, *parameters: Any) -> bool:
        after = flush.MODEL.actions[action].apply(self._config, self._state, *parameters)
        if after is not None:
            self._state = after
        return after is not None

    def _must(self, action: str, *parameters: Any) -> None:
        if not self._may(action, *parameters):
            raise AssertionError(f"{action}{parameters} is not enabled in {self._state}")
