"""The observations of one client in one run: operations with their answers, in the order of time.

The checkers and the oracle use only a history. `numbered` prints it as a script for people; `events` exports
it in the vocabulary of spec/events.py.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mqproof.conformance.suites.flush.target import (
    Fault,
    Outcome,
    Pulled,
    PulledMessage,
    PullStatus,
    Sent,
    Setup,
)
from mqproof.spec.events import SCHEMA_VERSION, Event, Kind


class End(StrEnum):
    """The way in which the broker stopped."""

    KILL = "kill"
    OS_CRASH = "crash_os"
    POWER_LOSS = "lose_power"
    SHUTDOWN = "shutdown"


SYSTEM_CRASHES: Final = frozenset({End.OS_CRASH, End.POWER_LOSS})
CRASHES: Final = SYSTEM_CRASHES | {End.KILL}


@dataclass(frozen=True, slots=True)
class Send:
    queue_id: int
    msg_id: str
    body: bytes
    answer: Sent
    abandoned: bool = False
    """The client closed the connection.

    Whether the message was stored is decided when the next operation that is not abandoned ends.
    """

    def __str__(self) -> str:
        text = f"send {self.msg_id} ({len(self.body)} bytes) to queue {self.queue_id}"
        if self.answer.outcome is Outcome.OK:
            return f"{text}: {self.answer.status} at offset {self.answer.queue_offset}"
        return f"{text}: {self.answer.outcome} ({self.answer.status})"


@dataclass(frozen=True, slots=True)
class Pull:
    queue_id: int
    offset: int
    max_count: int
    answer: Pulled
    peek: bool = False
    """A read by the examiner; it does not move the consumer."""

    def __str__(self) -> str:
        answer = self.answer
        found = ", ".join(_describe(message) for message in answer.messages)
        result = f"{answer.status} {found}".rstrip()
        how = "examine" if self.peek else "pull from"
        return (
            f"{how} queue {self.queue_id} at offset {self.offset}, at most {self.max_count}: {result};"
            f" next {answer.next_offset}, min {answer.min_offset}, max {answer.max_offset}"
        )


@dataclass(frozen=True, slots=True)
class Commit:
    queue_id: int
    offset: int
    accepted: bool
    reset: bool = False
    """The consumer goes back on purpose, because the broker reported that its offset is beyond the end."""

    def __str__(self) -> str:
        what = "reset" if self.reset else "commit"
        return f"{what} offset {self.offset} of queue {self.queue_id}: {'ok' if self.accepted else 'refused'}"


@dataclass(frozen=True, slots=True)
class Query:
    queue_id: int
    offset: int

    def __str__(self) -> str:
        return f"query the committed offset of queue {self.queue_id}: {self.offset}"


@dataclass(frozen=True, slots=True)
class Bounds:
    queue_id: int
    min_offset: int
    max_offset: int

    def __str__(self) -> str:
        return f"min and max offset of queue {self.queue_id}: {self.min_offset}, {self.max_offset}"


@dataclass(frozen=True, slots=True)
class Down:
    how: End

    def __str__(self) -> str:
        return str(self.how)


@dataclass(frozen=True, slots=True)
class Restart:
    failure: str = ""
    """The reason why the broker did not start; empty if it did."""

    def __str__(self) -> str:
        return f"restart: {self.failure}" if self.failure else "restart"


@dataclass(frozen=True, slots=True)
class SyncsFail:
    def __str__(self) -> str:
        return "every fsync fails from now on"


@dataclass(frozen=True, slots=True)
class Disturb:
    fault: Fault

    def __str__(self) -> str:
        return f"disturb: {self.fault}"


@dataclass(frozen=True, slots=True)
class Calm:
    def __str__(self) -> str:
        return "end of the disturbance"


Operation = Send | Pull | Commit | Query | Bounds | Down | Restart | SyncsFail | Disturb | Calm


@dataclass(frozen=True, slots=True)
class History:
    setup: Setup
    operations: tuple[Operation, ...]
    is_simulated: bool = False
    """Whether time passes only while nothing else happens, so that no answer is slow."""


def checksum(body: bytes) -> int:
    """Return the CRC-32 of the body, which is used to compare two bodies of one message."""
    return zlib.crc32(body)


def script(history: History) -> list[str]:
    """Return the history as steps for people."""
    setup = history.setup
    first = f"open a broker, {setup.flush_mode}, {setup.queues} queue(s), seed {setup.seed}"
    return [first, *map(str, history.operations)]


def numbered(history: History) -> str:
    """Return the history as numbered lines."""
    return "\n".join(f"{number:4}. {step}" for number, step in enumerate(script(history), start=1))


def _describe(message: PulledMessage) -> str:
    return f"{message.msg_id or 'no message'}@{message.queue_offset}"


_CRASH_KINDS: Final = {End.KILL: "process", End.OS_CRASH: "os", End.POWER_LOSS: "power"}


def events(history: History, node: str = "client") -> Iterator[Event]:
    """Yield the history as the event log of one node.

    Its time is logical: one microsecond per step, from 0.
    """
    seq = 0
    for ts, operation in enumerate(history.operations):
        for kind, columns in _events(history.setup, operation):
            attrs = columns.pop("attrs", {})
            if seq == 0:
                attrs = {**attrs, "schema": str(SCHEMA_VERSION)}
            yield Event(ts=ts, seq=seq, node=node, kind=kind, attrs=attrs, **columns)
            seq += 1


def _events(setup: Setup, operation: Operation) -> Iterator[tuple[Kind, dict[str, Any]]]:
    match operation:
        case Send(queue_id, msg_id, body, answer):
            place = {"topic": setup.topic, "queue_id": queue_id, "msg_id": msg_id}
            attrs = {"crc": str(checksum(body))}
            yield Kind.SEND, {**place, "attempt": 1, "attrs": attrs}
            match answer.outcome:
                case Outcome.OK:
                    yield (
                        Kind.SEND_ACK,
                        {**place, "status": answer.status, "queue_offset": answer.queue_offset},
                    )
                case Outcome.FAILED:
                    yield Kind.SEND_FAIL, {**place, "status": answer.status}
                case Outcome.INDETERMINATE:
                    yield Kind.SEND_FAIL, {**place, "status": "unknown"}
        case Pull(_, _, _, answer) if answer.status is PullStatus.FOUND:
            for message in answer.messages:
                yield (
                    Kind.DELIVER,
                    {
                        "msg_id": message.msg_id,
                        "topic": message.topic,
                        "queue_id": message.queue_id,
                        "queue_offset": message.queue_offset,
                        "group": setup.group,
                        "attrs": {"crc": str(checksum(message.body))},
                    },
                )
        case Commit(queue_id, offset, True, _):
            yield (
                Kind.OFFSET_COMMIT,
                {"topic": setup.topic, "queue_id": queue_id, "queue_offset": offset, "group": setup.group},
            )
        case Down(how) if how in _CRASH_KINDS:
            yield Kind.CRASH, {"attrs": {"kind": _CRASH_KINDS[how]}}
