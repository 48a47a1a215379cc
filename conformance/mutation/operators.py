"""Makes the mutants of a Python module: one small change of the syntax tree each.

The number of a mutant is its place in the order in which the module's mutants are made. It is stable as long
as the module does not change.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a module."""

    module: str
    """The dotted name, such as `mqproof.impl.broker.delayed`."""
    number: int
    """The place in the order of the module's mutants, from 0."""
    operator: str
    """A key of OPERATORS, or `wrong-variable`."""
    line: int
    """The first line that runs only with the changed syntax node, from 1."""
    before: str
    after: str
    """The changed syntax node as source text, before and after the change; only the first line."""
    text: str = ""
    """The line as it is in the source, without indentation; empty for a patch."""

    @property
    def id(self) -> str:
        return f"{self.module}:{self.line}:{self.operator}:{self.number}"


Operator = Callable[[ast.AST], Iterator[ast.AST]]
"""Yields the replacements of one syntax node. The replacements are new nodes."""

_COMPARED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
_NOT_CODE: Final = frozenset({"annotation", "returns", "decorator_list", "type_params", "bases"})
"""Fields of syntax nodes that hold types, or that change how a class is made."""
_LOGGERS: Final = frozenset({"_log", "logger", "logging", "warnings"})
_FOR_PEOPLE: Final = frozenset({"__repr__", "__str__"})


def _negate_condition(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _changed(node, test=ast.UnaryOp(ast.Not(), node.test))


def _drop_condition(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        for dropped in range(len(node.values)):
            rest = [each for at, each in enumerate(node.values) if at != dropped]
            yield rest[0] if len(rest) == 1 else _changed(node, values=rest)


def _swap_and_or(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def _shift_comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for at, each in enumerate(node.ops):
            if other := _COMPARED.get(type(each)):
                yield _changed(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])


def _shift_constant(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield _changed(node, value=not node.value)
        elif isinstance(node.value, int | float):
            yield _changed(node, value=node.value + 1)
            if node.value:
                yield _changed(node, value=node.value - 1)


def _change_arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp | ast.AugAssign) and (other := _ARITHMETIC.get(type(node.op))):
        is_text = isinstance(node, ast.BinOp) and any(map(_is_text, (node.left, node.right)))
        if not is_text:
            yield _changed(node, op=other())


def _remove_statement(node: ast.AST) -> Iterator[ast.AST]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    is_update = isinstance(node, ast.AugAssign | ast.Delete | ast.Raise)
    is_stored = isinstance(node, ast.Assign) and all(
        isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets
    )
    if (is_call or is_update or is_stored) and isinstance(node, ast.stmt):
        yield ast.Pass()


_COMMUTATIVE: Final = frozenset({"max", "min"})
"""The functions whose arguments have no order."""


def _swap_arguments(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
        return
    if not (isinstance(node.func, ast.Name) and node.func.id in _COMMUTATIVE):
        for at in range(len(node.args) - 1):
            args = list(node.args)
            if ast.dump(args[at]) == ast.dump(args[at + 1]):
                continue
            args[at], args[at + 1] = args[at + 1], args[at]
            yield _changed(node, args=args)


def _return_early(node: ast.AST) -> Iterator[ast.AST]:
    """Leave out the body of a function that returns nothing."""
    if (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.returns, ast.Constant)
        and node.returns.value is None
        and node.name != "__init__"
        and not any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))
    ):
        yield _changed(node, body=[ast.Return(value=None), *node.body])


def _swallow_exception(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[0], ast.Pass):
        yield _changed(node, body=[ast.Pass()])


