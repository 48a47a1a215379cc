"""How much the clients of a workload do. What they do is conformance/adapters/workload/clients.py."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workload:
    """The same seed sends the same messages; in a simulated world it decides everything."""

    messages: int = 100
    """Sends of each producer."""
    producers: int = 3
    faults: int = 3
    """As far as the target allows them."""
    seed: int = 0
    settle_s: float = 30.0
    """Between the last send and the end: longer than retries and delays take together."""
