"""What an implementation must offer to be administered: one broker and its name server, driven step by step.

Topics and groups are the suite's own. The broker may serve others at the same time.
"""

from typing import Final, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.reference.administration import Group, Topic

TOPICS: Final = ("t", "u")
GROUPS: Final = ("g", "h")


class AdminTarget(Protocol):
    """One broker under test. Every call returns when its effect is there, or should be; `open` is the first,
    `close` the last. At `open` there are no such topics and groups."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[BrokerFault]: ...

    def open(self) -> None:
        """Raises TargetError, as all others may."""
        ...

    def make_topic(self, topic: str, settings: Topic) -> None:
        """Make it, or change it."""
        ...

    def delete_topic(self, topic: str) -> None:
        """At the broker and at the name server."""
        ...

    def show_topic(self, topic: str) -> Topic | None: ...

    def route(self, topic: str) -> Topic | None:
        """As the name server tells of it; None when it knows no such topic."""
        ...

    def make_group(self, group: str, settings: Group) -> None:
        """Make it, or change it."""
        ...

    def delete_group(self, group: str) -> None:
        """And its offsets with it."""
        ...

    def show_group(self, group: str) -> Group | None: ...

    def send(self, topic: str, queue_id: int, msg_id: str, keys: str) -> str | None:
        """Returns the offset message id, None when the message is refused."""
        ...

    def pull(self, group: str, topic: str, queue_id: int) -> tuple[str, ...] | None:
        """All messages of the queue, None when the pull is refused."""
        ...

    def by_key(self, topic: str, key: str) -> tuple[str, ...]:
        """The ids of the messages with that key, oldest first."""
        ...

    def by_id(self, offset_message_id: str) -> str | None:
        """The id of that message."""
        ...

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Whether it was taken."""
        ...

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """The group's offset; None for "not found"."""
        ...

    def clone_offsets(self, source: str, destination: str, topic: str) -> None:
        """Have one group go on where the other is."""
        ...

    def befall(self, fault: BrokerFault) -> None:
        """One that is among the capabilities. Returns when the broker serves again, and the name server tells
        of its topics, or should."""
        ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...
