"""Remembers the results of a model's functions by the field values that they read.

A step of a model reads few fields, and few combinations of their values exist. Each function is evaluated
once for each combination. All other results are found in its tree of dictionaries: one field after the other,
in the order in which the function reads them.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from mqproof.reference.explorer.rows import Row, Rows
from mqproof.reference.explorer.search import Label, broken_step
from mqproof.reference.explorer.watched import UnsteadyError, Watch, watched, written
from mqproof.reference.model import Model, Parameters

Tree = list[Any]
"""A node of a tree: the column that is read next and the nodes by its number, or the result and None."""


class Edge(NamedTuple):
    """A step to another state, as it is taken from all states that look alike to its action."""

    label: int
    changes: tuple[tuple[int, int], ...]
    """The columns that change, each with its new number."""
    share: int
    """The sum of the new numbers' shares."""
    broken: str | None
    """The step invariant that the step violates."""


class Remembered:
    """The steps and invariants of a model under one configuration, as functions of a row."""

    def __init__(self, model: Model[Any, Any], config: Any, rows: Rows) -> None:
        self.labels: Final[dict[Label, int]] = {}
        self._model = model
        self._config = config
        self._rows = rows
        self._functions: dict[int, Callable[[Any], Any]] = {}
        self._steps: dict[Label, Tree] = {}
        self._fixed = [
            self._step(name, parameters)
            for name, action in model.actions.items()
            if action.choices is None
            for parameters in action.domain(config)
        ]
        self._chosen = [
            self._tree(partial(self._choices, name, action.choices))
            for name, action in model.actions.items()
            if action.choices is not None
        ]
        self._invariants = [
            (name, self._tree(partial(holds, config))) for name, holds in model.invariants.items()
        ]

    def steps(self, row: Row) -> Iterator[Edge]:
        """Yield every step from the row's state."""
        trees = self._fixed
        for tree in self._chosen:
            trees = trees + self._result(tree, row)
        for tree in trees:
            found, branches = tree  # as in `_result`, without a call for each tree
            try:
                while branches is not None:
                    found, branches = branches[row[found]]
            except KeyError:
                found = self._evaluated(tree, row)
            if found is not None:
                yield found

    def broken(self, row: Row) -> str | None:
        """Return the first invariant that the row's state violates."""
        for name, tree in self._invariants:
            if not self._result(tree, row):
                return name
        return None

    def _result(self, tree: Tree, row: Row) -> Any:
        found, branches = tree
        try:
            while branches is not None:
                found, branches = branches[row[found]]
        except KeyError:
            return self._evaluated(tree, row)
        return found

    def _evaluated(self, tree: Tree, row: Row) -> Any:
        """Evaluate a tree's function, and add the result to the tree."""
        watch = Watch(row, self._rows.values)
        result = self._functions[id(tree)](watched(self._rows.columns, watch))
        node = tree
        for column, number in watch.read.items():
            if node[1] == {}:
                node[0] = column
            elif node[1] is None or node[0] != column:
                raise UnsteadyError
            node = node[1].setdefault(number, [0, {}])
        if node[1] != {}:
            raise UnsteadyError
        node[:] = result, None
        return result

    def _tree(self, function: Callable[[Any], Any]) -> Tree:
        tree: Tree = [0, {}]
        self._functions[id(tree)] = function
        return tree

    def _step(self, name: str, parameters: Parameters) -> Tree:
        label = (name, parameters)
        if label not in self._steps:
            self._steps[label] = self._tree(partial(self._taken, label))
        return self._steps[label]

    def _choices(self, name: str, choices: Callable[..., Any], state: Any) -> list[Tree]:
        return [self._step(name, parameters) for parameters in choices(self._config, state)]

    def _taken(self, label: Label, state: Any) -> Edge | None:
        name, parameters = label
        after = self._model.actions[name].apply(self._config, state, *parameters)
        if after is None:
            return None
        broken = broken_step(self._model, self._config, state, name, after)
        number = self._rows.number
        changes = tuple(
            (column, number(column, value)) for column, value in written(self._rows.columns, after).items()
        )
        share = sum(self._rows.shares[new] for _, new in changes)
        return Edge(self.labels.setdefault(label, len(self.labels)), changes, share, broken)
