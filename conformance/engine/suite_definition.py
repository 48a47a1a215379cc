"""The definition of a suite: its invariants, the capabilities they need, and the machine for its examples."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from hypothesis.stateful import RuleBasedStateMachine

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.engine.targets import Examined
from mqproof.conformance.engine.value_pairs import NO_DIMENSIONS, Dimensions, Row
from mqproof.spec.catalogue import catalogue


class Session(Protocol):
    """One run of the suite against one target."""

    dead: bool
    """True if the target does not start again."""

    @property
    def target(self) -> object:
        """The target that the session drives. A target that writes an event log has it as `events`.

        A target whose answers are watched has what is wrong in them as `wrong_answers`.
        """
        ...

    def findings(self) -> dict[str, Finding]:
        """Judge every invariant of the suite on the run; return the findings by id."""
        ...

    def faults(self) -> Counter[FaultKind]:
        """Return how often each kind of fault occurred."""
        ...

    def actions(self) -> Counter[str]:
        """Return how often each action of the model explained an observation."""
        ...

    def script(self) -> list[str]:
        """Return the run as readable lines, one for each step."""
        ...


Judge = Callable[[Session], None]
"""Called with each run that was not interrupted; raises if the run violates an invariant."""
TargetFactory = Callable[[], Examined]
"""Creates targets of one suite; each target implements the protocol of that suite."""

MachineFactory = Callable[[Examined, Judge], RuleBasedStateMachine]
"""Creates the state machine of one example. The target must implement the protocol of the suite."""
TargetT = TypeVar("TargetT", bound=Examined)
Scenario = Callable[[Session, Row], None]
"""Performs steps that have the values of the row. The session must be one of the suite."""
SessionT = TypeVar("SessionT", bound=Session)


def machine_of(machine: Callable[[TargetT, Judge], RuleBasedStateMachine]) -> MachineFactory:
    """Return a suite's class of state machines as a factory that the engine can call.

    The engine knows of a target only that it is `Examined`. The registry pairs each suite with targets of its
    own protocol, so that the cast is safe.
    """
    return cast("MachineFactory", machine)


def scenario_of(scenario: Callable[[SessionT, Row], None]) -> Scenario:
    """Return a suite's scenario as a function that the engine can call, as `machine_of` does for machines."""
    return cast("Scenario", scenario)


def no_scenario(_: Session, __: Row) -> None:
    """Perform nothing, for a suite without dimensions."""


@dataclass(frozen=True, slots=True)
class Need:
    """The capabilities without which an invariant cannot be tested.

    At least one of `one_of` is needed, if it is not empty.
    """

    one_of: frozenset[str] = frozenset()
    ways: frozenset[str] = frozenset()
    """The ways to test the invariant; at least one is needed.

    A held result lists the ways that the target lacks.
    """


Needs = Mapping[str, Need]


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    model: str
    """The module of spec/tla whose actions explain the observations."""
    ids: tuple[str, ...]
    """The invariants that the suite judges."""
    needs: Needs
    machine: MachineFactory
    """Creates the state machine of one example; see `machine_of`."""
    dimensions: Dimensions = NO_DIMENSIONS
    """The values whose pairs the examples must meet."""
    scenario: Scenario = no_scenario
    """Meets the pairs of a row, at the end of an example; see `scenario_of`."""


def known(suite: Suite) -> tuple[str, ...]:
    """Return the ids that the suite judges, in the catalogue's order."""
    return tuple(invariant for invariant in catalogue() if invariant in suite.ids)


def option(suite: Suite) -> str:
    """Return the option of `conform` that selects this suite only."""
    return f" --suite {suite.name}"
