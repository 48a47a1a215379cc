"""The graph of all reachable states, with the fairness clauses that each state enables and each step takes.

An instance of a fairness clause is one bit of a mask.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic

from mqproof.reference.explorer.search import Label, OnLevel, check_size, uncollected
from mqproof.reference.liveness import Clause, Fair, Finite
from mqproof.reference.model import ConfigT, Model, Parameters, StateT

STATES_MAX: Final = 200_000
"""The largest graph that is searched for infinite runs: it keeps every step in memory."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A step to another state."""

    target: int
    label: Label
    taken: int
    """The mask of the fairness instances that the step takes."""
    finite: int
    """The mask of the clauses by which the step occurs finitely often."""


@dataclass(frozen=True, slots=True)
class StateGraph(Generic[StateT]):
    states: tuple[StateT, ...]
    """All reachable states, breadth first; the first `initial` of them are initial."""
    initial: int
    edges: tuple[tuple[Edge, ...], ...]
    """By state: the steps to other states."""
    enabled: tuple[int, ...]
    """By state: the mask of the fairness instances that it enables."""
    weak: int
    """The mask of the instances with weak fairness."""
    strong: int
    """The mask of the instances with strong fairness."""
    finite: int
    """The mask of the clauses about steps that occur finitely often."""
    clauses: Mapping[str, int]
    """By the name of a clause: the mask of its instances, or of the clause itself if its steps are finite."""

    def cyclic(self, node: int) -> Iterator[Edge]:
        """Yield the steps of a state that may occur infinitely often."""
        return (edge for edge in self.edges[node] if not edge.finite & self.finite)

    def without(self, name: str) -> "StateGraph[StateT]":
        """Return the graph without a fairness clause. Raises KeyError if there is none of this name."""
        kept = ~self.clauses[name]
        return replace(self, weak=self.weak & kept, strong=self.strong & kept, finite=self.finite & kept)

    def weakened(self, name: str) -> "StateGraph[StateT]":
        """Return the graph with weak instead of strong fairness for a clause."""
        mask = self.clauses[name] & self.strong
        return replace(self, weak=self.weak | mask, strong=self.strong & ~mask)


@dataclass(slots=True)
class _Instances:
    """Numbers the instances of the fairness clauses as bits."""

    clauses: tuple[Clause, ...]
    bits: dict[tuple[str, Any], int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    weak: int = 0
    strong: int = 0
    finite: int = 0

    def mask(self, config: Any, state: Any, action: str, parameters: Parameters) -> int:
        """Return the instances that a step takes."""
        found = 0
        for clause in self.clauses:
            if not isinstance(clause, Fair):
                continue
            if (instance := clause.instance(config, state, action, parameters)) is not None:
                found |= self._bit(clause, instance)
        return found

    def ends(self, config: Any, before: Any, action: str, after: Any) -> int:
        """Return the clauses by which a step occurs finitely often."""
        found = 0
        for clause in self.clauses:
            if isinstance(clause, Finite) and clause.steps(config, before, action, after):
                found |= self._bit(clause, ())
        return found

    def _bit(self, clause: Clause, instance: Any) -> int:
        key = (clause.name, instance)
        if key not in self.bits:
            self.bits[key] = bit = 1 << len(self.bits)
            self.names[clause.name] = self.names.get(clause.name, 0) | bit
            if isinstance(clause, Finite):
                self.finite |= bit
            elif clause.strong:
                self.strong |= bit
            else:
                self.weak |= bit
        return self.bits[key]


def state_graph(
    model: Model[ConfigT, StateT],
    config: ConfigT,
    *,
    on_level: OnLevel | None = None,
    states_max: int | None = None,
) -> StateGraph[StateT]:
    """Return the graph of all reachable states under the model's fairness.

    Raises:
        MemoryError: more than `states_max` states are reachable, or more than STATES_MAX.
    """
    instances = _Instances(model.fairness)
    steps = model.under(config)
    numbers = {state: i for i, state in enumerate(model.initial(config))}
    states, initial = list(numbers), len(numbers)
    edges: list[tuple[Edge, ...]] = []
    enabled: list[int] = []
    depth, end = 0, initial
    with uncollected():
        for state in states:
            found: list[Edge] = []
            mask = _beyond_bounds(model, config, state, instances)
            for name, parameters, after in steps(state):
                if after == state:
                    continue
                taken = instances.mask(config, state, name, parameters)
                mask |= taken
                target = numbers.setdefault(after, len(numbers))
                if target == len(states):
                    states.append(after)
                ends = instances.ends(config, state, name, after)
                found.append(Edge(target, (name, parameters), taken, ends))
            edges.append(tuple(found))
            enabled.append(mask)
            if len(edges) == end:
                depth, end = depth + 1, len(states)
                check_size(model, len(states), min(states_max or STATES_MAX, STATES_MAX))
                if on_level is not None:
                    on_level(depth, len(states))
    return StateGraph(
        states=tuple(states),
        initial=initial,
        edges=tuple(edges),
        enabled=tuple(enabled),
        weak=instances.weak,
        strong=instances.strong,
        finite=instances.finite,
        clauses=instances.names,
    )


def _beyond_bounds(model: Model[Any, Any], config: Any, state: Any, instances: _Instances) -> int:
    """Return the instances that are enabled only without the bounds of the configuration."""
    found = 0
    for clause in instances.clauses:
        if isinstance(clause, Finite) or clause.unbounded is None:
            continue
        whole = clause.unbounded(config)
        for name in clause.actions:
            action = model.actions[name]
            domain = action.domain(whole) if action.choices is None else action.choices(whole, state)
            for parameters in domain:
                after = action.apply(whole, state, *parameters)
                if after is not None and after != state:
                    found |= instances.mask(whole, state, name, parameters)
    return found
