"""What a run knows about its half messages and timed messages: from their producers, and from the log."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqproof.conformance.suites.transactions.target import End
from mqproof.impl.broker import half_messages
from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, OPERATION_TOPIC
from mqproof.impl.client.model import Sent
from mqproof.impl.remoting.message import Message, StoredMessage

TOPIC: Final = "D"
"""The topic of all messages of a run."""


class Leadership(NamedTuple):
    """A broker process, and the term in which it leads if brokers elect."""

    node: str
    life: int
    term: int


@dataclass(slots=True)
class Transaction:
    """A half message and its ends, as producers know them."""

    name: str
    decision: End | None
    """The end of the local transaction; None if it has not ended."""
    half: Sent | None = None
    """The answer to the half message, if it was stored."""
    is_promised: bool = False
    """Whether the half message must be kept: it was answered SEND_OK, and no crash may have lost it."""
    requested: set[End] = field(default_factory=set)
    """The ends that a producer has sent."""
    is_committed: bool = False
    """Whether a commit was answered SUCCESS, and no crash may have lost it."""
    rolled_back_by: Leadership | None = None
    """The broker that answered a rollback with SUCCESS."""
    is_committed_later: bool = False
    """Whether the same broker then answered a commit with SUCCESS."""


@dataclass(slots=True)
class Timed:
    """A message with a delay, as its producer knows it."""

    name: str
    due_ms: int
    """The earliest time at which it may be visible."""
    latest_due_ms: int
    """The latest time at which the broker may consider it due."""
    has_level: bool
    """Whether it has a delay level; then it cannot be recalled."""
    is_promised: bool = False
    recall_asked: bool = False
    is_recalled: bool = False
    """Whether a recall was answered SUCCESS, and no crash may have lost it."""


@dataclass(slots=True)
class Trail:
    """The records of one half message in the log."""

    half: StoredMessage | None = None
    finals: int = 0
    ends: list[str] = field(default_factory=list)
    """final, discard or operation, in the order of the log."""


def name_of(message: Message) -> str:
    """Return the name of a message, which is the start of its body."""
    return message.body.split(b".")[0].decode(errors="replace")


def body_of(name: str, filler_bytes: int) -> bytes:
    return name.encode() + b"." * (1 + filler_bytes)


def trails(log: Iterable[StoredMessage]) -> dict[str, Trail]:
    """Return the records of all half messages, by name. Visible messages that have no half are included."""
    found: dict[str, Trail] = {}
    names: dict[int, str] = {}
    """The names of half messages by their place in the half queue."""
    for stored in log:
        message = stored.message
        if message.topic == OPERATION_TOPIC:
            for place in half_messages.done_by(message):
                if (name := names.get(place)) is not None:
                    found[name].ends.append("operation")
            continue
        if message.topic not in (HALF_TOPIC, DISCARD_TOPIC, TOPIC):
            continue
        name = name_of(message)
        trail = found.setdefault(name, Trail())
        if message.topic == HALF_TOPIC:
            names[stored.queue_offset] = name
            trail.half = trail.half or stored
        elif message.topic == DISCARD_TOPIC:
            trail.ends.append("discard")
        else:
            trail.finals += 1
            trail.ends.append("final")
    return found


def visible(log: Iterable[StoredMessage]) -> dict[str, list[StoredMessage]]:
    """Return the visible messages by name."""
    found: dict[str, list[StoredMessage]] = {}
    for stored in log:
        if stored.message.topic == TOPIC:
            found.setdefault(name_of(stored.message), []).append(stored)
    return found
