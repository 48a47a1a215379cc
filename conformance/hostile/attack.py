"""An attack as data: what it sends, in which scene, the rule that it tests, and what a broker must do."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

OPAQUE: Final = 4711
"""The opaque of each request of an attack."""


class Scene(Enum):
    """The part of a deployment that an attack needs."""

    BROKER = "one broker"
    ACCOUNTS = "a broker with accounts"
    SLAVES = "a synchronous master that requires the peer secret from its slaves"
    MEMBERS = "a group of three brokers that elects its master"
    CONSUMER = "a broker and a consumer of mqproof"


class Expected(Enum):
    """What must happen to the attacker. In every case others must be served."""

    REFUSED = "an answer with another code than SUCCESS"
    CLOSED = "the connection is closed"
    NOT_DONE = "an answer with another code than SUCCESS, or the connection is closed"
    BUSY = "SYSTEM_BUSY beyond the share, or the connection is closed"
    ONE_CLOSED = "one of the connections is closed"
    ANSWERED = "any answer, or the connection is closed"
    ANYTHING = "nothing in particular"
    NOT_COUNTED = "no send is answered with SUCCESS, and nothing of the log is sent to the stranger"
    ALL_READ = "the consumer receives every message, and holds at most the limits"


@dataclass(frozen=True, slots=True)
class Signer:
    """An account that signs requests."""

    access_key: str
    secret_key: str


@dataclass(frozen=True, slots=True)
class Names:
    """What an attack needs to know about the run and the broker."""

    topic: str
    group: str
    commit_offset: int = 0
    """The place of a message of the topic in the broker's log."""
    log_end: int = 0
    """A position behind that message."""
    next_offset: int = 0
    """The queue offset of the next message in queue 0 of the topic."""
    connections: int = 5100
    """More connections than the share of one address, with the default limits."""
    names: int = 5100
    """More topics or groups than the share of one connection, with the default limits."""
    pulls: int = 10_100
    """More held pulls than the share of one connection, with the default limits."""
    member: int = 0
    """The number of the attacked member of a group."""
    account: Signer | None = None
    """An account without rights on the topic and the group."""
    administrator: Signer | None = None
    """The account of the clients that must be served, whose requests a stranger may have recorded."""


Frames = Callable[[Names], bytes]
"""Returns the bytes that each attacking connection sends."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A named attack. Names are stable: reports and commands refer to them."""

    name: str
    about: str
    code: int
    """The request code; 0 for bytes that are not a request."""
    frames: Frames
    expected: Expected
    invariant: str
    """The id in the catalogue of the invariant that a successful attack violates."""
    rule: str
    """The rule: a file of docs/reference/protocol, and the title of its section."""
    scene: Scene = Scene.BROKER
    connections: int = 1
    """The number of connections; 0 means `Names.connections`."""
    has_checksums: bool = False
    """Whether a stranger at the port of slaves acknowledges in the form of slaves that share a secret."""
    is_heavy: bool = False
    """Whether the attack costs the attacker seconds of processor time or much memory."""
