"""The named invariants of a client's routes; each one is a pure function of a life.

Names and ids are those of spec/invariants.toml. The verdict is unknown, never held, if nothing was observed
that could show a violation.
"""

from collections.abc import Callable, Iterator
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.suites.convergence.steps import Calm, Life, Routed

ROUTED_WITHIN_S: Final = 90.0
"""The bound for a broker that stays up: a registration and a refresh, 30 s each, with retries."""
FORGOTTEN_WITHIN_S: Final = 180.0
"""The bound for a broker that stays down: its expiry (120 s), a scan, and a refresh, with retries."""


def _after(life: Life, seconds: float) -> Iterator[tuple[int, Routed, frozenset[str]]]:
    """Yield the routes that were observed so long after the faults, each with the brokers that are up."""
    calm: Calm | None = None
    for step, operation in enumerate(life.operations, 2):
        if isinstance(operation, Calm):
            calm = operation
        elif isinstance(operation, Routed) and calm is not None and operation.at_s >= calm.at_s + seconds:
            yield step, operation, calm.up


def eventually_routed(life: Life) -> Finding:
    """ROUTE-7 EventuallyRouted: a broker that stays up is in the client's route within the time limit."""
    tally = Tally()
    for step, routed, up in _after(life, ROUTED_WITHIN_S):
        tally.looked += len(up)
        for name in sorted(up - routed.names):
            tally.found(f"step {step}: {routed}, but {name} is up for {ROUTED_WITHIN_S:.0f} s")
    return tally.finding("routes")


def dead_broker_forgotten(life: Life) -> Finding:
    """ROUTE-3 DeadBrokerForgotten: a broker that stays down is not in the client's route after the limit."""
    tally = Tally()
    for step, routed, up in _after(life, FORGOTTEN_WITHIN_S):
        tally.looked += 1
        for name in sorted(routed.names - up):
            tally.found(f"step {step}: {routed}, but {name} is down for {FORGOTTEN_WITHIN_S:.0f} s")
    return tally.finding("routes")


CHECKERS: Final[dict[str, Callable[[Life], Finding]]] = {
    "ROUTE-3": dead_broker_forgotten,
    "ROUTE-7": eventually_routed,
}
"""The checkers by invariant id."""
