"""One group of push consumers from its first member to its end, as the engine judges it."""

from collections import Counter
from dataclasses import dataclass

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.suites.consumers.target import Group


@dataclass(frozen=True, slots=True)
class GroupSession:
    """A finished run of a group. Its steps are those of the delivery suite."""

    run: Group

    @property
    def operations(self) -> int:
        return len(self.run.run.operations)

    def findings(self) -> dict[str, Finding]:
        return self.run.findings()

    def faults(self) -> Counter[FaultKind]:
        return self.run.faults()

    def script(self) -> list[str]:
        return self.run.script()

    def scenarios(self) -> list[str]:
        return ["\n".join(lines) for lines in self.run.scenarios]
