"""The interface of a reference model for the explorer, the comparison with TLC, and the conformance suite."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar

from mqproof.reference.liveness import Clause, Obligations

ConfigT = TypeVar("ConfigT")
StateT = TypeVar("StateT", bound=Hashable)
PredicateT = TypeVar("PredicateT", bound=Callable[..., Any])

Parameters = tuple[Any, ...]
"""The arguments of an action, e.g. ("m1", "q0"); hashable."""


@dataclass(frozen=True, slots=True)
class Action(Generic[ConfigT, StateT]):
    """One action, named as in the TLA+ module."""

    name: str
    apply: Callable[..., StateT | None]
    """Maps (config, state, *parameters) to the next state, or to None if the action is disabled."""
    domain: Callable[[ConfigT], Iterable[Parameters]]
    """All parameters that the configuration allows, enabled or not."""
    choices: Callable[[ConfigT, StateT], Iterable[Parameters]] | None = None
    """Returns the parameters that may be enabled in a state, for large domains that are mostly disabled.

    An exploration then tries no others. `mqproof equiv` tries all of them, and so detects a missing one.
    """


def once(_config: Any) -> tuple[Parameters, ...]:
    """The domain of an action without parameters."""
    return ((),)


def each(field_name: str) -> Callable[[Any], tuple[Parameters, ...]]:
    """Return the domain of an action with one parameter: the values in a field of the configuration."""
    values = attrgetter(field_name)
    return lambda config: tuple((value,) for value in values(config))


@dataclass(frozen=True, slots=True)
class Model(Generic[ConfigT, StateT]):
    """A pure state machine.

    It consists of functions only, so that it can be explored, driven and compared.
    """

    name: str
    """The name of the TLA+ module."""
    initial: Callable[[ConfigT], tuple[StateT, ...]]
    actions: Mapping[str, Action[ConfigT, StateT]]
    from_constants: Callable[[Mapping[str, Any]], ConfigT]
    """Returns the configuration for the constants of a TLC configuration."""
    from_tla: Callable[[ConfigT, Mapping[str, Any]], StateT]
    """Returns the State for a state as TLC prints it, variable by variable."""
    operator: Callable[[ConfigT, str, Parameters], tuple[str, tuple[str, ...]]]
    """Returns the TLA+ operator and its arguments in TLA+ syntax for an action and its parameters."""
    invariants: Mapping[str, Callable[[ConfigT, StateT], bool]] = field(default_factory=dict)
    """Maps a catalogue name to a predicate of one state."""
    step_invariants: Mapping[str, Callable[[ConfigT, StateT, str, StateT], bool]] = field(
        default_factory=dict
    )
    """Maps a catalogue name to a predicate of a step: (config, before, action name, after)."""
    fairness: tuple[Clause, ...] = ()
    """What eventually happens by assumption, as the TLA+ module states it."""
    liveness: Mapping[str, Callable[[ConfigT], Obligations[StateT]]] = field(default_factory=dict)
    """Maps a catalogue name to the obligations of a configuration; they hold under the fairness."""

    def steps(self, config: ConfigT, state: StateT) -> Iterator[tuple[str, Parameters, StateT]]:
        """Yield every enabled action of the state: (name, parameters, next state)."""
        return self.under(config)(state)

    def under(self, config: ConfigT) -> Callable[[StateT], Iterator[tuple[str, Parameters, StateT]]]:
        """Return `steps` for one configuration and many states: the domains are computed once."""
        fixed = [
            (name, parameters, action.apply)
            for name, action in self.actions.items()
            if action.choices is None
            for parameters in action.domain(config)
        ]
        chosen = [(name, a.choices, a.apply) for name, a in self.actions.items() if a.choices is not None]

        def steps(state: StateT) -> Iterator[tuple[str, Parameters, StateT]]:
            for name, parameters, apply in fixed:
                after = apply(config, state, *parameters)
                if after is not None:
                    yield name, parameters, after
            for name, choices, apply in chosen:
                for parameters in choices(config, state):
                    after = apply(config, state, *parameters)
                    if after is not None:
                        yield name, parameters, after

        return steps

    def exhaustive(self) -> "Model[ConfigT, StateT]":
        """Return the same model, with every parameter of its domains tried in every state."""
        actions = {name: replace(action, choices=None) for name, action in self.actions.items()}
        return replace(self, actions=actions)


def by_name(*actions: Action[ConfigT, StateT]) -> dict[str, Action[ConfigT, StateT]]:
    """Return the actions by name, in order."""
    return {action.name: action for action in actions}


def named(*predicates: PredicateT) -> dict[str, PredicateT]:
    """Return the functions by the catalogue's names: `sync_acked_durable` is SyncAckedDurable."""
    return {"".join(map(str.capitalize, each.__name__.split("_"))): each for each in predicates}
