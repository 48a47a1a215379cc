"""Terms that are Python values where everything is known and Z3 expressions where it is not.

The same encoding is so read in three scopes: unbounded, which a proof needs; bounded, where every quantifier
is written out, so that a counterexample is found and can be shown; and concrete, where it is compared with
the reference, state by state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import z3

Term = Any
"""A Python int or bool, or a Z3 expression."""
Function = Callable[..., Term]
"""From terms to a term: what is a function or a sequence in the TLA+ module."""

_open: Final[list[Term]] = []
"""The variables of the quantifiers that are being written, from the outermost in. Each is named by its place
here, so that equal formulas are the same to Z3."""


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
    """IF condition THEN then ELSE otherwise."""
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
    """[function EXCEPT ![arguments] = value]"""
    *arguments, value = arguments_and_value
    return lambda *at: choose(
        conjunction(*(a == b for a, b in zip(at, arguments, strict=True))), value, function(*at)
    )


def _for_all(
    variables: list[Term], ranges: list[Term], body: Term, triggers: tuple[tuple[Term, ...], ...]
) -> Term:
    if isinstance(body, bool) or not variables:
        return body
    # After a step a variable is no mere application any more, and nothing that Z3 could look for.
    usable = all(z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) for trigger in triggers for term in trigger)
    patterns = [z3.MultiPattern(*trigger) for trigger in triggers] if usable else []
    return z3.ForAll(variables, implies(conjunction(*ranges), body), patterns=patterns)


@dataclass(frozen=True, slots=True)
class Kind:
    """A set of integers that variables range over; messages, queues and nodes are numbered from 0."""

    name: str
    low: int | None = 0
    """The smallest; None for no bound."""
    size: int | None = None
    """How many there are in every scope, such as nodes; None for unboundedly many."""
    nobody: bool = False
    """As the value of a variable it may also be -1: nobody, torn, none."""
    names: tuple[str, ...] = ()
    """Of the values, for a reader; or one, for all of them, to which the value is added."""

    alike: bool = False
    """No formula tells one from another but by what they do, so that two parameters can be the first two."""

    def show(self, value: Any) -> str:
        if value == -1 and self.nobody:
            return "none"
        if len(self.names) == 1:
            return f"{self.names[0]}{value}"
        return self.names[value] if self.names else str(value)


FLAG: Final = Kind("flag", 0, 2)


@dataclass(frozen=True, slots=True)
class Scope:
    """How much there is of what is unbounded: a size for each kind, or nothing for all of it."""

    sizes: Mapping[str, int] = field(default_factory=dict)

    def values(self, kind: Kind) -> range | None:
        """All values of a kind, None if there is no end to them."""
        size = self.sizes.get(kind.name) if kind.size is None else kind.size
        return None if size is None or kind.low is None else range(kind.low, kind.low + size)

    def every(
        self, *kinds_and_body: Any, when: Callable[..., tuple[tuple[Term, ...], ...]] | None = None
    ) -> Term:
        r"""every(KIND, OTHER, lambda x, y: ...) is \A x \in KIND, y \in OTHER : ...

        `when` tells Z3 in sight of which terms, together, to think of it; it changes no meaning.
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
        r"""some(KIND, lambda x: ...) is \E x \in KIND : ..."""
        *kinds, body = kinds_and_body
        return negation(self.every(*kinds, lambda *values: negation(body(*values))))


UNBOUNDED: Final = Scope()
