"""One run of a group, as the engine judges it."""

from collections import Counter
from dataclasses import dataclass

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.suites.dledger.checkers import CHECKERS
from mqproof.conformance.suites.dledger.steps import Life


@dataclass(frozen=True, slots=True)
class GroupLife:
    """A finished run of a group."""

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
        return ["a group of three members", *map(str, self.life.operations)]
