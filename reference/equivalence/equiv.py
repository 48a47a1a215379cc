"""Shows that a reference model equals TLC's state graph.

States, labelled steps and disabled actions are the same.

TLC dumps the graph of the bounded model with every action ground. The reference explores its own graph, and
the two are compared as sets. Equal steps from equal states mean equal enabled actions. They also mean equal
disabled actions, because both sides take parameters from the same table. A separate run of TLC checks that
the table lacks no step of the TLA+ model.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from mqproof.reference.constants import constants
from mqproof.reference.explorer.search import Exploration, Step, Violation, explore
from mqproof.reference.model import ConfigT, Model, Parameters, StateT
from mqproof.spec.tlc import values
from mqproof.spec.tlc.graph import (
    GROUND_COVERS,
    Graph,
    check_ground_is_complete,
    dump_ground,
    dump_moves,
    ground,
)

Label = tuple[str, Parameters]
Steps = dict[StateT, set[tuple[Label, StateT]]]
GroundLabels = dict[tuple[str, tuple[str, ...]], Label]
"""Maps an operator and its arguments, as TLA+ text, to a label of the reference."""


@dataclass(frozen=True, slots=True)
class Difference(Generic[StateT]):
    """The first difference: a shortest path to a state, and the steps that only one side has there."""

    path: tuple[Step[StateT], ...]
    only_tlc: tuple[str, ...]
    only_reference: tuple[str, ...]
    """Labelled steps, `Action(parameters)`.

    If both sides have the step with different targets, "to another state" is added.
    """


@dataclass(frozen=True, slots=True)
class Equivalence(Generic[StateT]):
    model: str
    states: int
    steps: int
    disabled: int
    """The number of (state, ground action) pairs in which the action is disabled on both sides."""
    difference: Difference[StateT] | None
    violation: Violation[StateT] | None
    """A violation of one of the reference's invariants, found during the exploration."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        return self.difference is None


class ForgottenStepError(RuntimeError):
    """The two sides have different sets of ground actions.

    The model's table lacks a step of the TLA+ module, or the module's next-state relation lacks one of the
    table's; TLC's trace ends with that step. Or an action's choices differ from its domain.
    """


def compare(
    model: Model[ConfigT, StateT],
    module: str,
    config_text: str,
    libraries: tuple[Path, ...],
    *,
    next_name: str,
    seconds_max: float = 600,
    on_stage: Callable[[str], None] = lambda _: None,
) -> Equivalence[StateT]:
    """Compare `model` with the bounded TLA+ `module` under the constants of `config_text`.

    TLC runs twice, and a third time to find a missing step, each time for at most `seconds_max`.

    Raises:
        TlcError: TLC gave no verdict. ForgottenStepError: the comparison would cover less than the whole
          model.
    """
    seconds: dict[str, float] = {}
    config = model.from_constants(constants(config_text))
    labels = _ground_labels(model, config)

    on_stage("TLC dumps its state graph")
    with _timed(seconds, "tlc"):
        made = ground(module, config_text, _arguments_by_operator(labels))
        graph = dump_ground(made, libraries, seconds_max=seconds_max)

    on_stage("TLC searches for a missing step")
    if graph.moves != dump_moves(made, next_name, libraries, seconds_max=seconds_max):
        outcome = check_ground_is_complete(made, next_name, libraries, seconds_max=seconds_max)
        lacking = "the reference's table of actions" if outcome.violated == GROUND_COVERS else next_name
        raise ForgottenStepError(f"{module}: {lacking} lacks a step\n{outcome.trace}")

    on_stage("the reference walks its states")
    with _timed(seconds, "reference"):
        exploration, mine = _walk(model, config)

    on_stage("the two graphs are compared")
    with _timed(seconds, "compare"):
        theirs, initial = _translate(model, config, graph, _parsed(labels))
        difference = _first_difference(exploration, set(model.initial(config)), mine, initial, theirs)

    states = len(exploration.parents)
    enabled = sum(len({label for label, _ in steps}) for steps in mine.values())
    return Equivalence(
        model=model.name,
        states=states,
        steps=exploration.edges,
        disabled=states * len(labels) - enabled,
        difference=difference,
        violation=exploration.violation,
        seconds=seconds,
    )


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Record how long the block takes."""
    started = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - started


def _ground_labels(model: Model[ConfigT, StateT], config: ConfigT) -> GroundLabels:
    return {
        model.operator(config, name, parameters): (name, parameters)
        for name, action in model.actions.items()
        for parameters in action.domain(config)
    }


def _arguments_by_operator(labels: GroundLabels) -> dict[str, list[tuple[str, ...]]]:
    """Return the arguments with which TLC grounds each action."""
    actions: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for operator, arguments in labels:
        actions[operator].append(arguments)
    return actions


def _parsed(labels: GroundLabels) -> dict[tuple[str, tuple[Any, ...]], Label]:
    """Return the labels with arguments as values instead of TLA+ text, because TLC's graph has values."""
    return {
        (operator, tuple(map(values.parse, arguments))): label
        for (operator, arguments), label in labels.items()
    }


