"""The result of one rule or invariant judged on one run or history."""

from dataclasses import dataclass, field
from typing import Final

from mqproof.report.model import Verdict, Witness

SPEC_1: Final = "SPEC-1"
"""The id of the invariant that the model explains every observation."""
WITNESSES_MAX: Final = 16
"""So many are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with what was counted. Having seen nothing that could show a violation is unknown."""

    verdict: Verdict
    counts: dict[str, int]
    witnesses: tuple[Witness, ...] = ()


@dataclass(slots=True)
class Tally:
    """What a rule has looked at and found so far."""

    looked: int = 0
    wrong: int = 0
    explained: int = 0
    """Would be wrong, had it no cause."""
    witnesses: list[Witness] = field(default_factory=list)

    def found(self, text: str, **values: object) -> None:
        """One violation; the values are those that a program may want."""
        self.wrong += 1
        if len(self.witnesses) < WITNESSES_MAX:
            self.witnesses.append(Witness(text, {name: str(value) for name, value in values.items()}))

    def finding(self, looked_at: str, **counts: int) -> Finding:
        """`looked_at` names what `looked` counts."""
        told = {looked_at: self.looked, **counts, "wrong": self.wrong}
        if self.explained:
            told["explained"] = self.explained
        if self.wrong:
            return Finding(Verdict.VIOLATED, told, tuple(self.witnesses))
        return Finding(Verdict.HELD if self.looked else Verdict.UNKNOWN, told)


def with_explanation(
    findings: dict[str, Finding], observations: int, unexplained: Witness | None, *, lost_track: bool
) -> dict[str, Finding]:
    """Add SPEC-1 to the findings of a run.

    It is violated when the model does not explain an observation and no named invariant says why, and unknown
    when nothing was observed or the possible states were too many to follow (`lost_track`).
    """
    counts = {"observations": observations}
    named = any(finding.verdict is Verdict.VIOLATED for finding in findings.values())
    if unexplained and not named:
        return {**findings, SPEC_1: Finding(Verdict.VIOLATED, counts, (unexplained,))}
    held = observations and not unexplained and not lost_track
    return {**findings, SPEC_1: Finding(Verdict.HELD if held else Verdict.UNKNOWN, counts)}


def unexplained_step(step: int, operation: object, allowed: str) -> Witness:
    """Return the witness that no state of the model explains this step; `allowed` are those before it."""
    text = f"no state of the model explains step {step} ({operation})"
    return Witness(text, {"the model allowed before": allowed})


def not_judged(counts: dict[str, int] | None = None) -> Finding:
    """The history does not say what is asked of it."""
    return Finding(Verdict.NOT_TESTED, counts or {})
