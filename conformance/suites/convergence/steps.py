"""The observations of one cluster, in the order of time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault was injected, or has ended."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Calm:
    """All faults end. From now on, these brokers stay up and the others stay down."""

    at_s: float
    up: frozenset[str]

    def __str__(self) -> str:
        return f"at {self.at_s:.0f} s all faults end; {', '.join(sorted(self.up))} is up"


@dataclass(frozen=True, slots=True)
class Routed:
    """The brokers in the client's current route."""

    at_s: float
    names: frozenset[str]

    def __str__(self) -> str:
        return f"at {self.at_s:.0f} s the client's route has {', '.join(sorted(self.names)) or 'no broker'}"


Operation = Fault | Calm | Routed


@dataclass(frozen=True, slots=True)
class Life:
    """All observations of one cluster."""

    operations: tuple[Operation, ...]
