"""The size of a workload. conformance/adapters/workload/workload_clients.py has the clients."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workload:
    """Parameters of a workload.

    The same seed sends the same messages; in a simulation it determines everything.
    """

    messages: int = 100
    """Number of sends of each producer."""
    producers: int = 3
    faults: int = 3
    """Number of faults, as far as the target allows them."""
    seed: int = 0
    settle_s: float = 30.0
    """Seconds between the last send and the end: longer than retries and delays together."""
    poll_pause_s: float = 0.05
    """Seconds between two rounds of polls of a consumer that polls."""
