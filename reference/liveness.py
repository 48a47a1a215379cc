"""Fairness and liveness of the reference models, for the explorer's search for infinite runs.

A model's `fairness` states what the TLA+ module assumes: actions that are eventually taken, and steps that
occur finitely often. Its `liveness` states what must eventually happen. `explorer/lasso.py` decides both on a
finite graph.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

StateT = TypeVar("StateT")

Predicate = Callable[..., bool]
"""A predicate of (state, *instance)."""

FIRST: Final = slice(1)
"""The first parameter of an action."""

PAIR: Final = slice(2)
"""The first two parameters of an action."""

_NONE: Final = slice(0)
_ONE: Final[tuple[tuple[Any, ...], ...]] = ((),)


@dataclass(frozen=True, slots=True)
class Fair:
    """Actions that are eventually taken: WF or SF of their disjunction, for each instance."""

    name: str
    """The name of the clause, as in the fairness runs of models.toml: WithoutNAMEFairness."""
    actions: Mapping[str, slice]
    """Maps each action to its parameters that select the instance.

    Without any, the clause is one existential quantification over all parameters.
    """
    strong: bool = False
    """Strong: an action that is enabled infinitely often is taken infinitely often."""
    where: Callable[..., bool] | None = None
    """Restricts the clause to some steps: (config, state, *parameters)."""
    unbounded: Callable[[Any], Any] | None = None
    """Returns the configuration without the bounds of the MC module, for which the clause is stated."""

    def instance(self, config: Any, state: Any, action: str, parameters: tuple[Any, ...]) -> Any:
        """Return the instance that a step belongs to, or None if it belongs to none."""
        selected = self.actions.get(action)
        if selected is None or (self.where is not None and not self.where(config, state, *parameters)):
            return None
        return parameters[selected]


@dataclass(frozen=True, slots=True)
class Finite:
    """Steps that occur finitely often: `<>[][~step]_vars`."""

    name: str
    """The name of the clause, as in the fairness runs of models.toml: WithoutNAME."""
    steps: Callable[[Any, Any, str, Any], bool]
    """Selects the steps: (config, before, action, after)."""


Clause = Fair | Finite


def weak(
    name: str,
    *actions: str,
    each: slice = _NONE,
    where: Callable[..., bool] | None = None,
    unbounded: Callable[[Any], Any] | None = None,
) -> Fair:
    """Return weak fairness: an action that remains enabled is eventually taken.

    `each` selects the parameters for whose values the clause is stated separately.
    """
    return Fair(name, dict.fromkeys(actions, each), where=where, unbounded=unbounded)


def strong(name: str, *actions: str, each: slice = _NONE, where: Callable[..., bool] | None = None) -> Fair:
    """Return strong fairness: an action that is enabled again and again is eventually taken."""
    return Fair(name, dict.fromkeys(actions, each), strong=True, where=where)


@dataclass(frozen=True, slots=True)
class Obligation(Generic[StateT]):
    """One instance of a liveness property, as the shape of the runs that violate it.

    Such a run reaches a state with `since`. From there `during` is true for ever, and `again` is true
    infinitely often.
    """

    of: tuple[Any, ...]
    """The instance, such as one message."""
    since: Callable[[StateT], bool]
    during: Callable[[StateT], bool]
    again: Callable[[StateT], bool]


Obligations = tuple[Obligation[StateT], ...]


def leads_to(since: Predicate, until: Predicate, of: Iterable[tuple[Any, ...]] = _ONE) -> Obligations[Any]:
    """Return `since ~> until` for each instance: a state with `since` is followed by one with `until`."""
    return tuple(Obligation(i, _bound(since, i), _bound(_negated(until), i), _bound(_always, i)) for i in of)


def recurs(goal: Predicate, given: Predicate, of: Iterable[tuple[Any, ...]] = _ONE) -> Obligations[Any]:
    """Return `<>[]given => []<>goal`: while `given` remains true, `goal` becomes true again and again."""

    def apart(state: Any, *instance: Any) -> bool:
        return given(state, *instance) and not goal(state, *instance)

    return tuple(Obligation(i, _bound(apart, i), _bound(apart, i), _bound(_always, i)) for i in of)


def settles(
    goal: Predicate, given: Predicate | None = None, of: Iterable[tuple[Any, ...]] = _ONE
) -> Obligations[Any]:
    """Return `<>[]given => <>[]goal`: while `given` remains true, `goal` becomes true and remains so."""
    kept = given or _always
    return tuple(Obligation(i, _bound(kept, i), _bound(kept, i), _bound(_negated(goal), i)) for i in of)


def _always(_state: Any, *_instance: Any) -> bool:
    return True


def _negated(predicate: Predicate) -> Predicate:
    return lambda state, *instance: not predicate(state, *instance)


def _bound(predicate: Predicate, instance: tuple[Any, ...]) -> Callable[[Any], bool]:
    return lambda state: predicate(state, *instance)
