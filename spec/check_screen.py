"""The screen output of `mqproof check`: progress while TLC runs, and one row per run at the end."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from mqproof.report.console import is_quiet
from mqproof.report.model import Result, Table, Verdict, overall
from mqproof.spec.model_file import Kind, Question
from mqproof.spec.models import Answer, Progress


def runs_table(answers: Sequence[Answer]) -> Table:
    """Return one row per run, for 80 columns.

    The model has no column: a run's name nearly always contains it.
    """
    rows = tuple(
        (
            label(answer.question),
            overall(answer.results).value,
            str(answer.states),
            str(answer.depth or "-"),
            f"{answer.seconds:.1f}",
        )
        for answer in answers
    )
    return Table("Runs of TLC", ("run", "verdict", "states", "depth", "seconds"), rows)


def full_table(answers: Sequence[Answer]) -> Table:
    """The rows of `runs_table` with the model and the kind of each run, for the files."""
    columns = ("model", "run", "kind", "verdict", "states", "depth", "seconds")
    rows = tuple(
        (answer.question.model, answer.question.name, answer.question.kind.value, *row[1:])
        for answer, row in zip(answers, runs_table(answers).rows, strict=True)
    )
    return Table("Runs of TLC", columns, rows)


def shown_results(answers: Sequence[Answer]) -> tuple[Result, ...]:
    """Return the results as the terminal shows them.

    Steps of a violation are left out, because they are printed before as its counterexample. Results that a
    stopped run left unknown have no replay command.
    """
    found: list[Result] = []
    for answer in answers:
        stopped = any(result.verdict is Verdict.VIOLATED for result in answer.results)
        for result in answer.results:
            # The line of the violation has the command.
            unknown = stopped and result.verdict is Verdict.UNKNOWN
            found.append(replace(result, witnesses=(), replay="" if unknown else result.replay))
    return tuple(found)


def label(question: Question) -> str:
    """Return the name of a run, preceded by its model if the name does not contain it."""
    if question.kind is Kind.PROBES or question.model not in question.name:
        return f"{question.model} {question.name}"
    return question.name


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """Show progress on standard error: a moving line on a terminal, otherwise one line per answer."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if is_quiet():
        yield Progress()
        return
    if not console.is_terminal:
        yield _Lines(console, total)
        return
    moving = _Moving(console, total)
    with console.status(moving, spinner="dots"):
        yield moving


class _Lines(Progress):
    """Shows one line per answer."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self.total = total
        self.done = 0

    def answered(self, answer: Answer) -> None:
        self.done += 1
        verdict = overall(answer.results).value
        place = f"{self.done}/{self.total} {answer.question.model} {answer.question.name}"
        line = f"{place}: {verdict}, {answer.states} states, {answer.seconds:.1f} s"
        self._console.print(line, soft_wrap=True)


class _Moving(Progress):
    """Shows one line with the running questions, their states and seconds; drawn several times a second."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._lock = threading.Lock()
        self._running: dict[str, tuple[float, int]] = {}  # start time and number of states
        self._done = 0
        self._states = 0
        self._began = time.monotonic()

    def started(self, question: Question) -> None:
        with self._lock:
            self._running[label(question)] = (time.monotonic(), 0)

    def found(self, question: Question, states: int) -> None:
        with self._lock:
            since, _ = self._running.get(label(question), (time.monotonic(), 0))
            self._running[label(question)] = (since, states)

    def answered(self, answer: Answer) -> None:
        with self._lock:
            self._running.pop(label(answer.question), None)
            self._done += 1
            self._states += answer.states

    def __rich__(self) -> Text:
        now = time.monotonic()
        with self._lock:
            states = self._states + sum(found for _, found in self._running.values())
            running = [f"{name} {now - since:.0f} s" for name, (since, _) in self._running.items()]
            done = self._done
        line = f"{done}/{self._total} runs, {states:,} states, {now - self._began:.0f} s"
        line = ": ".join(filter(None, (line, ", ".join(running))))
        text = Text(line, no_wrap=True, overflow="ellipsis")
        text.truncate(max(10, self._console.width - 2), overflow="ellipsis")
        return text
