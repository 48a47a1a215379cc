"""The operations that an implementation must offer for the administration suite.

A target is one broker and its name server, driven step by step. The suite has its own topics and groups. The
broker may serve other clients at the same time.
"""

from typing import Final, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.reference.rules.administration import Group, Topic

TOPICS: Final = ("t", "u")
GROUPS: Final = ("g", "h")


class AdminTarget(Protocol):
    """One broker under test.

    Every call returns when its effect is visible, or should be. `open` is called first and `close` last. At
    `open` the topics and groups of the suite do not exist.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[BrokerFault]: ...

    def open(self) -> None:
        """Prepare the broker. Raises TargetError, as all other methods may."""
        ...

    def make_topic(self, topic: str, settings: Topic) -> None:
        """Create the topic, or change its settings."""
        ...

    def delete_topic(self, topic: str) -> None:
        """Delete the topic at the broker and at the name server."""
        ...

    def show_topic(self, topic: str) -> Topic | None: ...

    def route(self, topic: str) -> Topic | None:
        """Return the topic as the name server reports it; None if it knows no such topic."""
        ...

    def make_group(self, group: str, settings: Group) -> None:
        """Create the group, or change its settings."""
        ...

    def delete_group(self, group: str) -> None:
        """Delete the group and its offsets."""
        ...

    def show_group(self, group: str) -> Group | None: ...

    def send(self, topic: str, queue_id: int, msg_id: str, keys: str) -> str | None:
        """Send a message; return its offset message id, or None if the broker refuses it."""
        ...

    def pull(self, group: str, topic: str, queue_id: int) -> tuple[str, ...] | None:
        """Return all messages of the queue, or None if the broker refuses the pull."""
        ...

    def by_key(self, topic: str, key: str) -> tuple[str, ...]:
        """Return the ids of the messages with that key, oldest first."""
        ...

    def by_id(self, offset_message_id: str) -> str | None:
        """Return the id of the message with that offset message id; None if there is none."""
        ...

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Commit an offset; return whether the broker accepted it."""
        ...

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the group's offset; None for "not found"."""
        ...

    def clone_offsets(self, source: str, destination: str, topic: str) -> None:
        """Copy the offsets of the source group in the topic to the destination group."""
        ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities.

        Returns when the broker serves again, and the name server has had time to receive its topics.
        """
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...
