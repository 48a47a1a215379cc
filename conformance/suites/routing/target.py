"""The operations that an implementation must offer for the routing suite.

A target is one name server, driven step by step. The suite simulates the brokers: it registers them, stays
silent for them, and closes their connections. The name server may serve others at the same time; the suite
queries only its own names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

MASTER: Final = 0

TOPICS: Final = ("topic", "other")
"""A broker has the second topic only, or both."""


class Capability(StrEnum):
    """The optional operations of a target, beyond registrations and route queries."""

    WAIT = "wait"  # `wait`: time passes for the name server
    RESTART = "restart"  # `restart`
    ISOLATE = "isolate"  # `register_isolated`
    SHARE = "share"  # `register` over the connection of another broker
    CLIENT = "client"  # `publish`: there is a client that is judged as well
    SLAVE_SPEAKS = "slave_speaks"  # since 5.0: without a master, the slave reports the queues of its name


class Broker(NamedTuple):
    """A broker that the suite simulates."""

    name: str
    broker_id: int
    """The broker's id; 0 is the master."""

    def __str__(self) -> str:
        return f"{'master' if self.broker_id == MASTER else 'slave'} {self.name}"


@dataclass(frozen=True, slots=True)
class Times:
    """The times of the name server, in seconds."""

    expiry_s: float
    """A broker that is silent for longer is removed by the next scan."""
    scan_s: float
    """The time between two scans."""


@dataclass(frozen=True, slots=True)
class Route:
    """The answer to a route request, by broker name."""

    queues: dict[str, str]
    """Broker name to permission: "read", or "write" (read and write)."""
    members: dict[str, frozenset[int]]
    """Broker name to the broker ids that have an address."""

    def __str__(self) -> str:
        queues = ", ".join(f"{name}: {permission}" for name, permission in sorted(self.queues.items()))
        members = ", ".join(f"{name} {sorted(ids)}" for name, ids in sorted(self.members.items()))
        return f"queues {queues or 'none'}; brokers {members or 'none'}"


class NameServerTarget(Protocol):
    """One name server under test.

    Every call returns when its effect is visible. `open` is called first and `close` last. Methods of
    capabilities that the target does not declare are never called.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def times(self) -> Times: ...

    def open(self) -> None:
        """Prepare a name server that knows none of the suite's brokers and topics.

        Raises TargetError, as all other methods may.
        """
        ...

    def register(self, broker: Broker, topics: Sequence[str], over: Broker | None = None) -> None:
        """Register the broker over its connection; its number of topics determines its data version.

        With `over`, which a target with SHARE accepts, the broker uses the open connection of that broker
        from now on.
        """
        ...

    def unregister(self, broker: Broker) -> None: ...

    def hang_up(self, broker: Broker) -> None:
        """Close the broker's connection, if it has one; other brokers may use it too.

        Returns when the name server has noticed it, or should have.
        """
        ...

    def wipe_write(self, name: str) -> None:
        """Send WIPE_WRITE_PERM_OF_BROKER for a broker name."""
        ...

    def route(self, topic: str) -> Route | None:
        """Return the route that a client receives; None for "no such topic"."""
        ...

    def cluster(self) -> dict[str, frozenset[int]]:
        """Return the suite's brokers that the name server knows: ids by name."""
        ...

    def publish(self, topic: str) -> frozenset[str]:
        """Return the broker names to which a client would send with the current route."""
        ...

    def wait(self, seconds: float) -> None: ...

    def restart(self) -> None:
        """Kill the name server, which breaks all connections, and start it again."""
        ...

    def register_isolated(self, broker: Broker, topics: Sequence[str]) -> None:
        """Register a connected broker while nothing reaches the name server.

        The name server may receive the registration later, or never. Returns when it can be reached again.
        """
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...
