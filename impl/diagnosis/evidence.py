"""What is known about a message and its groups: plain values, wherever they came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mqproof.impl.client.message_selector import SQL92, TAG
from mqproof.impl.diagnosis.causes import Cause
from mqproof.impl.diagnosis.history import History
from mqproof.impl.filtering.sql import compiled
from mqproof.impl.filtering.tokens import ExpressionError
from mqproof.impl.remoting.message import TAGS


@dataclass(frozen=True, slots=True, order=True)
class Queue:
    """One queue of a topic at one broker name."""

    topic: str
    broker: str
    id: int

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker}:{self.id}"


@dataclass(frozen=True, slots=True)
class Copy:
    """A record of the message in a broker's store."""

    queue: Queue
    offset: int
    commit_offset: int
    stored_ms: int
    properties: Mapping[str, str]
    reconsume_times: int = 0

    @property
    def place(self) -> str:
        return f"{self.queue} offset {self.offset}"


@dataclass(frozen=True, slots=True)
class QueueState:
    """The extent of a queue, and what is at an offset that matters."""

    first: int
    end: int
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Expression:
    """A subscription: which messages of a topic a group selects."""

    text: str = "*"
    kind: str = TAG
    since_ms: int = 0
    """The time of the subscription; 0 if it is unknown."""

    def selects(self, properties: Mapping[str, str]) -> bool | None:
        """Return whether it selects a message with these properties; None if that cannot be decided."""
        if self.kind == TAG:
            tags = {tag.strip() for tag in self.text.split("||")} - {""}
            return not tags or "*" in tags or properties.get(TAGS, "") in tags
        if self.kind == SQL92:
            try:
                return compiled(self.text).matches(properties)
            except ExpressionError:
                return None
        return None

    def __str__(self) -> str:
        return f"{self.text!r}" if self.kind == TAG else f"{self.kind} {self.text!r}"


@dataclass(frozen=True, slots=True)
class Held:
    """The messages of a queue that a member has pulled and not consumed. Times are in ms; 0 means never."""

    count: int
    first: int
    last: int
    consumed_ms: int
    pulled_ms: int


@dataclass(frozen=True, slots=True)
class Member:
    """A connected member of a group."""

    client_id: str
    queues: Mapping[Queue, Held] | None = None
    """The queues that it reads; None if it did not answer."""
    expressions: Mapping[str, Expression] | None = None
    """Its subscriptions by topic; None if it did not answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group as the brokers see it now."""

    name: str
    members: tuple[Member, ...] = ()
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    """The subscriptions that the brokers know, by topic. Without a member there are none."""
    broadcast: bool = False
    enabled: bool = True
    offsets: Mapping[Queue, int] = field(default_factory=dict)
    """The committed offsets. A queue without one is absent."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a listener, as a message trace reports it."""

    group: str
    time_ms: int
    ok: bool | None
    """None if the end of the call is not known."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is known about one message."""

    message_id: str
    now_ms: int
    topic: str | None = None
    topic_exists: bool | None = None
    """None if no cluster was read."""
    cluster: bool = False
    """Whether a cluster was read."""
    copies: tuple[Copy, ...] = ()
    queues: Mapping[Queue, QueueState] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    half_is_done: bool | None = None
    """Whether the broker has ended the transaction of the half message; None if that is unknown."""
    history: History = field(default_factory=History)
    missing: tuple[str, ...] = ()
    """What could not be read, one line each."""
    silent_brokers: tuple[str, ...] = ()
    """The brokers that did not answer, or that the name server does not know any more."""

    def copies_in(self, topic: str) -> list[Copy]:
        return sorted(
            (copy for copy in self.copies if copy.queue.topic == topic),
            key=lambda copy: (copy.stored_ms, copy.commit_offset),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The cause, for one group or for all, and what shows it."""

    cause: Cause
    evidence: tuple[str, ...]
    group: str | None = None
    topic: str | None = None
    message_id: str | None = None
