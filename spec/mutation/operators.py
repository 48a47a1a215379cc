"""Makes the mutants of a module: one small change each, in what the next-state relation uses."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mqproof.spec.syntax import Definition, Module, Node, parse, speaks_of_next_state


class Kind(StrEnum):
    """The kind of change."""

    GUARD = "guard"  # a condition is dropped: replaced by TRUE
    COMPARISON = "comparison"  # < for <=, # for =, \notin for \in
    SHIFT = "shift"  # a number or the bound of a range is off by one
    UNCHANGED = "unchanged"  # a variable keeps its value: x' = x
    UPDATE = "update"  # one of the places of an EXCEPT keeps its value: @
    JUNCTION = "junction"  # "or" for "and" between conditions, and the reverse
    CONDITION = "condition"  # a negated IF, an implication without its antecedent, a removed negation
    QUANTIFIER = "quantifier"  # \E for \A and the reverse
    VALUE = "value"  # TRUE for FALSE and the reverse
    DISJUNCT = "disjunct"  # an action that never happens


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change."""

    id: str
    """MODULE.DEFINITION.kind.n: it is stable as long as the definition does not change."""
    definition: str
    kind: Kind
    number: int
    """The number among those of its kind in its definition."""
    line: int
    before: str
    after: str
    """The changed line, before and after the change."""
    text: str
    """The text of the whole module."""


_COMPARED: Final = {
    "<": "<=", "<=": "<", "=<": "<", ">": ">=", ">=": ">", "=": "#", "#": "=",
    "\\in": "\\notin", "\\notin": "\\in",
}  # fmt: skip
_BOUNDARIES: Final = ("<", "<=", "=<", ">", ">=")
_OPPOSITE: Final = {"\\A": "\\E", "\\E": "\\A", "/\\": "\\/", "\\/": "/\\", "TRUE": "FALSE", "FALSE": "TRUE"}

_Edit = tuple[Kind, tuple[tuple[int, int, str], ...]]
"""Spans of the text, from left to right, with their replacements."""


def mutants(text: str, *roots: str) -> tuple[Mutant, ...]:
    """Return the mutants of a module, in the order of its text, for every operator that the roots use.

    Raises:
        SyntaxProblemError: the module is not in the TLA+ that the parser knows.
    """
    module = parse(text)
    made: list[Mutant] = []
    seen = {text}
    for name in reached(module, *roots):
        numbers: Counter[Kind] = Counter()
        for kind, edits in _edits(module, module.definitions[name]):
            changed = _apply(text, edits)
            numbers[kind] += 1
            if changed not in seen:
                seen.add(changed)
                made.append(_mutant(module, name, kind, numbers[kind], edits, changed))
    return tuple(made)


def reached(module: Module, *roots: str, enabled: bool = True) -> tuple[str, ...]:
    """Return the module's operators that the roots use, including themselves, in the order of the text.

    Unless `enabled`, operators are left out that are only used inside ENABLED.
    """
    found: set[str] = set()
    todo = [root for root in roots if root in module.definitions]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        source = module.source(module.definitions[name].body)
        for node in module.definitions[name].body.walk():
            if node.op == "ENABLED" and not enabled:
                source = source.replace(module.source(node), "")
        words = set(re.findall(r"\w+", source))
        todo += [other for other in module.definitions if other in words]
    return tuple(name for name in module.definitions if name in found)


def _mutant(
    module: Module, name: str, kind: Kind, number: int, edits: tuple[tuple[int, int, str], ...], changed: str
) -> Mutant:
    line = module.line(edits[-1][0])
    before, after = module.text.splitlines()[line - 1], changed.splitlines()[line - 1]
    return Mutant(
        f"{module.name}.{name}.{kind}.{number}",
        name,
        kind,
        number,
        line,
        before.strip(),
        after.strip(),
        changed,
    )


def _apply(text: str, edits: tuple[tuple[int, int, str], ...]) -> str:
    for start, end, instead in reversed(edits):
        text = text[:start] + instead + text[end:]
    return text


def _edits(module: Module, definition: Definition) -> Iterator[_Edit]:
    if definition.body.kind == "tuple":
        return  # a group of variables, for UNCHANGED
    unchanging = {id(n) for root in _unchanged(definition.body) for n in root.walk()}
    # x' = [x EXCEPT ![k] = @] equals x' = x, which is made anyway.
    alone = {
        node.parts[1].start
        for node in definition.body.walk()
        if _assigns(node) and node.parts[1].kind == "except" and len(node.parts[1].parts) == 2
    }
    dropped = {
        part.start
        for node in definition.body.walk()
        for part in node.parts
        if node.op == "/\\" or node.kind == "if"
    }
    for node in definition.body.walk():
        if id(node) in unchanging:
            continue
        yield from _of_conditions(module, node)
        yield from _of_comparisons(node, dropped)
        yield from _of_numbers(module, node)
        yield from _of_updates(module, node, alone)


