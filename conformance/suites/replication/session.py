"""One run of a master and its slave, as the engine judges it."""

from collections import Counter
from dataclasses import dataclass

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.suites.replication.checkers import CHECKERS, Life


@dataclass(frozen=True, slots=True)
class PairSession:
    """A finished run of a pair."""

    life: Life

    @property
    def operations(self) -> int:
        return len(self.life.sends)

    def findings(self) -> dict[str, Finding]:
        return {id_: check(self.life) for id_, check in CHECKERS.items()}

    def faults(self) -> Counter[FaultKind]:
        """Return nothing: the script has the faults, in words."""
        return Counter()

    def script(self) -> list[str]:
        return list(self.life.script)

    def scenarios(self) -> tuple[str, ...]:
        return ("\n".join(self.life.script),)
