"""The operations of the suite on a broker's queues and offsets, with the broker's answers."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.suites.offsets.target import Held, Message, Pulled, Searched


@dataclass(frozen=True, slots=True)
class Send:
    queue_id: int
    message: Message

    def __str__(self) -> str:
        return f"send to queue {self.queue_id}: {self.message}"


@dataclass(frozen=True, slots=True)
class Pull:
    queue_id: int
    offset: int
    count: int
    expression: str
    commit: int | None
    answer: Pulled

    def __str__(self) -> str:
        also = "" if self.commit is None else f", committing {self.commit}"
        return (
            f"pull {self.count} of {self.expression} from {self.offset} of queue {self.queue_id}{also}:"
            f" {self.answer}"
        )


@dataclass(frozen=True, slots=True)
class Hold:
    queue_id: int
    offset: int
    count: int
    expression: str
    held: Held
    late: bool
    """A selected message existed, and the answer came much later."""

    def __str__(self) -> str:
        sent = ", ".join(map(str, self.held.sent))
        return (
            f"pull {self.count} of {self.expression} from {self.offset} of queue {self.queue_id}, and wait;"
            f" then send {sent}: {self.held.answer}{' (late)' if self.late else ''}"
        )


@dataclass(frozen=True, slots=True)
class Commit:
    queue_id: int
    offset: int
    oneway: bool

    def __str__(self) -> str:
        unknown = ", without waiting for the answer" if self.oneway else ""
        return f"commit {self.offset} of queue {self.queue_id}{unknown}"


@dataclass(frozen=True, slots=True)
class Bounds:
    queue_id: int
    low: int
    high: int

    def __str__(self) -> str:
        return f"queue {self.queue_id} has {self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the offset of a time."""

    queue_id: int
    found: Searched

    def __str__(self) -> str:
        return f"search queue {self.queue_id} by time: {self.found}"


@dataclass(frozen=True, slots=True)
class Expire:
    def __str__(self) -> str:
        return "old messages expire"


@dataclass(frozen=True, slots=True)
class Write:
    """The broker has written the offsets of the group to disk."""

    def __str__(self) -> str:
        return "time passes, and offsets are written"


Operation = Send | Pull | Hold | Commit | Query | Bounds | Search | Expire | Write | InjectFault
