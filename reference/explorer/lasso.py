"""Finds an infinite run that violates a liveness property: a path, and a cycle that repeats for ever.

On a finite graph, such a run exists if and only if a strongly connected set of states has a fair cycle. A
weakly fair action that is enabled in all states of the cycle must be taken in it. A strongly fair action that
is enabled in one of them must be taken in it. States that enable a strongly fair action without taking it are
removed, and the rest is searched again. A state may also remain for ever: this is a cycle without a step.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

from mqproof.reference.explorer.components import components
from mqproof.reference.explorer.search import Step, path_text
from mqproof.reference.explorer.state_graph import Edge, StateGraph
from mqproof.reference.liveness import Obligation, Obligations
from mqproof.reference.model import StateT

Way = list[tuple[int, Edge]]
"""Steps one after the other, each with the number of its source."""


@dataclass(frozen=True, slots=True)
class Lasso(Generic[StateT]):
    """An infinite run: a path from an initial state, then a cycle from the path's last state back to it."""

    of: tuple[Any, ...]
    """The instance of the property that the run violates."""
    path: tuple[Step[StateT], ...]
    cycle: tuple[Step[StateT], ...]
    """The steps of the cycle; empty if the last state of the path is never left."""


def lasso_text(lasso: Lasso[Any]) -> str:
    """Return the run as text: `Init -> Send('m1',), then for ever: Crash -> Restart`."""
    cycle = path_text(lasso.cycle) if lasso.cycle else "nothing happens"
    of = f" (for {', '.join(map(str, lasso.of))})" if lasso.of else ""
    return f"{path_text(lasso.path)}, then for ever: {cycle}{of}"


def find_lasso(graph: StateGraph[StateT], obligations: Obligations[StateT]) -> Lasso[StateT] | None:
    """Return a fair run that violates one of the obligations, or None if there is none."""
    for obligation in obligations:
        held = [obligation.during(state) for state in graph.states]
        reached = _reached(graph, obligation, held)
        component = _fair_component(graph, reached, obligation)
        if component is not None:
            return _lasso(graph, obligation, held, component)
    return None


def _reached(graph: StateGraph[StateT], obligation: Obligation[StateT], held: list[bool]) -> set[int]:
    """Return the states that a violating run may visit from the state with `since` on."""
    begins = {i for i, state in enumerate(graph.states) if held[i] and obligation.since(state)}
    waiting = list(begins)
    while waiting:
        for edge in graph.edges[waiting.pop()]:
            if held[edge.target] and edge.target not in begins:
                begins.add(edge.target)
                waiting.append(edge.target)
    return begins


def _fair_component(
    graph: StateGraph[StateT], nodes: Iterable[int], obligation: Obligation[StateT]
) -> frozenset[int] | None:
    """Return states that a fair cycle can visit, all of them, or None."""
    searches = [set(nodes)]

    def successors(node: int) -> Iterable[int]:
        return (edge.target for edge in graph.cyclic(node))

    while searches:
        for component in components(searches.pop(), successors):
            taken, enabled = _taken(graph, component), [graph.enabled[node] for node in component]
            always, sometimes = _all(enabled), _any(enabled)
            if always & graph.weak & ~taken:
                continue
            if not any(obligation.again(graph.states[node]) for node in component):
                continue
            if not (missing := sometimes & graph.strong & ~taken):
                return component
            if rest := {node for node in component if not graph.enabled[node] & missing}:
                searches.append(rest)
    return None


def _taken(graph: StateGraph[Any], component: frozenset[int]) -> int:
    return _any(e.taken for node in component for e in graph.cyclic(node) if e.target in component)


