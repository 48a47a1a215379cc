"""Measures how much of a target an example reaches, so that the search prefers examples that reach more.

For our own broker in this process, it is the number of branches of `impl/` that the example executes. For any
other target, it is the number of different actions of the model and different answers that it observes.
Hypothesis varies the examples with the highest numbers (`hypothesis.target`); the seed determines the run.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from mqproof.conformance.engine.suite_definition import Session
from mqproof.conformance.engine.targets import IMPL, MUTANT

if TYPE_CHECKING:
    from coverage import Coverage

IMPL_FOLDER: Final = Path(__file__).resolve().parents[2] / "impl"
PARTS: Final = ("broker", "store", "namesrv", "replication", "dledger", "remoting", "client")
"""The folders of `impl/` that the suites test. The others are tools for people, or the simulation itself."""
Feedback = Callable[[Session], float]
"""Returns how much the example of the session has reached."""
Reached = Mapping[str, frozenset[int]]
"""Maps a module of `impl/`, as a path relative to it, to the lines that were executed."""
_NUMBER: Final = re.compile(r"\d+")


def answers_seen(session: Session) -> float:
    """Return the number of actions of the model and of answers that differ in more than numbers."""
    answers = {_NUMBER.sub("", step.partition(": ")[2]) for step in session.script()}
    return float(len(answers) + len(session.actions()))


class CodeCoverage:
    """Records the code of `impl/` that is executed in this process, with coverage.py."""

    def __init__(self) -> None:
        import coverage

        self._recorder: Coverage = coverage.Coverage(
            data_file=None, include=[f"{IMPL_FOLDER}/*"], branch=True, config_file=False
        )
        self._recorder.set_option("run:disable_warnings", ["no-data-collected"])
        self._lines: defaultdict[str, set[int]] = defaultdict(set)

    def __enter__(self) -> "CodeCoverage":
        self._recorder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._recorder.stop()
        self._take()

    @property
    def reached(self) -> Reached:
        return {module: frozenset(lines) for module, lines in self._lines.items()}

    def branches(self, _: Session) -> float:
        """Return the number of branches that were executed since the last call."""
        self._recorder.stop()
        branches = self._take()
        self._recorder.start()
        return float(branches)

    def _take(self) -> int:
        data, branches = self._recorder.get_data(), 0
        for file in data.measured_files():
            taken = data.arcs(file) or ()
            branches += len(taken)
            module = Path(file).resolve().relative_to(IMPL_FOLDER).as_posix()
            self._lines[module].update(abs(line) for branch in taken for line in branch)
        self._recorder.erase()
        return branches


@contextmanager
def recorded(target: str, *, wanted: bool) -> Iterator[CodeCoverage | None]:
    """Record the code that runs within the block, if it is wanted and the target runs in this process."""
    if wanted and (target == IMPL or target.startswith(MUTANT)):
        with CodeCoverage() as recorder:
            yield recorder
    else:
        yield None


@cache
def statements() -> Reached:
    """Return the lines of all statements in functions; those outside run when the module is imported."""
    return {
        file.relative_to(IMPL_FOLDER).as_posix(): _in_functions(file)
        for part in PARTS
        for file in sorted((IMPL_FOLDER / part).rglob("*.py"))
    }


def _in_functions(file: Path) -> frozenset[int]:
    functions = (
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return frozenset(
        each.lineno
        for function in functions
        for statement in function.body
        for each in ast.walk(statement)
        if isinstance(each, ast.stmt) and not _is_text(each)
    )


def _is_text(statement: ast.stmt) -> bool:
    """Return whether the statement is a docstring or `...`, which leave no line to execute."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
