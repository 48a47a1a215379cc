"""Translates between a model and TLC: the configuration from TLC's constants, actions as TLA+ operators.

All models share this part. Each model itself provides `from_tla`, the names of its constants, and the actions
that the bounded module wraps.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from mqproof.reference.model import ConfigT, Parameters
from mqproof.spec.tlc.values import show

Operator = Callable[[Any, str, Parameters], tuple[str, tuple[str, ...]]]


def configuration(kind: Callable[..., ConfigT], **names: str) -> Callable[[Mapping[str, Any]], ConfigT]:
    """Return the function that makes a configuration from TLC's constants; a set becomes a sorted tuple.

    `names` maps each field of the configuration to the constant with its value.
    """

    def from_constants(constants: Mapping[str, Any]) -> ConfigT:
        return kind(**{field: _in_order(constants[name]) for field, name in names.items()})

    return from_constants


def _in_order(value: Any) -> Any:
    return tuple(sorted(value)) if isinstance(value, frozenset) else value


def _unchanged(_config: Any, _name: str, parameters: Parameters) -> Iterable[Any]:
    return parameters


def operators(
    bounded: Collection[str] = (),
    arguments: Callable[[Any, str, Parameters], Iterable[Any]] = _unchanged,
) -> Operator:
    """Return the function from an action and its parameters to the TLA+ operator and its arguments.

    The operator of a `bounded` action is the bounded module's, with MC before its name. `arguments` turns
    (config, action, parameters) into values that `show` writes in TLA+ syntax.
    """

    def operator(config: Any, name: str, parameters: Parameters) -> tuple[str, tuple[str, ...]]:
        return f"MC{name}" if name in bounded else name, tuple(map(show, arguments(config, name, parameters)))

    return operator


def as_sets(_config: Any, _name: str, parameters: Parameters) -> Iterable[Any]:
    """Return the arguments of an action whose tuples are sets in TLA+."""
    return (frozenset(value) if isinstance(value, tuple) else value for value in parameters)