def _any(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _all(masks: Iterable[int]) -> int:
    found = -1
    for mask in masks:
        found &= mask
    return found


def _lasso(
    graph: StateGraph[StateT], obligation: Obligation[StateT], held: list[bool], component: frozenset[int]
) -> Lasso[StateT]:
    begin, way = _way_in(graph, obligation, held, component)
    path = (Step("Init", (), graph.states[begin]), *_steps(graph, way))
    entry = way[-1][1].target if way else begin
    return Lasso(obligation.of, path, _steps(graph, _cycle(graph, obligation, component, entry)))


def _steps(graph: StateGraph[StateT], way: Way) -> tuple[Step[StateT], ...]:
    return tuple(Step(*edge.label, graph.states[edge.target]) for _, edge in way)


def _way_in(
    graph: StateGraph[StateT], obligation: Obligation[StateT], held: list[bool], component: frozenset[int]
) -> tuple[int, Way]:
    """Return a shortest way from an initial state over one with `since` into the component."""

    def entered(node: int, due: bool) -> bool:
        """Return whether the obligation is due at a state: from before, or since this state."""
        return held[node] and (due or obligation.since(graph.states[node]))

    first = [(node, entered(node, False)) for node in range(graph.initial)]
    came: dict[tuple[int, bool], tuple[tuple[int, bool], Edge] | None] = dict.fromkeys(first)
    # A state may be passed before the obligation begins, and again while it is due.
    waiting = deque([*first, *((node, False) for node, due in first if due)])
    came |= dict.fromkeys(waiting)
    while waiting:
        node, due = place = waiting.popleft()
        if due and node in component:
            return _back(came, place)
        for edge in graph.edges[node]:
            nexts = [(edge.target, True)] if entered(edge.target, due) else []
            if not due:
                nexts.append((edge.target, False))
            for after in nexts:
                if after not in came:
                    came[after] = (place, edge)
                    waiting.append(after)
    raise AssertionError("the component is not reachable")


def _back(
    came: dict[tuple[int, bool], tuple[tuple[int, bool], Edge] | None], place: tuple[int, bool]
) -> tuple[int, Way]:
    way: Way = []
    while (link := came[place]) is not None:
        place, edge = link
        way.append((place[0], edge))
    return place[0], way[::-1]


def _cycle(
    graph: StateGraph[StateT], obligation: Obligation[StateT], component: frozenset[int], entry: int
) -> Way:
    """Return a cycle through the component that is fair and visits a state with `again`.

    It is empty if the run may remain in the first state.
    """
    if obligation.again(graph.states[entry]) and not graph.enabled[entry] & (graph.weak | graph.strong):
        return []
    enabled = [graph.enabled[node] for node in component]
    wanted = _any(enabled) & _taken(graph, component)
    must = wanted & (graph.strong | _all(enabled))
    way: Way = []
    at = entry

    def extend(found: Callable[[int, Edge], bool]) -> None:
        nonlocal at
        if not any(found(node, edge) for node, edge in way):
            way.extend(_walk(graph, component, at, found))
            at = way[-1][1].target

    if len(component) > 1:
        bit = 1
        while bit <= must:
            if must & bit:
                extend(lambda _node, edge, bit=bit: bool(edge.taken & bit))  # type: ignore[misc]
            bit <<= 1
        # The other weakly fair instances are disabled somewhere.
        for lost in _disabled(graph, component, _any(enabled) & graph.weak & ~must):
            extend(lambda node, edge, lost=lost: lost in (node, edge.target))  # type: ignore[misc]
        extend(lambda _node, edge: obligation.again(graph.states[edge.target]))
        if at != entry:
            way.extend(_walk(graph, component, at, lambda _node, edge: edge.target == entry))
    return way


def _disabled(graph: StateGraph[Any], component: frozenset[int], mask: int) -> Iterable[int]:
    """Return states of the component such that each instance of the mask is disabled in one of them."""
    found: list[int] = []
    for node in sorted(component):
        if mask & ~graph.enabled[node]:
            mask &= graph.enabled[node]
            found.append(node)
    return found


def _walk(
    graph: StateGraph[Any], component: frozenset[int], start: int, found: Callable[[int, Edge], bool]
) -> Way:
    """Return a shortest way inside the component whose last step is the wanted one."""
    came: dict[int, tuple[int, Edge] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in graph.cyclic(node):
            if edge.target not in component:
                continue
            if found(node, edge):
                way: Way = [(node, edge)]
                while (link := came[node]) is not None:
                    node = link[0]
                    way.append(link)
                return way[::-1]
            if edge.target not in came:
                came[edge.target] = (node, edge)
                waiting.append(edge.target)
    raise AssertionError("a component is strongly connected")