def _walk(model: Model[ConfigT, StateT], config: ConfigT) -> tuple[Exploration[StateT], Steps[StateT]]:
    """Explore the reference's states and record every labelled step.

    Raises:
        ForgottenStepError: an action's choices omit an enabled step, or add one outside its domain.
    """
    steps: Steps[StateT] = defaultdict(set)
    exploration = explore(
        model.exhaustive(),
        config,
        on_edge=lambda before, name, parameters, after: steps[before].add(((name, parameters), after)),
        stop_at_violation=False,
    )
    _check_choices(model, config, exploration, steps)
    return exploration, steps


def _check_choices(
    model: Model[ConfigT, StateT], config: ConfigT, exploration: Exploration[StateT], mine: Steps[StateT]
) -> None:
    """Check that exploring with the model's choices finds the same steps as with all parameters.

    Raises:
        ForgottenStepError: an action's choices omit an enabled step, or add one outside its domain.
    """
    if all(action.choices is None for action in model.actions.values()):
        return
    steps = model.under(config)
    for state in exploration.parents:
        chosen = {((name, parameters), after) for name, parameters, after in steps(state)}
        if wrong := chosen ^ mine.get(state, set()):
            (name, parameters), _ = next(iter(wrong))
            raise ForgottenStepError(f"{model.name}: wrong choices of {name}, see {parameters} in {state}")


def _translate(
    model: Model[ConfigT, StateT], config: ConfigT, graph: Graph, labels: Mapping[Any, Label]
) -> tuple[Steps[StateT], set[StateT]]:
    """Translate TLC's graph into the reference's states and labels.

    Raises:
        AssertionError: two states of TLC's graph become the same state, so the reference omits information.
    """
    states = [
        model.from_tla(config, {str(name): value for name, value in state.items()}) for state in graph.states
    ]
    assert len(set(states)) == len(states), (
        f"{model.name}: from_tla maps different states of TLC to one state"
    )
    steps: Steps[StateT] = {state: set() for state in states}
    for source, label, target in graph.edges:
        steps[states[source]].add((labels[label], states[target]))
    return steps, {states[index] for index in graph.initial}


def _first_difference(
    exploration: Exploration[StateT],
    my_initial: set[StateT],
    mine: Steps[StateT],
    their_initial: set[StateT],
    theirs: Steps[StateT],
) -> Difference[StateT] | None:
    """Return the first difference in breadth-first order, so that its path is a shortest one.

    States that both sides reach by equal steps are equal.
    """
    if my_initial != their_initial:
        return Difference((), _show_all(their_initial - my_initial), _show_all(my_initial - their_initial))
    for state in exploration.parents:
        here, there = mine.get(state, set()), theirs.get(state, set())
        if here != there:
            return Difference(
                exploration.path(state),
                only_tlc=_labels(there - here, {label for label, _ in here}),
                only_reference=_labels(here - there, {label for label, _ in there}),
            )
    assert len(theirs) == len(exploration.parents), "TLC reaches a state without a dumped step"
    return None


def _labels(steps: set[tuple[Label, StateT]], known: set[Label]) -> tuple[str, ...]:
    return tuple(
        sorted(
            name
            + (str(parameters) if parameters else "")
            + (" to another state" if (name, parameters) in known else "")
            for (name, parameters), _ in steps
        )
    )


def _show_all(states: set[StateT]) -> tuple[str, ...]:
    return tuple(sorted(f"initial state {state}" for state in states))
