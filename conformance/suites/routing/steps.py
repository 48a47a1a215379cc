"""The operations of the suite on a name server in one run and its answers, in the order of time."""

from dataclasses import dataclass, field

from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.routing.target import Broker, Route, Times


@dataclass(frozen=True, slots=True)
class Register:
    broker: Broker
    topics: tuple[str, ...]
    over: Broker | None = None
    """The broker whose open connection it uses from now on; None for its own or its last one."""

    def __str__(self) -> str:
        over = f" over the connection of {self.over}" if self.over else ""
        return f"{self.broker} registers with {', '.join(self.topics)}{over}"


@dataclass(frozen=True, slots=True)
class Unregister:
    broker: Broker

    def __str__(self) -> str:
        return f"{self.broker} unregisters"


@dataclass(frozen=True, slots=True)
class HangUp:
    broker: Broker

    def __str__(self) -> str:
        return f"the connection of {self.broker} closes"


@dataclass(frozen=True, slots=True)
class Wipe:
    name: str

    def __str__(self) -> str:
        return f"the write permission of {self.name} is removed"


@dataclass(frozen=True, slots=True)
class Restart:
    def __str__(self) -> str:
        return "the name server is killed and restarted"


@dataclass(frozen=True, slots=True)
class RegisterIsolated:
    """A registration that the name server may or may not have received."""

    broker: Broker
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.broker} registers with {', '.join(self.topics)}: the name server is isolated"


@dataclass(frozen=True, slots=True)
class QueryRoute:
    topic: str
    answer: Route | None

    def __str__(self) -> str:
        return f"route of {self.topic}: {self.answer or 'none'}"


@dataclass(frozen=True, slots=True)
class QueryCluster:
    answer: dict[str, frozenset[int]]

    def __str__(self) -> str:
        known = ", ".join(f"{name} {sorted(ids)}" for name, ids in sorted(self.answer.items()))
        return f"known brokers: {known or 'none'}"


@dataclass(frozen=True, slots=True)
class QueryPublish:
    topic: str
    answer: frozenset[str]

    def __str__(self) -> str:
        return f"a client sends {self.topic} to: {', '.join(sorted(self.answer)) or 'no broker'}"


Operation = (
    Register
    | RegisterIsolated
    | Unregister
    | HangUp
    | Wipe
    | Wait
    | Restart
    | QueryRoute
    | QueryCluster
    | QueryPublish
)


@dataclass(slots=True)
class Connections:
    """The open connections: which broker uses which one."""

    used: dict[Broker, object] = field(default_factory=dict)

    def register(self, broker: Broker, over: Broker | None) -> None:
        """Record that the broker registered over a connection, which is new if it had none."""
        if over is not None:
            self.used[broker] = self.used[over]
        else:
            self.used.setdefault(broker, object())

    def close(self, broker: Broker) -> frozenset[Broker]:
        """Close the broker's connection; return all brokers that used it."""
        closed = self.used.get(broker)
        gone = frozenset(each for each, used in self.used.items() if used is closed)
        for each in gone:
            del self.used[each]
        return gone


@dataclass(frozen=True, slots=True)
class History:
    times: Times
    operations: tuple[Operation, ...]
