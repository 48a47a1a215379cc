"""What a reference model offers to the explorer, to the comparison with TLC, and to the conformance suite."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

ConfigT = TypeVar("ConfigT")
StateT = TypeVar("StateT", bound=Hashable)
PredicateT = TypeVar("PredicateT", bound=Callable[..., bool])

Parameters = tuple[Any, ...]
"""What an action is applied to, e.g. ("m1", "q0"); hashable."""


@dataclass(frozen=True, slots=True)
class Action(Generic[ConfigT, StateT]):
    """One action, named as in the TLA+ module."""

    name: str
    apply: Callable[..., StateT | None]
    """(config, state, *parameters) to the next state, or None where the action is disabled."""
    domain: Callable[[ConfigT], Iterable[Parameters]]
    """All parameters that the configuration allows, enabled or not."""
    choices: Callable[[ConfigT, StateT], Iterable[Parameters]] | None = None
    """Where most of a large domain is disabled in every state: those that may be enabled in this one. A walk
    then tries no others; that none was forgotten is what `mqproof equiv` finds out, which does try them."""


@dataclass(frozen=True, slots=True)
class Model(Generic[ConfigT, StateT]):
    """A pure state machine; functions only, so that it can be explored, driven and compared."""

    name: str
    """Of the TLA+ module."""
    initial: Callable[[ConfigT], tuple[StateT, ...]]
    actions: Mapping[str, Action[ConfigT, StateT]]
    from_constants: Callable[[Mapping[str, Any]], ConfigT]
    """The configuration that the constants of a TLC configuration give."""
    from_tla: Callable[[ConfigT, Mapping[str, Any]], StateT]
    """A state as TLC prints it, variable by variable, as a State."""
    operator: Callable[[ConfigT, str, Parameters], tuple[str, tuple[str, ...]]]
    """An action and its parameters as the TLA+ operator and its arguments in TLA+ syntax."""
    invariants: Mapping[str, Callable[[ConfigT, StateT], bool]] = field(default_factory=dict)
    """Catalogue name to a predicate of one state."""
    step_invariants: Mapping[str, Callable[[ConfigT, StateT, str, StateT], bool]] = field(
        default_factory=dict
    )
    """Catalogue name to a predicate of a step: (config, before, action name, after)."""

    def steps(self, config: ConfigT, state: StateT) -> Iterator[tuple[str, Parameters, StateT]]:
        """Every enabled action of the state: (name, parameters, next state)."""
        return self.under(config)(state)

    def under(self, config: ConfigT) -> Callable[[StateT], Iterator[tuple[str, Parameters, StateT]]]:
        """`steps` for one configuration and many states: the domains are drawn once."""
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
        """The same model, every parameter of its domains tried in every state."""
        actions = {name: replace(action, choices=None) for name, action in self.actions.items()}
        return replace(self, actions=actions)


def by_name(*actions: Action[ConfigT, StateT]) -> dict[str, Action[ConfigT, StateT]]:
    """Return the actions by name, in order."""
    return {action.name: action for action in actions}


def named(*predicates: PredicateT) -> dict[str, PredicateT]:
    """Return the predicates by the catalogue's names: `sync_acked_durable` is SyncAckedDurable."""
    return {"".join(map(str.capitalize, each.__name__.split("_"))): each for each in predicates}