def _unchanged(body: Node) -> Iterator[Node]:
    return (node for node in body.walk() if node.kind == "prefix" and node.op == "UNCHANGED")


def _changes(module: Module, node: Node) -> bool:
    """Return whether the node determines a variable's next value, as another module's Other!Step may do too.

    Such a node must not be dropped: the variable would then have no next value.
    """
    return speaks_of_next_state(node, module.changing) or any(
        "!" in n.op for n in node.walk() if n.kind == "apply"
    )


def _of_conditions(module: Module, node: Node) -> Iterator[_Edit]:
    conjunction = node.kind in ("junction", "infix") and node.op == "/\\"
    disjunction = node.kind in ("junction", "infix") and node.op == "\\/"
    conditions = [part for part in node.parts if not _changes(module, part)]
    if conjunction:
        for part in conditions:
            if not (part.kind == "infix" and part.op == "/\\"):
                yield Kind.GUARD, ((part.start, part.end, "TRUE"),)
    if node.kind == "filter":
        yield Kind.GUARD, ((node.parts[1].start, node.parts[1].end, "TRUE"),)
    if node.kind == "infix" and (conjunction or disjunction) and len(conditions) == 2:
        yield Kind.JUNCTION, ((node.start, node.end, _joined_otherwise(module, node)),)
    if disjunction:
        for part in node.parts:
            if _changes(module, part) and part.kind != "infix":
                yield Kind.DISJUNCT, ((part.start, part.end, "FALSE"),)
    match node.kind, node.op:
        case "infix", "=>":
            antecedent = module.text[node.start : node.at + 2]
            yield Kind.CONDITION, ((node.start, node.at + 2, re.sub(r"[^\n]", " ", antecedent)),)
        case "if", _:
            condition = node.parts[0]
            yield Kind.CONDITION, ((condition.start, condition.end, f"~({module.source(condition)})"),)
        case "prefix", "~":
            yield Kind.CONDITION, ((node.at, node.at + 1, " "),)
        case "quantifier", _ if not _changes(module, node.parts[-1]):
            yield Kind.QUANTIFIER, ((node.at, node.at + 2, _OPPOSITE[node.op]),)
        case "literal", "TRUE" | "FALSE":
            yield Kind.VALUE, ((node.start, node.end, _OPPOSITE[node.op]),)


def _joined_otherwise(module: Module, node: Node) -> str:
    left, right = (f"({module.source(part)})" for part in node.parts)
    return f"({left} {_OPPOSITE[node.op]} {right})"


def _of_comparisons(node: Node, dropped: set[int]) -> Iterator[_Edit]:
    # A condition that another mutant drops is shifted if it has a boundary, but not negated as well.
    if node.kind != "infix" or node.op not in _COMPARED or _assigns(node):
        return
    if node.op in _BOUNDARIES or node.start not in dropped:
        yield Kind.COMPARISON, ((node.at, node.at + len(node.op), _COMPARED[node.op]),)


def _of_numbers(module: Module, node: Node) -> Iterator[_Edit]:
    if node.kind == "literal" and node.op.isdigit():
        yield Kind.SHIFT, ((node.start, node.end, str(int(node.op) + 1)),)
    if node.kind == "infix" and node.op == "..":
        low, high = node.parts
        if low.kind != "literal":
            yield Kind.SHIFT, ((low.start, low.end, f"({module.source(low)} + 1)"),)
        if high.kind != "literal":
            yield Kind.SHIFT, ((high.start, high.end, f"({module.source(high)} - 1)"),)


def _of_updates(module: Module, node: Node, assigned: set[int]) -> Iterator[_Edit]:
    if _assigns(node):
        variable, value = node.parts[0].parts[0], node.parts[1]
        kept = module.source(variable)
        instead = kept if node.op == "=" else f"{{{kept}}}"
        yield Kind.UNCHANGED, ((value.start, value.end, instead),)
    if node.kind == "except" and node.start not in assigned:
        for update in (part for part in node.parts if part.kind == "update"):
            value = update.parts[-1]
            yield Kind.UPDATE, ((value.start, value.end, "@"),)


def _assigns(node: Node) -> bool:
    """Whether the node is x' = e or x' \\in S."""
    return node.kind == "infix" and node.op in ("=", "\\in") and node.parts[0].kind == "prime"
