"""Variables of a protocol in logic: declared once, made as Z3 symbols, or converted from known values.

The shape of a state is its variables as plain values: a number, a tuple for a function, tuples in tuples for
a function of two arguments. A sequence has exactly its elements.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

import z3

from mqproof.reference.proofs.logic import FLAG, Function, Kind, Scope, Term, conjunction

StateT = TypeVar("StateT")

NOWHERE: Final = -9
"""The value of a function of known values where it is undefined; no invariant may depend on it."""


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    value: Kind
    arguments: tuple[Kind, ...]
    length: str
    """For a sequence: the variable that has its length, by all arguments except the last; otherwise empty."""
    auxiliary: bool
    """Whether the variable is auxiliary: in no guard, and no other variable depends on it."""
    grows: bool
    """Whether the variable is a flag that stays true here, though it may become false in the module."""


def of(value: Kind, *arguments: Kind, length: str = "", auxiliary: bool = False, grows: bool = False) -> Any:
    """Return a field of a protocol's State, with the kinds of its values and its arguments.

    A variable with arguments is a function.
    """
    return field(
        metadata={
            "value": value,
            "arguments": arguments,
            "length": length,
            "auxiliary": auxiliary,
            "grows": grows,
        }
    )


def variables(state: Any) -> Iterator[Variable]:
    """Yield the variables of a State or its class."""
    return (Variable(name=f.name, **f.metadata) for f in fields(state))


def symbols(state_class: type[StateT]) -> StateT:
    """Return a state of which nothing is known: a Z3 constant or function for every variable."""
    return state_class(**{v.name: symbol(v.name, v.value, v.arguments) for v in variables(state_class)})


def symbol(name: str, value: Kind, arguments: tuple[Kind, ...] = ()) -> Term:
    sort = z3.BoolSort() if value == FLAG else z3.IntSort()
    if not arguments:
        return z3.Const(name, sort)
    return z3.Function(name, *(z3.BoolSort() if kind == FLAG else z3.IntSort() for kind in arguments), sort)


def within(scope: Scope, value: Kind, arguments: tuple[Kind, ...], term: Term) -> Term:
    """Require that the variable's values are of its kind and within the scope."""
    if value == FLAG:
        return True
    values = scope.values(value)

    def ranged(x: Term) -> Term:
        low = True if value.low is None else x >= (-1 if value.optional else value.low)
        return conjunction(low, True if values is None else x < values.stop)

    return scope.every(*arguments, lambda *at: ranged(term(*at))) if arguments else ranged(term)


def shape(scope: Scope, state: Any, evaluate: Callable[[Term], Any] = lambda term: term) -> dict[str, Any]:
    """Return the state as plain values, in a bounded scope; `evaluate` turns a term into a value."""

    def of_variable(variable: Variable) -> Any:
        function = getattr(state, variable.name)
        lengths = getattr(state, variable.length) if variable.length else None
        return values_of(scope, function, variable.arguments, evaluate, lengths)

    return {variable.name: of_variable(variable) for variable in variables(state)}


def values_of(
    scope: Scope,
    term: Term,
    arguments: tuple[Kind, ...],
    evaluate: Callable[[Term], Any],
    lengths: Term = None,
    at: tuple[int, ...] = (),
) -> Any:
    """Return a value, or a function's values at all arguments that begin with `at`."""
    if not arguments:
        return evaluate(term(*at) if at else term)
    kind, *rest = arguments
    domain = scope.values(kind)
    assert domain is not None, f"{kind.name} has no size in this scope"
    if not rest and lengths is not None:
        length = evaluate(lengths(*at) if at else lengths)
        domain = range(domain.start, domain.start + length)
    return tuple(values_of(scope, term, tuple(rest), evaluate, lengths, (*at, value)) for value in domain)


def known(state_class: type[StateT], values: dict[str, Any]) -> StateT:
    """Return the state of which everything is known; the inverse of `shape`."""
    return state_class(
        **{
            v.name: _function(v, values[v.name], tuple(kind.low or 0 for kind in v.arguments))
            if v.arguments
            else values[v.name]
            for v in variables(state_class)
        }
    )


def _function(variable: Variable, values: tuple[Any, ...], lows: tuple[int, ...]) -> Function:
    nowhere = False if variable.value == FLAG else NOWHERE

    def function(*at: int) -> Any:
        found: Any = values
        for index, low in zip(at, lows, strict=True):
            if not 0 <= index - low < len(found):
                return nowhere
            found = found[index - low]
        return found

    return function


def show(state_class: type[Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Return a shape's variables in readable form: <<...>> is a sequence, q0: 1 a function's value at q0."""
    return {v.name: _show(v, v.arguments, values[v.name]) for v in variables(state_class)}


def _show(variable: Variable, arguments: tuple[Kind, ...], values: Any) -> str:
    if not arguments:
        return variable.value.show(values)
    kind, *rest = arguments
    shown = [_show(variable, tuple(rest), value) for value in values]
    if variable.length and not rest:
        return f"<<{', '.join(shown)}>>"
    named = (f"{kind.show(i)}: {text}" for i, text in enumerate(shown, start=kind.low or 0))
    return f"({', '.join(named)})" if rest else ", ".join(named)
