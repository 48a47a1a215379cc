"""The conditions in a model's actions, and which of them decide in a state.

A condition is an expression that an action's function, or a function of its module that it calls, tests: an
operand of an `if`, or of the `and` and `or` that a predicate returns. An outcome of a condition, true or
false, is reached in a state if it alone decides: with the other value, and everything else equal, the action
would be refused instead of taken, or the other way round, or lead to another state (modified
condition/decision coverage). If the other value makes the action use an undefined value, the condition
decides nothing.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from types import FunctionType
from typing import Any, Final, Generic, NamedTuple

from mqproof.reference.model import ConfigT, Model, Parameters, StateT

_WATCH: Final = "_watch"
_UNDECIDED: Final = (
    AssertionError, ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError,
)  # fmt: skip
"""Errors raised when an undefined value is used."""


class Outcome(NamedTuple):
    action: str
    condition: str
    """Source text in the reference.

    It includes the name of the function that tests it, if that is not the action's own.
    """
    value: bool


class Conditions(Generic[ConfigT, StateT]):
    """The conditions of a model's actions; each can be forced to the other value."""

    def __init__(self, model: Model[ConfigT, StateT]) -> None:
        self._texts: list[tuple[str, str]] = []
        """By number: the function, and the source text of the condition."""
        self._met: list[tuple[int, bool]] = []
        """The conditions that one call evaluated, with their values."""
        self._forced: tuple[int, bool] | None = None
        self._applies: dict[str, Callable[..., StateT | None]] = {}
        self._of: dict[str, tuple[int, ...]] = {}
        module = sys.modules[next(iter(model.actions.values())).apply.__module__]
        marked = _functions(ast.parse(inspect.getsource(module)))
        conditions = {name: self._mark(function) for name, function in marked.items()}
        known = {**vars(module), _WATCH: self._watch}
        tree = ast.fix_missing_locations(ast.Module(list(marked.values()), []))
        exec(compile(tree, f"<conditions of {model.name}>", "exec"), known)
        for name, action in model.actions.items():
            apply = action.apply
            assert isinstance(apply, FunctionType), f"{model.name}: {name} is not a function"
            # An action lifted from another model has that model's conditions.
            is_here = getattr(module, apply.__name__, None) is apply
            called = _called(apply.__name__, marked) if is_here else {}
            self._applies[name] = known[apply.__name__] if is_here else apply
            self._of[name] = tuple(number for each in called for number in conditions[each])

    def outcomes(self, action: str) -> Iterator[Outcome]:
        """Yield all possible outcomes."""
        for number in self._of[action]:
            yield from (self._outcome(action, number, value) for value in (False, True))

    def reached(
        self,
        action: str,
        config: ConfigT,
        state: StateT,
        parameters: Parameters,
        wanted: Collection[Outcome],
    ) -> Iterator[Outcome]:
        """Yield the wanted outcomes that the action reaches in this state."""
        apply = self._applies[action]
        self._met.clear()
        after = apply(config, state, *parameters)
        for number, value in dict.fromkeys(self._met):
            outcome = self._outcome(action, number, value)
            if outcome in wanted and self._decides(number, value, apply, after, (config, state, *parameters)):
                yield outcome

    def _outcome(self, action: str, number: int, value: bool) -> Outcome:
        function, text = self._texts[number]
        own = function == self._applies[action].__name__
        return Outcome(action, text if own else f"{function}: {text}", value)

    def _decides(
        self, number: int, value: bool, apply: Callable[..., Any], after: Any, arguments: tuple[Any, ...]
    ) -> bool:
        self._forced = (number, not value)
        try:
            return bool(apply(*arguments) != after)
        except _UNDECIDED:
            return False
        finally:
            self._forced = None

    def _watch(self, number: int, value: object) -> bool:
        if self._forced is not None and self._forced[0] == number:
            return self._forced[1]
        self._met.append((number, bool(value)))
        return bool(value)

    def _mark(self, function: ast.FunctionDef) -> tuple[int, ...]:
        """Make each condition of the function record its value. Equal conditions are one."""
        marking = _Marking(function, len(self._texts))
        marking.visit(function)
        self._texts += [(function.name, text) for text in marking.texts]
        return tuple(range(len(self._texts) - len(marking.texts), len(self._texts)))


class _Marking(ast.NodeTransformer):
    def __init__(self, function: ast.FunctionDef, first: int) -> None:
        self.texts: list[str] = []
        self._function = function
        self._first = first

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self._operands(node.test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._operands(node.test)
        return self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            node.guard = self._operands(node.guard)
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if isinstance(node.value, ast.BoolOp) and _is_predicate(self._function):
            node.value = self._operands(node.value)
        return self.generic_visit(node)

    def _operands(self, test: ast.expr) -> ast.expr:
        if isinstance(test, ast.BoolOp):
            test.values = [self._operands(each) for each in test.values]
            return test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._operands(test.operand)
            return test
        text = ast.unparse(test)
        if text not in self.texts:
            self.texts.append(text)
        number = ast.Constant(self._first + self.texts.index(text))
        return ast.Call(ast.Name(_WATCH, ast.Load()), [number, test], [])


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _called(name: str, functions: dict[str, ast.FunctionDef]) -> dict[str, None]:
    """Return the function and those that it calls, directly or indirectly, in that order."""
    found: dict[str, None] = {name: None}
    todo = [name]
    while todo:
        names = [node for node in ast.walk(functions[todo.pop(0)]) if isinstance(node, ast.Name)]
        locals_ = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        new = dict.fromkeys(node.id for node in names if node.id in functions and node.id not in locals_)
        todo += [each for each in new if each not in found]
        found |= new
    return found


def _is_predicate(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"
