"""The result of one rule or invariant judged on one run or history."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqproof.report.model import Verdict, Witness

SPEC_1: Final = "SPEC-1"
"""The id of the invariant "the model explains every observation"."""
WITNESSES_MAX: Final = 16
"""The maximum number of witnesses that are kept; all violations are counted."""


class Explained(NamedTuple):
    """Something that would be a violation if no known cause explained it."""

    subject: tuple[str, ...]
    """The values that the witness of a violation would have."""
    kind: str
    line: int
    """The line of the history that shows the cause."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with its counts.

    The verdict is unknown if nothing was observed that could show a violation.
    """

    verdict: Verdict
    counts: dict[str, int]
    witnesses: tuple[Witness, ...] = ()
    explained: tuple[Explained, ...] = ()


@dataclass(slots=True)
class Tally:
    """The number of checks that a rule has made so far, and the violations found."""

    looked: int = 0
    wrong: int = 0
    explained: int = 0
    """The number of checks that would be violations if no known cause explained them."""
    reasons: list[Explained] = field(default_factory=list)
    """The causes of those that name one."""
    witnesses: list[Witness] = field(default_factory=list)

    def found(self, text: str, **values: object) -> None:
        """Record one violation; the values are for programs that read the report."""
        self.wrong += 1
        if len(self.witnesses) < WITNESSES_MAX:
            self.witnesses.append(Witness(text, {name: str(value) for name, value in values.items()}))

    def explain(self, reason: tuple[str, int], **values: object) -> None:
        """Record that a known cause explains what would be a violation with these values."""
        self.explained += 1
        self.reasons.append(Explained(tuple(map(str, values.values())), *reason))

    def finding(self, looked_at: str, **counts: int) -> Finding:
        """Return the finding; `looked_at` names the things that `looked` counts."""
        all_counts = {looked_at: self.looked, **counts, "wrong": self.wrong}
        if self.explained:
            all_counts["explained"] = self.explained
        if self.wrong:
            return Finding(Verdict.VIOLATED, all_counts, tuple(self.witnesses))
        verdict = Verdict.HELD if self.looked else Verdict.UNKNOWN
        return Finding(verdict, all_counts, explained=tuple(self.reasons))


def with_explanation(
    findings: dict[str, Finding], observations: int, unexplained: Witness | None, *, lost_track: bool
) -> dict[str, Finding]:
    """Add SPEC-1 to the findings of a run.

    SPEC-1 is violated when the model does not explain an observation and no named invariant is violated. It
    is unknown when nothing was observed or too many states were possible to follow (`lost_track`).
    """
    counts = {"observations": observations}
    named = any(finding.verdict is Verdict.VIOLATED for finding in findings.values())
    if unexplained and not named:
        return {**findings, SPEC_1: Finding(Verdict.VIOLATED, counts, (unexplained,))}
    held = observations and not unexplained and not lost_track
    return {**findings, SPEC_1: Finding(Verdict.HELD if held else Verdict.UNKNOWN, counts)}


def with_wrong_answers(findings: dict[str, Finding], wrong: Sequence[Witness]) -> dict[str, Finding]:
    """Return the findings with SPEC-1 violated by answers that the protocol documentation does not allow.

    A violation of an invariant stays the only one, as in `with_explanation`.
    """
    if not wrong or any(finding.verdict is Verdict.VIOLATED for finding in findings.values()):
        return findings
    return {**findings, SPEC_1: Finding(Verdict.VIOLATED, {"wrong answers": len(wrong)}, tuple(wrong))}


def unexplained_step(step: int, operation: object, allowed: str) -> Witness:
    """Return the witness that no state of the model explains this step; `allowed` describes earlier
    states."""
    text = f"no state of the model explains step {step} ({operation})"
    return Witness(text, {"the model allowed before": allowed})


def not_judged(counts: dict[str, int] | None = None) -> Finding:
    """Return the finding for a history that does not contain the data that the invariant needs."""
    return Finding(Verdict.NOT_TESTED, counts or {})
