"""What an implementation must offer to be held to the routing model: one name server, driven step by step.

The brokers are the suite's own: it registers them, keeps quiet, hangs up. The name server may serve others at
the same time; the suite looks at names of its own only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

MASTER: Final = 0

TOPICS: Final = ("topic", "other")
"""A broker has the second one, or both."""


class Capability(StrEnum):
    """What a target can be asked for beyond registering and asking for routes."""

    WAIT = "wait"  # `wait`: time passes for the name server
    RESTART = "restart"  # `restart`
    ISOLATE = "isolate"  # `register_isolated`
    CLIENT = "client"  # `publish`: there is a client to be judged as well
    SLAVE_SPEAKS = "slave_speaks"  # since 5.0: without a master, the slave says which queues its name has


class Broker(NamedTuple):
    """One that the suite plays."""

    name: str
    broker_id: int
    """0 is the master."""

    def __str__(self) -> str:
        return f"{'master' if self.broker_id == MASTER else 'slave'} {self.name}"


@dataclass(frozen=True, slots=True)
class Times:
    """Of the name server, in seconds."""

    expiry_s: float
    """A broker that is silent for longer is forgotten by the next scan."""
    scan_s: float
    """Between two scans."""


@dataclass(frozen=True, slots=True)
class Route:
    """The answer to a route request, by broker name."""

    queues: dict[str, str]
    """read, or write (read and write)."""
    members: dict[str, frozenset[int]]
    """The ids that have an address."""

    def __str__(self) -> str:
        queues = ", ".join(f"{name}: {permission}" for name, permission in sorted(self.queues.items()))
        members = ", ".join(f"{name} {sorted(ids)}" for name, ids in sorted(self.members.items()))
        return f"queues {queues or 'none'}; brokers {members or 'none'}"


class NameServerTarget(Protocol):
    """One name server under test. Every call returns when its effect is there; `open` is the first, `close`
    the last. Methods of capabilities that the target does not declare are never called."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def times(self) -> Times: ...

    def open(self) -> None:
        """Nothing is known of the suite's brokers and topics. Raises TargetError, as all others may."""
        ...

    def register(self, broker: Broker, topics: Sequence[str]) -> None:
        """The broker registers over its own connection; its data version says how many topics it has."""
        ...

    def unregister(self, broker: Broker) -> None: ...

    def hang_up(self, broker: Broker) -> None:
        """Close the broker's connection, if it has one; returns when the name server has noticed, or should
        have."""
        ...

    def wipe_write(self, name: str) -> None:
        """WIPE_WRITE_PERM_OF_BROKER for a broker name."""
        ...

    def route(self, topic: str) -> Route | None:
        """What a client is told; None for "no such topic"."""
        ...

    def cluster(self) -> dict[str, frozenset[int]]:
        """The suite's brokers that the name server knows: ids by name."""
        ...

    def publish(self, topic: str) -> frozenset[str]:
        """The broker names to which a client that asks now would send."""
        ...

    def wait(self, seconds: float) -> None: ...

    def restart(self) -> None:
        """The name server dies, with all connections, and comes back."""
        ...

    def register_isolated(self, broker: Broker, topics: Sequence[str]) -> None:
        """As `register`, for a broker that is connected, while nothing reaches the name server: it may learn
        of that afterwards, or never. Returns when it can be reached again."""
        ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...
