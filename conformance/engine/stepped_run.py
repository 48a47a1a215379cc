"""One run of one target in steps, each explained by the states of a model that are still possible.

A suite defines the initial states, and the states that may follow from a state by an observed operation. An
unknown effect (a request whose answer was not awaited, or the messages that an expiry deleted) leads to
several states until an observation decides. When no state is left, the model forbids the observation.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.finding import Finding, unexplained_step, with_explanation
from mqproof.report.model import Witness

StateT = TypeVar("StateT", bound=Hashable)
OperationT = TypeVar("OperationT")

STATES_MAX: Final = 5_000
"""The maximum number of possible states; with more, the model is no longer followed."""
_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Explanation(Generic[StateT, OperationT]):
    """The functions by which a model explains operations."""

    initial: Iterable[StateT]
    after: Callable[[StateT, OperationT], Iterable[StateT]]
    """Returns the states that may follow; none if the operation cannot be observed in this state."""
    describe: Callable[[StateT], str]
    """Returns a description of a state for people."""
    action: Callable[[OperationT], str]
    """Returns the action of the model that explains the operation."""


@dataclass(frozen=True, slots=True)
class Run(Generic[OperationT]):
    """The operations of a run with their results, in order of time; `opened` describes the first step."""

    opened: str
    operations: tuple[OperationT, ...]

    def numbered(self) -> Iterable[tuple[int, OperationT]]:
        """Return every operation with the number of its step."""
        return enumerate(self.operations, start=2)


Checkers = Mapping[str, Callable[[Run[OperationT]], Finding]]
"""The named invariants, by id: each one is a pure function of a run."""


class Stepped(Generic[StateT, OperationT]):
    """Records observations and follows the possible states.

    A suite's session is a subclass that drives a target.
    """

    dead = False
    """True if the target is permanently gone."""

    def __init__(
        self,
        opened: str,
        explanation: Explanation[StateT, OperationT],
        checkers: Checkers[OperationT],
    ) -> None:
        self.states = frozenset(explanation.initial)
        self._actions: Counter[str] = Counter()
        self._opened = opened
        self._explanation = explanation
        self._checkers = checkers
        self._operations: list[OperationT] = []
        self._unexplained: Witness | None = None
        self._lost_track = False

    @property
    def run(self) -> Run[OperationT]:
        return Run(self._opened, tuple(self._operations))

    def observe(self, operation: OperationT) -> None:
        """Record an operation, and replace the possible states by those after it."""
        self._operations.append(operation)
        if self._unexplained or self._lost_track:
            return
        explanation = self._explanation
        after = frozenset(s for state in self.states for s in explanation.after(state, operation))
        if not after:
            self._unexplained = unexplained_step(len(self._operations) + 1, operation, self._shown())
            return
        self._actions[explanation.action(operation)] += 1
        self.states = after
        self._lost_track = len(after) > STATES_MAX

    def findings(self) -> dict[str, Finding]:
        """Judge every invariant on the observations so far; return the findings by id, including SPEC-1."""
        run = self.run
        findings = {invariant: checker(run) for invariant, checker in self._checkers.items()}
        return with_explanation(findings, len(run.operations), self._unexplained, lost_track=self._lost_track)

    def actions(self) -> Counter[str]:
        """Return how often each action of the model explained an observation."""
        return self._actions

    def faults(self) -> Counter[FaultKind]:
        """Return how often each kind of fault occurred."""
        return Counter(kind for one in self._operations for kind in self.faults_in(one))

    def faults_in(self, operation: OperationT) -> Iterable[FaultKind]:
        """Return the faults in the operation; a suite adds its own."""
        return (KINDS[operation.fault],) if isinstance(operation, InjectFault) else ()

    def script(self) -> list[str]:
        """Return the run as steps for people; the first step opens the target."""
        return [self._opened, *map(str, self._operations)]

    def _shown(self) -> str:
        shown = [self._explanation.describe(state) for state in sorted(self.states, key=repr)[:_SHOWN_MAX]]
        more = len(self.states) - len(shown)
        return " or ".join(shown) + (f" (and {more} more states)" if more else "")
