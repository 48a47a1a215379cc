"""Few paths that together cover every step of a state graph.

The algorithm is greedy. A path continues over steps that no path has taken, and passes through taken steps if
a new one is near. A new path begins with the shortest way to the first remaining step. States and steps are
ordered as a breadth-first search finds them, so the same model gives the same paths.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic

from mqproof.conformance.behaviours.json_values import order
from mqproof.reference.explorer.search import Label, explore
from mqproof.reference.model import ConfigT, Model, StateT

NEAR_MAX: Final = 40
"""Maximum number of states searched for a remaining step before a path ends."""


@dataclass(frozen=True, slots=True)
class Step:
    label: Label
    target: int
    """Number of the state."""


@dataclass(frozen=True, slots=True)
class Steps(Generic[StateT]):
    """A model's state graph; states are numbered as a breadth-first search finds them."""

    states: tuple[StateT, ...]
    initial: tuple[int, ...]
    out: tuple[tuple[Step, ...], ...]
    """Outgoing steps by state."""
    count: int
    """Number of steps."""


@dataclass(frozen=True, slots=True)
class Path:
    initial: int
    steps: tuple[Step, ...]


def graph(model: Model[ConfigT, StateT], config: ConfigT) -> Steps[StateT]:
    """Return the graph that `mqproof equiv` compares with TLC's, in a deterministic order."""
    edges: dict[StateT, list[tuple[str, Label, StateT]]] = {}
    words = lru_cache(maxsize=None)(lambda name, parameters: f"{name} {order(parameters)}")
    found = explore(
        model,
        config,
        on_edge=lambda before, name, parameters, after: edges.setdefault(before, []).append(
            (words(name, parameters), (name, parameters), after)
        ),
        stop_at_violation=False,
    )
    initial = model.initial(config)
    number = {state: n for n, state in enumerate(initial)}
    out: list[tuple[Step, ...]] = []
    for state in (states := list(initial)):  # the list grows: breadth first
        steps = sorted(edges.get(state, ()), key=lambda edge: edge[0])
        for _, _, after in steps:
            if after not in number:
                number[after] = len(states)
                states.append(after)
        out.append(tuple(Step(label, number[after]) for _, label, after in steps))
    assert len(states) == len(found.parents), f"{model.name}: a state cannot be reached by any step"
    return Steps(tuple(states), tuple(range(len(initial))), tuple(out), found.edges)


def cover(steps: Steps[Any]) -> tuple[Path, ...]:
    """Return paths from initial states that take every step at least once."""
    left = [deque(range(len(out))) for out in steps.out]
    ways = _ways(steps)
    paths: list[Path] = []
    for first in sorted(range(len(left)), key=lambda state: (len(ways[state][1]), state)):
        while left[first]:
            initial, way = ways[first]
            taken = list(way)
            _go_on(steps, left, first, taken)
            paths.append(Path(initial, tuple(taken)))
    return tuple(paths)


def _ways(steps: Steps[Any]) -> list[tuple[int, tuple[Step, ...]]]:
    """Return, for each state, the shortest way to it and its initial state."""
    came: list[tuple[int, Step] | None] = [None] * len(steps.states)
    begins: list[int] = list(range(len(steps.states)))
    seen = set(steps.initial)
    todo = deque(steps.initial)
    while todo:
        state = todo.popleft()
        for step in steps.out[state]:
            if step.target not in seen:
                seen.add(step.target)
                came[step.target], begins[step.target] = (state, step), begins[state]
                todo.append(step.target)
    return [(begins[state], _back(came, state)) for state in range(len(steps.states))]


def _back(came: Sequence[tuple[int, Step] | None], state: int) -> tuple[Step, ...]:
    way: list[Step] = []
    while (link := came[state]) is not None:
        state = link[0]
        way.append(link[1])
    return tuple(reversed(way))


def _go_on(steps: Steps[Any], left: list[deque[int]], state: int, taken: list[Step]) -> None:
    while True:
        while left[state]:
            step = steps.out[state][left[state].popleft()]
            taken.append(step)
            state = step.target
        bridge = _near(steps, left, state)
        if not bridge:
            return
        taken += bridge
        state = bridge[-1].target


def _near(steps: Steps[Any], left: list[deque[int]], state: int) -> list[Step]:
    """Return the shortest way to a nearby state with a remaining step; empty if there is none."""
    came: dict[int, tuple[int, Step]] = {}
    todo, seen = deque([state]), {state}
    while todo and len(seen) < NEAR_MAX:
        at = todo.popleft()
        for step in steps.out[at]:
            if step.target in seen:
                continue
            seen.add(step.target)
            came[step.target] = (at, step)
            if left[step.target]:
                way, back = [], step.target
                while back != state:
                    back, link = came[back]
                    way.append(link)
                return way[::-1]
            todo.append(step.target)
    return []
