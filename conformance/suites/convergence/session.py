"""One run of a cluster, as the engine judges it."""

from collections import Counter
from dataclasses import dataclass

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.suites.convergence.checkers import CHECKERS
from mqproof.conformance.suites.convergence.steps import Life


@dataclass(frozen=True, slots=True)
class ClusterLife:
    """A finished run of a cluster."""

    life: Life

    @property
    def operations(self) -> int:
        return len(self.life.operations)

    def findings(self) -> dict[str, Finding]:
        return {id_: check(self.life) for id_, check in CHECKERS.items()}

    def faults(self) -> Counter[FaultKind]:
        """Return nothing: the script has the faults, in words."""
        return Counter()

    def script(self) -> list[str]:
        return ["two name servers, two brokers and a client", *map(str, self.life.operations)]
