"""What an implementation must offer to serve a consumer group: one broker, driven step by step.

Topic and group are the suite's own, and so are the members: each has a connection, says who it is, asks who
else is there, reads and commits. The broker may serve others at the same time.
"""

from collections.abc import Set
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault

QUEUES: Final = 3
MEMBERS: Final = ("c1", "c2", "c3")


class Capability(StrEnum):
    """What a target can be asked for besides."""

    SILENCE = "silence"  # `fall_silent`: time passes until who says nothing is forgotten


class Message(NamedTuple):
    msg_id: str
    offset: int

    def __str__(self) -> str:
        return f"{self.msg_id} at {self.offset}"


class DeliveryTarget(Protocol):
    """One broker under test. Every call returns when its effect is there, or should be, but for
    `commit_oneway`; `open` is the first, `close` the last. Methods of capabilities that the target does not
    declare are never called."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    def open(self) -> None:
        """A new topic of QUEUES queues and a new group. Raises TargetError, as all others may."""
        ...

    def send(self, queue_id: int, msg_id: str) -> int:
        """Returns the offset at which the message was stored."""
        ...

    def join(self, member: str) -> None:
        """Over a new connection."""
        ...

    def leave(self, member: str) -> None:
        """Say good-bye, and close the connection."""
        ...

    def die(self, member: str) -> None:
        """The connection closes."""
        ...

    def fall_silent(self, member: str) -> None:
        """It says nothing any more, until it should be forgotten; all others do."""
        ...

    def members(self, asker: str) -> frozenset[str]:
        """Who is in the group, as the asker is told."""
        ...

    def notified(self, expected: Set[str]) -> frozenset[str]:
        """Who was told since the last time that the members have changed; waits a while for those that are
        expected to be."""
        ...

    def pull(self, member: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]: ...

    def commit(self, member: str, queue_id: int, offset: int) -> None: ...

    def commit_oneway(self, member: str, queue_id: int, offset: int) -> None:
        """Nobody learns when the broker has noted it."""
        ...

    def query(self, queue_id: int) -> int | None:
        """The group's offset; None for "not found"."""
        ...

    def befall(self, fault: BrokerFault) -> None:
        """One that is among the capabilities. Returns when the broker serves again; but for a frozen one all
        members' connections are gone then."""
        ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...
