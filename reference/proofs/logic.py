"""Terms that are Python values if everything is known, and Z3 expressions otherwise.

The same encoding is thus used in three scopes. A proof needs the unbounded one. In the bounded scope every
quantifier is written out, so that a counterexample is found and can be shown. In the concrete scope the
encoding is compared with the reference, state by state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import z3

Term = Any
"""A Python int or bool, or a Z3 expression."""
Function = Callable[..., Term]
"""A function from terms to a term: it represents a function or a sequence of the TLA+ module."""

_open: Final[list[Term]] = []
"""The variables of the enclosing quantifiers under construction, outermost first.

Each is named by its index here, so that equal formulas are identical to Z3.
"""


def conjunction(*terms: Term) -> Term:
    unknown = [term for term in terms if not isinstance(term, bool)]
    if not all(term for term in terms if isinstance(term, bool)):
        return False
    return z3.And(*unknown) if unknown else True


def disjunction(*terms: Term) -> Term:
    unknown = [term for term in terms if not isinstance(term, bool)]
    if any(term for term in terms if isinstance(term, bool)):
        return True
    return z3.Or(*unknown) if unknown else False


def negation(term: Term) -> Term:
    return not term if isinstance(term, bool) else z3.Not(term)


def implies(condition: Term, *conclusions: Term) -> Term:
    return disjunction(negation(condition), conjunction(*conclusions))


def choose(condition: Term, then: Term, otherwise: Term) -> Term:
    """Return IF condition THEN then ELSE otherwise."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    return z3.If(condition, then, otherwise)


def minimum(a: Term, b: Term) -> Term:
    return choose(a <= b, a, b)


def maximum(a: Term, b: Term) -> Term:
    return choose(a >= b, a, b)


def constant(value: Term) -> Function:
    return lambda *_at: value


def updated(function: Function, *arguments_and_value: Term) -> Function:
    """Return [function EXCEPT ![arguments] = value]."""
    *arguments, value = arguments_and_value
    return lambda *at: choose(
        conjunction(*(a == b for a, b in zip(at, arguments, strict=True))), value, function(*at)
    )


def _for_all(
    variables: list[Term], ranges: list[Term], body: Term, triggers: tuple[tuple[Term, ...], ...]
) -> Term:
    if isinstance(body, bool) or not variables:
        return body
    # After a step a variable is no longer a plain function application, so Z3 could not match it.
    usable = all(z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) for trigger in triggers for term in trigger)
    patterns = [z3.MultiPattern(*trigger) for trigger in triggers] if usable else []
    return z3.ForAll(variables, implies(conjunction(*ranges), body), patterns=patterns)


@dataclass(frozen=True, slots=True)
class Kind:
    """A set of integers that variables range over; messages, queues and nodes are numbered from 0."""

    name: str
    low: int | None = 0
    """The smallest value; None for no bound."""
    size: int | None = None
    """The number of values, if it is the same in every scope, as for nodes; None if unbounded."""
    optional: bool = False
    """Whether a variable's value may also be -1: no node, torn, none."""
    names: tuple[str, ...] = ()
    """The names of the values, for a reader; or one prefix, to which the value is added."""

    alike: bool = False
    """Whether the values are interchangeable in all formulas.

    Two parameters can then be the first two values.
    """

    def show(self, value: Any) -> str:
        if value == -1 and self.optional:
            return "none"
        if len(self.names) == 1:
            return f"{self.names[0]}{value}"
        return self.names[value] if self.names else str(value)


FLAG: Final = Kind("flag", 0, 2)


@dataclass(frozen=True, slots=True)
class Scope:
    """The sizes of the unbounded kinds; a kind without a size stays unbounded."""

    sizes: Mapping[str, int] = field(default_factory=dict)

    def values(self, kind: Kind) -> range | None:
        """Return all values of a kind, or None if it is unbounded."""
        size = self.sizes.get(kind.name) if kind.size is None else kind.size
        return None if size is None or kind.low is None else range(kind.low, kind.low + size)

    def every(
        self, *kinds_and_body: Any, when: Callable[..., tuple[tuple[Term, ...], ...]] | None = None
    ) -> Term:
        r"""every(KIND, OTHER, lambda x, y: ...) builds \A x \in KIND, y \in OTHER : ...

        `when` gives Z3 the terms that together trigger an instantiation; it does not change the meaning.
        """
        *kinds, body = kinds_and_body
        domains: list[Sequence[Term]] = []
        free: list[Term] = []
        ranges: list[Term] = []
        for kind in kinds:
            values: Sequence[Term] | None = self.values(kind)
            if values is None:
                variable = z3.Int(f"{kind.name}!{len(_open) + len(free)}")
                free.append(variable)
                if kind.low is not None:
                    ranges.append(variable >= kind.low)
                values = (variable,)
            domains.append(values)
        _open.extend(free)
        whole = conjunction(
            *(
                _for_all(free, ranges, body(*chosen), when(*chosen) if when else ())
                for chosen in product(*domains)
            )
        )
        del _open[len(_open) - len(free) :]
        return whole

    def some(self, *kinds_and_body: Any) -> Term:
        r"""some(KIND, lambda x: ...) builds \E x \in KIND : ..."""
        *kinds, body = kinds_and_body
        return negation(self.every(*kinds, lambda *values: negation(body(*values))))


UNBOUNDED: Final = Scope()