def _swap_break_continue(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()


OPERATORS: Final[Mapping[str, Operator]] = {
    "negate-condition": _negate_condition,
    "drop-condition": _drop_condition,
    "swap-and-or": _swap_and_or,
    "shift-comparison": _shift_comparison,
    "shift-constant": _shift_constant,
    "change-arithmetic": _change_arithmetic,
    "remove-statement": _remove_statement,
    "swap-arguments": _swap_arguments,
    "return-early": _return_early,
    "swallow-exception": _swallow_exception,
    "swap-break-continue": _swap_break_continue,
}
"""Maps the name of an operator to the function that makes its replacements."""

WRONG_VARIABLE: Final = "wrong-variable"
"""The operator that reads another parameter of the same declared type; it needs the enclosing function."""


def mutants(module: str, source: str) -> tuple[Mutant, ...]:
    """Return the mutants of a module's source text, in the order of their numbers."""
    lines = source.splitlines()
    return tuple(
        Mutant(
            module, number, change.operator, change.line, _text(change.before), _text(change.after),
            lines[change.line - 1].strip(),
        )
        for number, change in enumerate(_changes(ast.parse(source)))
    )  # fmt: skip


def mutated(source: str, number: int) -> ast.Module:
    """Return the module's syntax tree with the change of that number.

    Raises:
        IndexError: the module has fewer mutants.
    """
    tree = ast.parse(source)
    for each, change in enumerate(_changes(tree)):
        if each == number:
            change.apply()
            return ast.fix_missing_locations(tree)
    raise IndexError(f"the module has no mutant {number}")


@dataclass(frozen=True, slots=True)
class _Change:
    """A replacement and the place where it goes."""

    operator: str
    parent: ast.AST
    field: str
    index: int | None
    """The place in the list that the field holds; None if the field holds one node."""
    before: ast.AST
    after: ast.AST

    @property
    def line(self) -> int:
        """Return the line of the node; of the first statement, if the node is a function or an `except`.

        The line of `def` runs when the module is imported, and that of `except` when another error passes.
        The line of an `if` does not run by itself if the condition begins on the next line.
        """
        node = self.before
        if isinstance(node, ast.If | ast.While):
            node = node.test
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ExceptHandler):
            node = next((each for each in node.body if not _is_left_alone(each)), node.body[0])
        return int(getattr(node, "lineno", 0))

    def apply(self) -> None:
        ast.copy_location(self.after, self.before)
        if self.index is None:
            setattr(self.parent, self.field, self.after)
        else:
            getattr(self.parent, self.field)[self.index] = self.after


def _changes(tree: ast.Module) -> Iterator[_Change]:
    yield from _changes_below(tree, {})


def _changes_below(parent: ast.AST, same_type: Mapping[str, str]) -> Iterator[_Change]:
    """Yield the changes below a node. `same_type` maps a parameter to another one of its declared type."""
    for field, index, node in _children(parent):
        if _is_left_alone(node):
            continue
        replacements = [(name, after) for name, operator in OPERATORS.items() for after in operator(node)]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in same_type:
            replacements.append((WRONG_VARIABLE, ast.Name(same_type[node.id], ast.Load())))
        for name, after in replacements:
            yield _Change(name, parent, field, index, node, after)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _changes_below(node, _same_type(node) if is_function else same_type)


def _children(parent: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """Yield the child nodes that are code, with the fields that hold them, before any change is made."""
    for field, value in ast.iter_fields(parent):
        if field in _NOT_CODE:
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            yield from ((field, at, each) for at, each in enumerate(value) if isinstance(each, ast.AST))


def _is_left_alone(node: ast.AST) -> bool:
    """Return whether a change below the node could not change what the code does for others."""
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.AnnAssign(value=None):
            return True
        case ast.Expr(value=ast.Constant()):  # a docstring
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name=name):
            return name in _FOR_PEOPLE
        case ast.ClassDef(bases=bases):
            return any(isinstance(each, ast.Name) and each.id == "Protocol" for each in bases)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__")
    return False


def _same_type(function: ast.AST) -> Mapping[str, str]:
    """Map each parameter of a function to the next one with the same annotation."""
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    groups: dict[str, list[str]] = {}
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if each.annotation is not None:
            groups.setdefault(ast.unparse(each.annotation), []).append(each.arg)
    return {
        name: names[(at + 1) % len(names)]
        for names in groups.values()
        if len(names) > 1
        for at, name in enumerate(names)
    }


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of the node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _text(node: ast.AST) -> str:
    """Return the first line of the node as source text."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"def {node.name}: {ast.unparse(node.body[0]).splitlines()[0]}"
    if isinstance(node, ast.ExceptHandler):
        return f"except: {ast.unparse(node.body[0]).splitlines()[0]}"
    if isinstance(node, ast.If | ast.While):
        node = _changed(node, body=[ast.Pass()], orelse=[])  # only the first line is read
    return ast.unparse(node).splitlines()[0]
