"""What a suite is: what it judges, what it needs of a target, and the machine that draws its examples."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hypothesis.stateful import RuleBasedStateMachine

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.spec.catalogue import catalogue


class Session(Protocol):
    """One run of one target."""

    dead: bool
    """The target does not come up again."""

    @property
    def target(self) -> object:
        """The target that the session drives. One that keeps an event log has it as `events`."""
        ...

    def findings(self) -> dict[str, Finding]:
        """Every invariant of the suite judged on the run, by id."""
        ...

    def faults(self) -> Counter[FaultKind]:
        """How often each was met."""
        ...

    def actions(self) -> Counter[str]:
        """How often each action of the model was needed to explain what was seen."""
        ...

    def script(self) -> list[str]:
        """The run as steps for people."""
        ...


Judge = Callable[[Session], None]
"""Called with each run that nothing interrupted; raises if the run violates an invariant."""
TargetFactory = Callable[[], Any]
"""Makes targets of one suite, each of which implements the suite's own protocol."""


@dataclass(frozen=True, slots=True)
class Need:
    """The capabilities without which an invariant cannot be tested."""

    one_of: frozenset[str] = frozenset()
    ways: frozenset[str] = frozenset()
    """One of these as well. A result that is held lists those that the target lacks."""


Needs = Mapping[str, Need]


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    model: str
    """The module of spec/tla whose actions explain what is seen."""
    ids: tuple[str, ...]
    """The invariants that it judges."""
    needs: Needs
    machine: Callable[[Any, Judge], RuleBasedStateMachine]
    """A class of state machines, made of a target and a judge."""


def known(suite: Suite) -> tuple[str, ...]:
    """Return the ids that the suite judges, in the catalogue's order."""
    return tuple(invariant for invariant in catalogue() if invariant in suite.ids)


def option(suite: Suite) -> str:
    """Return the option of `conform` that selects this suite only."""
    return f" --suite {suite.name}"
