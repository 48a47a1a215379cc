"""The results of one run of a suite, collected while it runs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from mqproof.conformance.engine.directed_scenarios import PairCoverage
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.engine.suite_definition import Session, Suite
from mqproof.report.model import Verdict
from mqproof.spec.events import Event


@dataclass(frozen=True, slots=True)
class Failure:
    """The shortest run seen that violates one invariant."""

    script: tuple[str, ...]
    finding: Finding
    examples: int
    """The number of examples until the first violation."""
    events: tuple[Event, ...] = ()
    """The target's event log of this run, if it keeps one."""
    drawn: bool = True
    """True if the drawn example violates this invariant; false if only a run shrunk from it does."""


@dataclass(slots=True)
class Examination:
    """The results of one run of a suite; updated after each example."""

    suite: Suite
    examples: int = 0
    """The number of examples until the first violation, without those used for shrinking."""
    operations: int = 0
    faults: Counter[FaultKind] = field(default_factory=Counter)
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    held_in: Counter[str] = field(default_factory=Counter)
    """Maps an invariant id to the number of examples in which it held."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Maps an invariant id to the shortest run that violates it.

    Only the run that the search ended with is minimal.
    """
    actions: Counter[str] = field(default_factory=Counter)
    """Maps an action of the model to the number of times that it explained an observation."""
    pairs: PairCoverage | None = None
    """The pairs of values of the suite's dimensions that the examples met."""
    seconds: float = 0.0

    def count(self, session: Session, findings: Mapping[str, Finding]) -> None:
        """Count one more example."""
        self.examples += 1
        self.operations += len(session.script()) - 1  # the first step opens the target
        self.faults.update(session.faults())
        self.actions.update(session.actions())
        for invariant, finding in findings.items():
            self.counts[invariant].update(finding.counts)
            self.held_in[invariant] += finding.verdict is Verdict.HELD

    def keep_failure(self, invariant: str, session: Session, finding: Finding, *, shrinking: bool) -> None:
        """Keep this run as the failure of the invariant, unless a shorter one was found before."""
        script = (*session.script(), *getattr(session.target, "afterwards", ()))
        found = self.failures.get(invariant)
        if found is None and shrinking:
            self.counts[invariant].update(finding.counts)
        if found is None or len(script) <= len(found.script):
            events = tuple(getattr(session.target, "events", ()))
            drawn = not shrinking if found is None else found.drawn
            self.failures[invariant] = Failure(script, finding, self.examples, events, drawn=drawn)
