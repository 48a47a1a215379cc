"""One run of one target in steps, each explained by the states of a model that are still possible.

A suite says which states are possible at first, and which can come of one by an operation as it was observed.
Whatever is not known (an answer that was not waited for, what an expiry took) is several states, until an
observation decides; when none is left, the model forbids what was seen.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from mqproof.conformance.engine.broker_faults import Befall
from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.finding import Finding, unexplained_step, with_explanation
from mqproof.report.model import Witness

StateT = TypeVar("StateT", bound=Hashable)
OperationT = TypeVar("OperationT")

STATES_MAX: Final = 5_000
"""More possible states than this are not followed."""
_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Explanation(Generic[StateT, OperationT]):
    """How a model explains operations."""

    initial: Iterable[StateT]
    after: Callable[[StateT, OperationT], Iterable[StateT]]
    """The states that an operation may lead to; none if it cannot have been observed in this one."""
    tell: Callable[[StateT], str]
    """A state for people."""
    action: Callable[[OperationT], str]
    """The action of the model that explains it."""


@dataclass(frozen=True, slots=True)
class Run(Generic[OperationT]):
    """What was done and seen, in the order of time; `opened` says of what, as the first step."""

    opened: str
    operations: tuple[OperationT, ...]

    def numbered(self) -> Iterable[tuple[int, OperationT]]:
        """Every operation with the number of its step."""
        return enumerate(self.operations, start=2)


Checkers = Mapping[str, Callable[[Run[OperationT]], Finding]]
"""The named invariants, by id: each a pure function of a run."""


class Stepped(Generic[StateT, OperationT]):
    """Writes down what was seen and follows the possible states. A suite's session is one that drives a
    target."""

    dead = False
    """Whether the target is gone for good."""

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

    def saw(self, operation: OperationT) -> None:
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
        """Every invariant judged on what was seen so far, by id; with SPEC-1."""
        run = self.run
        findings = {invariant: checker(run) for invariant, checker in self._checkers.items()}
        return with_explanation(findings, len(run.operations), self._unexplained, lost_track=self._lost_track)

    def actions(self) -> Counter[str]:
        """How often each action of the model was taken to explain something."""
        return self._actions

    def faults(self) -> Counter[FaultKind]:
        """How often each was met."""
        return Counter(kind for one in self._operations for kind in self.faults_in(one))

    def faults_in(self, operation: OperationT) -> Iterable[FaultKind]:
        """Those that the operation met; a suite adds its own."""
        return (KINDS[operation.fault],) if isinstance(operation, Befall) else ()

    def script(self) -> list[str]:
        """The run as steps for people, the first of which opens the target."""
        return [self._opened, *map(str, self._operations)]

    def _shown(self) -> str:
        shown = [self._explanation.tell(state) for state in sorted(self.states, key=repr)[:_SHOWN_MAX]]
        more = len(self.states) - len(shown)
        return " or ".join(shown) + (f" (and {more} more states)" if more else "")
