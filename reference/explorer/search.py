"""Breadth-first search over a reference model: all reachable states, invariants, shortest counterexamples."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic

from mqproof.reference.model import ConfigT, Model, Parameters, StateT

Label = tuple[str, Parameters]
"""An action's name and its parameters."""

OnLevel = Callable[[int, int], None]
"""Receives, after each level, its depth and the number of known states."""

LABELS_MAX: Final = 1 << 24
"""A link to a parent is one number: the parent's number times this, plus the label's number."""

INITIAL: Final = -1
"""The link of an initial state."""


@dataclass(frozen=True, slots=True)
class Step(Generic[StateT]):
    """One step of a path: the action that was taken and the state that it led to."""

    action: str
    parameters: Parameters
    state: StateT


@dataclass(frozen=True, slots=True)
class Violation(Generic[StateT]):
    invariant: str
    path: tuple[Step[StateT], ...]
    """A shortest path from an initial state (action "Init") to the violating state or step."""


@dataclass(frozen=True, slots=True)
class Exploration(Generic[StateT]):
    parents: dict[StateT, int]
    """Every reachable state, in the order found, with the step that first led to it, packed in a number."""
    labels: tuple[Label, ...]
    """The labels that the numbers refer to."""
    depth: int
    """Number of states on the longest of the shortest paths, as TLC counts it."""
    taken: Mapping[str, int]
    """How often each action was taken, including steps to a known state."""
    violation: Violation[StateT] | None

    @property
    def edges(self) -> int:
        return sum(self.taken.values())

    def path(self, state: StateT) -> tuple[Step[StateT], ...]:
        """Return a shortest path to a reachable state. Raises KeyError if it is not reachable."""
        return _path_to(self.parents, self.labels, state)


def path_text(path: Sequence[Step[Any]]) -> str:
    """Return the path as text: `Init -> Action('m1',) -> ...`."""
    return " -> ".join(step.action + (str(step.parameters) if step.parameters else "") for step in path)


def explore(
    model: Model[ConfigT, StateT],
    config: ConfigT,
    *,
    on_edge: Callable[[StateT, str, Parameters, StateT], None] | None = None,
    on_level: OnLevel | None = None,
    stop_at_violation: bool = True,
    states_max: int | None = None,
) -> Exploration[StateT]:
    """Visit every reachable state, breadth first, and check every invariant.

    `on_edge` receives every step, including those to a known state.

    Raises:
        MemoryError: more than `states_max` states are reachable.
    """
    steps = model.under(config)
    parents = dict.fromkeys(model.initial(config), INITIAL)
    numbers: dict[Label, int] = {}
    taken = dict.fromkeys(model.actions, 0)
    frontier = list(parents)
    depth = 0
    broken = first_broken(model, config, frontier)
    violation = broken and Violation(broken[0], _path_to(parents, (), broken[1]))
    with uncollected():
        while frontier and not (violation and stop_at_violation):
            depth += 1
            found: list[StateT] = []
            for source, state in enumerate(frontier, start=len(parents) - len(frontier)):
                for name, parameters, after in steps(state):
                    taken[name] += 1
                    if on_edge is not None:
                        on_edge(state, name, parameters, after)
                    if violation is None and (invariant := broken_step(model, config, state, name, after)):
                        path = _path_to(parents, tuple(numbers), state)
                        violation = Violation(invariant, (*path, Step(name, parameters, after)))
                    if after not in parents:
                        number = numbers.setdefault((name, parameters), len(numbers))
                        parents[after] = source * LABELS_MAX + number
                        found.append(after)
                check_size(model, len(parents), states_max)
            if violation is None and (broken := first_broken(model, config, found)):
                violation = Violation(broken[0], _path_to(parents, tuple(numbers), broken[1]))
            frontier = found
            if on_level is not None:
                on_level(depth, len(parents))
    return Exploration(parents, tuple(numbers), depth, taken, violation)


def _path_to(
    parents: dict[StateT, int], labels: tuple[Label, ...], state: StateT
) -> tuple[Step[StateT], ...]:
    states = list(parents)
    steps: list[Step[StateT]] = []
    while (link := parents[state]) != INITIAL:
        source, number = divmod(link, LABELS_MAX)
        steps.append(Step(*labels[number], state))
        state = states[source]
    steps.append(Step("Init", (), state))
    return tuple(reversed(steps))


def first_broken(
    model: Model[ConfigT, StateT], config: ConfigT, states: Iterable[StateT]
) -> tuple[str, StateT] | None:
    """Return the first state that violates an invariant, after that invariant's name."""
    for state in states:
        for name, holds in model.invariants.items():
            if not holds(config, state):
                return name, state
    return None


def broken_step(
    model: Model[ConfigT, StateT], config: ConfigT, before: StateT, action: str, after: StateT
) -> str | None:
    """Return the name of the first step invariant that a step violates."""
    for name, holds in model.step_invariants.items():
        if not holds(config, before, action, after):
            return name
    return None


def check_size(model: Model[Any, Any], states: int, states_max: int | None) -> None:
    """Raise MemoryError if there are more states than allowed."""
    if states_max is not None and states > states_max:
        raise MemoryError(f"{model.name}: more than {states_max} states")


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable Python's cycle collector: states have no cycles, and it would traverse all of them again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
