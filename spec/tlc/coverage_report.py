"""TLC's last coverage report: how often each action fired and each expression was evaluated.

A run with `Job.coverage` ends with it. TLC splits the next-state relation as far as its constants allow. It
cannot split, for example, a choice from a set that depends on the state. Such a part is reported under the
enclosing operator, with the place of the part. TLC leaves out the inside of an expression that was never
evaluated, and so the consequents of antecedents that are never true. `spec/vacuity.py` checks those in
another way.
"""

import re
from dataclasses import dataclass
from typing import Final

from mqproof.spec.tlc.output import Output

_HEAD: Final = re.compile(
    r"<(\w+) line (\d+), .* of module (\w+)(?: \((\d+ \d+ \d+ \d+)\))?>(?:: (\d+):(\d+))?"
)
_EXPRESSION: Final = re.compile(
    r"\s*(\|*)line (\d+), col (\d+) to line (\d+), col (\d+) of module (\w+): (\d+)(?::(\d+))?"
)
_HEADS: Final = {2773: "init", 2772: "action", 2774: "property"}
_EXPRESSIONS: Final = (2221, 2775)
_BEGINS: Final = 2201


@dataclass(frozen=True, slots=True)
class Place:
    module: str
    line: int
    column: int
    line_end: int
    column_end: int


@dataclass(frozen=True, slots=True)
class Expression:
    place: Place
    depth: int
    """The nesting depth; 0 is a part of the action's or property's own body."""
    evaluated: int
    cost: int
    """The number of elements that TLC had to enumerate; 0 if there was nothing but evaluation."""


@dataclass(frozen=True, slots=True)
class Section:
    """An initial predicate, a part of the next-state relation, or an invariant."""

    kind: str
    """One of: init, action, property."""
    name: str
    module: str
    line: int
    part: str
    """The place in the operator if it is only a part of it; otherwise empty."""
    distinct: int
    """States found for the first time; 0 for a property."""
    generated: int
    expressions: tuple[Expression, ...]


def sections(output: Output) -> tuple[Section, ...]:
    """Return the sections of the last report, in order; empty if the run had no coverage."""
    heads: list[tuple[str, re.Match[str], list[Expression]]] = []
    for message in output.messages:
        if message.code == _BEGINS:
            heads = []  # TLC reports every minute; each report counts from the beginning
        elif kind := _HEADS.get(message.code):
            if head := _HEAD.match(message.text):
                heads.append((kind, head, []))
        elif message.code in _EXPRESSIONS and heads and (found := _EXPRESSION.match(message.text)):
            heads[-1][2].append(_expression(found))
    return tuple(
        Section(
            kind,
            head[1],
            head[3],
            int(head[2]),
            head[4] or "",
            int(head[5] or 0),
            int(head[6] or 0),
            tuple(below),
        )
        for kind, head, below in heads
    )


def _expression(found: re.Match[str]) -> Expression:
    place = Place(found[6], int(found[2]), int(found[3]), int(found[4]), int(found[5]))
    return Expression(place, len(found[1]), int(found[7]), int(found[8] or 0))
