"""Breadth-first search over a reference model: all reachable states, invariants, shortest counterexamples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from reference.model import ConfigT, Model, Parameters, StateT


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
    """From an initial state (action "Init") to the state or step that violates; a shortest one."""


@dataclass(frozen=True, slots=True)
class Exploration(Generic[StateT]):
    parents: dict[StateT, tuple[StateT, str, Parameters] | None]
    """Every reachable state, in the order found, with the step that first led to it; None if initial."""
    edges: int
    depth: int
    """Number of states on the longest of the shortest paths, as TLC counts it."""
    violation: Violation[StateT] | None

    def path(self, state: StateT) -> tuple[Step[StateT], ...]:
        """A shortest path to a reachable state. KeyError when it is not reachable."""
        return path_to(self.parents, state)


def path_to(
    parents: dict[StateT, tuple[StateT, str, Parameters] | None], state: StateT
) -> tuple[Step[StateT], ...]:
    steps: list[Step[StateT]] = []
    while (link := parents[state]) is not None:
        before, action, parameters = link
        steps.append(Step(action, parameters, state))
        state = before
    steps.append(Step("Init", (), state))
    return tuple(reversed(steps))


def explore(
    model: Model[ConfigT, StateT],
    config: ConfigT,
    *,
    on_edge: Callable[[StateT, str, Parameters, StateT], None] | None = None,
    stop_at_violation: bool = True,
    states_max: int | None = None,
) -> Exploration[StateT]:
    """Walks every reachable state, breadth first, and judges every invariant on the way.

    `on_edge` is told of every step, also those that lead to a known state.

    Raises:
        MemoryError: more than `states_max` states are reachable.
    """
    parents: dict[StateT, tuple[StateT, str, Parameters] | None] = dict.fromkeys(model.initial(config))
    frontier = list(parents)
    edges = 0
    depth = 0
    violation = _first_violation(model, config, parents, frontier)
    while frontier and not (violation and stop_at_violation):
        depth += 1
        found: list[StateT] = []
        for state in frontier:
            for name, parameters, after in model.steps(config, state):
                edges += 1
                if on_edge is not None:
                    on_edge(state, name, parameters, after)
                if violation is None:
                    violation = _step_violation(model, config, parents, state, name, parameters, after)
                if after not in parents:
                    parents[after] = (state, name, parameters)
                    found.append(after)
        if states_max is not None and len(parents) > states_max:
            raise MemoryError(f"{model.name}: more than {states_max} states")
        violation = violation or _first_violation(model, config, parents, found)
        frontier = found
    return Exploration(parents, edges, depth, violation)


def _first_violation(
    model: Model[ConfigT, StateT],
    config: ConfigT,
    parents: dict[StateT, tuple[StateT, str, Parameters] | None],
    states: list[StateT],
) -> Violation[StateT] | None:
    for state in states:
        for name, holds in model.invariants.items():
            if not holds(config, state):
                return Violation(name, path_to(parents, state))
    return None


def _step_violation(
    model: Model[ConfigT, StateT],
    config: ConfigT,
    parents: dict[StateT, tuple[StateT, str, Parameters] | None],
    before: StateT,
    action: str,
    parameters: Parameters,
    after: StateT,
) -> Violation[StateT] | None:
    for name, holds in model.step_invariants.items():
        if not holds(config, before, action, after):
            return Violation(name, (*path_to(parents, before), Step(action, parameters, after)))
    return None
