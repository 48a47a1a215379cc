"""What was seen during one attack, and the broker under attack. `checkers.py` judges it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from mqproof.conformance.hostile.attack import Attack, Names, Signer
from mqproof.conformance.wire.server_connection import Address


@dataclass(frozen=True, slots=True)
class Reading:
    """What a consumer read from the queue after the attack."""

    answers: tuple[tuple[tuple[int, int], ...], ...]
    """For each answer that the consumer took, the queue offset and the size of the body of each message."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen during one attack."""

    attack: Attack
    answers: tuple[int, ...] = ()
    """The response codes of the attacker's first connection, in order."""
    closed: int = 0
    """The number of the attacker's connections that the broker closed."""
    silence: str = ""
    """Why no further answer was read, for people; empty if the connection was closed or all were answered."""
    during: str = ""
    """Why others were not served while the attacker was connected; empty if they were."""
    after: str = ""
    """The same after the attacker left."""
    sends: tuple[int, ...] = ()
    """The response codes of the sends of others."""
    streamed_bytes: int = 0
    """The bytes of the log that the attacker received."""
    memory_mib: int = 0
    """The memory that the broker took during the attack."""
    first_offset: int = 0
    """The queue offset of the attack's first message."""
    messages: int = 0
    """The number of messages that the attack stored."""
    reading: Reading | None = None


@dataclass(slots=True)
class SlaveView:
    """What a stranger at the port of slaves has received."""

    streamed_bytes: int = 0
    """The bytes of the log."""


Memory = Callable[[], int]
"""Returns the memory of the broker's process in MiB."""
Read = Callable[[str, int, int], Reading]
"""Reads queue 0 of a topic from an offset to another with a consumer."""


@dataclass(frozen=True, slots=True)
class Victim:
    """The broker under attack, or the group of brokers."""

    addresses: tuple[Address, ...]
    """Where clients connect; a group has several."""
    memory: Memory | None = None
    """None if the broker's process is not a child of this one."""
    ports: tuple[Address, ...] = ()
    """Where slaves or members connect, if the setup is about these ports."""
    administrator: Signer | None = None
    """The account of the clients that must be served."""
    read: Read | None = None
    known: Names = field(default_factory=lambda: Names("", ""))
    """What is known about the limits and the accounts; topic and group are ignored."""
