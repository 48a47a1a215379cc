"""The operations that an implementation must offer to serve a consumer group.

A target is one broker, driven step by step. The suite has its own topic, group and members. Each member has a
connection; it announces itself, queries the other members, reads and commits. The broker may serve other
clients at the same time.
"""

from collections.abc import Set
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault

QUEUES: Final = 3
MEMBERS: Final = ("c1", "c2", "c3", "c4")
"""More than there are queues, so that a member may have none."""


class Capability(StrEnum):
    """The optional operations of a target."""

    SILENCE = "silence"  # `fall_silent`: time passes until the broker removes a silent member


class Message(NamedTuple):
    msg_id: str
    offset: int

    def __str__(self) -> str:
        return f"{self.msg_id} at {self.offset}"


class DeliveryTarget(Protocol):
    """One broker under test.

    Every call except `commit_oneway` returns when its effect is visible, or should be. `open` is called first
    and `close` last. Methods of capabilities that the target does not declare are never called.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    def open(self) -> None:
        """Create a new topic of QUEUES queues and a new group.

        Raises TargetError, as all other methods may.
        """
        ...

    def send(self, queue_id: int, msg_id: str) -> int:
        """Send a message; return the offset at which it was stored."""
        ...

    def join(self, member: str) -> None:
        """Add the member over a new connection."""
        ...

    def leave(self, member: str) -> None:
        """Unregister the member and close its connection."""
        ...

    def die(self, member: str) -> None:
        """Close the member's connection without unregistering it."""
        ...

    def fall_silent(self, member: str) -> None:
        """Stop the heartbeats of this member only, until the broker should have removed it."""
        ...

    def members(self, asker: str) -> frozenset[str]:
        """Return the members of the group, as the broker reports them to the asker."""
        ...

    def notified(self, expected: Set[str]) -> frozenset[str]:
        """Return the members that were notified of a membership change since the last call.

        Waits a while for those that are expected to be notified.
        """
        ...

    def pull(self, member: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]: ...

    def commit(self, member: str, queue_id: int, offset: int) -> None: ...

    def commit_oneway(self, member: str, queue_id: int, offset: int) -> None:
        """Commit without waiting for an answer, so that the time of the commit stays unknown."""
        ...

    def query(self, queue_id: int) -> int | None:
        """Return the group's offset; None for "not found"."""
        ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities.

        Returns when the broker serves again. All connections of members are closed then, except after a
        freeze.
        """
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...
