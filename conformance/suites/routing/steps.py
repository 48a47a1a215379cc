"""The operations of the suite on a name server in one run and its answers, in the order of time."""

from dataclasses import dataclass

from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.routing.target import Broker, Route, Times


@dataclass(frozen=True, slots=True)
class Register:
    broker: Broker
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.broker} registers with {', '.join(self.topics)}"


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


@dataclass(frozen=True, slots=True)
class History:
    times: Times
    operations: tuple[Operation, ...]
