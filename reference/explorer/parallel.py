"""The explorer with several processes: each owns the states that are assigned to it.

The exploration proceeds by levels. Each process takes all steps of its newest states, keeps its own
successors and sends the others to their owners, in one batch per owner. The caller's process only forwards
batches. The order is fixed: the same number of processes always finds the same result, including the
counterexample. Counts, depth and the length of a counterexample are the same for any number of processes.

In a process, a state is a row of numbers (`rows.py`), and the model's functions are evaluated once for each
combination of the values that they read (`remembered.py`).
"""

import pickle
import signal
import traceback
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from typing import Any, Final, NoReturn

from mqproof.reference.explorer.columns import columns_of
from mqproof.reference.explorer.memory import resident_bytes
from mqproof.reference.explorer.remembered import Remembered
from mqproof.reference.explorer.rows import Row, Rows
from mqproof.reference.explorer.search import (
    INITIAL,
    LABELS_MAX,
    Label,
    OnLevel,
    Step,
    Violation,
    check_size,
    uncollected,
)
from mqproof.reference.explorer.summary import Summary
from mqproof.reference.model import ConfigT, Model, StateT

_FORK: Final = ForkContext()  # a model consists of functions, which can be inherited but not sent
_INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM)

_SENT_MAX: Final = 1 << 16
"""The size at which a process clears its set of sent states. Sending a state twice only costs time."""


class WorkerError(RuntimeError):
    """A process of the exploration failed; the message has its traceback."""


@dataclass(frozen=True, slots=True)
class _Expanded:
    """A worker's result for the first half of a level, in which it takes all steps of its newest states."""

    batches: list[bytes]
    """The successors that other workers own, by owner."""
    broken: tuple[str, int, Label, Any] | None
    """A step that violates an invariant: the invariant, the source's number, the label, the target."""


@dataclass(frozen=True, slots=True)
class _Received:
    """A worker's result for the second half of a level, in which it receives its new states."""

    states: int
    found: int
    broken: tuple[str, int] | None
    """A state that violates an invariant: the invariant and the state's number."""


def explore(
    model: Model[ConfigT, StateT],
    config: ConfigT,
    workers: int,
    *,
    on_level: OnLevel | None = None,
    states_max: int | None = None,
) -> Summary[StateT]:
    """Return the result of `mqproof.reference.explorer.search.explore`, computed by `workers` processes.

    When it returns, raises or is interrupted, no process is left.

    Raises:
        MemoryError: more than `states_max` states are reachable, or a process was killed, usually because
          memory ran out. WorkerError: a process failed.
    """
    with _team(model, config, workers, states_max) as team:
        received = team.ask("start")
        depth = 0
        violation = _state_violation(team, received)
        while violation is None and any(worker.found for worker in received):
            depth += 1
            expanded = team.ask("expand")
            violation = _step_violation(team, expanded)
            received = team.ask(
                "receive", [[one.batches[owner] for one in expanded] for owner in range(workers)]
            )
            violation = violation or _state_violation(team, received)
            states = sum(worker.states for worker in received)
            check_size(model, states, states_max)
            if on_level is not None:
                on_level(depth, states)
        counted = team.ask("counted")
    taken = {name: sum(each[name] for each, _ in counted) for name in model.actions}
    return Summary(sum(r.states for r in received), depth, taken, violation, sum(m for _, m in counted))


class _Team:
    """The workers, as the main process sees them."""

    def __init__(self, processes: list[ForkProcess], connections: list["Connection[Any, Any]"]) -> None:
        self.processes = processes
        self.connections = connections

    def ask(self, what: str, arguments: list[Any] | None = None) -> list[Any]:
        """Send each worker its own argument, and return all answers in order."""
        for number in range(len(self.processes)):
            self._send(number, (what, *(() if arguments is None else (arguments[number],))))
        return [self._answer(number) for number in range(len(self.processes))]

    def ask_one(self, number: int, what: str, argument: Any) -> Any:
        self._send(number, (what, argument))
        return self._answer(number)

    def _send(self, number: int, message: tuple[Any, ...]) -> None:
        try:
            self.connections[number].send(message)
        except OSError:
            self._ended(number)

    def _answer(self, number: int) -> Any:
        try:
            done, answer = self.connections[number].recv()
        except (EOFError, OSError):
            self._ended(number)
        if not done:
            raise answer
        return answer

    def _ended(self, number: int) -> NoReturn:
        process = self.processes[number]
        process.join()
        if process.exitcode == -signal.SIGKILL:
            raise MemoryError(f"process {number} was killed, out of memory?") from None
        raise WorkerError(f"process {number} ended with exit code {process.exitcode}") from None


@contextmanager
def _team(model: Model[Any, Any], config: Any, workers: int, states_max: int | None) -> Iterator[_Team]:
    pipes = [_FORK.Pipe() for _ in range(workers)]
    processes: list[ForkProcess] = []
    try:
        for number in range(workers):
            worker = _Worker(model, config, number, workers, states_max)
            process = _FORK.Process(target=_serve, args=(worker, pipes), daemon=True)
            with _uninterrupted():
                process.start()
                processes.append(process)
        for _, theirs in pipes:
            theirs.close()
        yield _Team(processes, [ours for ours, _ in pipes])
    finally:
        # They have nothing to clean up, and may be in the middle of a long level.
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
        for ours, _ in pipes:
            ours.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer interrupts while a process is forked.

    Python discards an exception that a handler raises during a fork. A process not yet in the list would then
    not be ended. Handlers are used instead of a signal mask, because other threads do not have the mask.
    """
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    try:
        for number in _INTERRUPTS:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for held in came:
        signal.raise_signal(held)


def _state_violation(team: _Team, received: list[_Received]) -> Violation[Any] | None:
    for owner, worker in enumerate(received):
        if worker.broken is not None:
            invariant, number = worker.broken
            return Violation(invariant, _path(team, owner, number))
    return None


def _step_violation(team: _Team, expanded: list[_Expanded]) -> Violation[Any] | None:
    for owner, worker in enumerate(expanded):
        if worker.broken is not None:
            invariant, source, (action, parameters), after = worker.broken
            return Violation(invariant, (*_path(team, owner, source), Step(action, parameters, after)))
    return None


def _path(team: _Team, owner: int, number: int) -> tuple[Step[Any], ...]:
    labels: list[list[Label]] = team.ask("known_labels")
    steps: list[Step[Any]] = []
    while True:
        state, link = team.ask_one(owner, "at", number)
        if link == INITIAL:
            return (Step("Init", (), state), *reversed(steps))
        source, label = divmod(link, LABELS_MAX)
        number, owner = divmod(source, len(labels))
        action, parameters = labels[owner][label]
        steps.append(Step(action, parameters, state))


def _serve(worker: "_Worker", pipes: list[tuple["Connection[Any, Any]", "Connection[Any, Any]"]]) -> None:
    """Run a worker process: answer requests until the main process closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process is interrupted too, and ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, (ours, theirs) in enumerate(pipes):
        ours.close()  # otherwise no worker would see the main process close its end
        if number != worker.number:
            theirs.close()
    master = pipes[worker.number][1]
    with uncollected(), suppress(EOFError, OSError):
        while True:
            what, *arguments = master.recv()
            try:
                answer = (True, getattr(worker, what)(*arguments))
            except MemoryError as error:
                answer = (False, MemoryError(*error.args or ("out of memory",)))
            except Exception:
                answer = (False, WorkerError(f"process {worker.number}: {traceback.format_exc()}"))
            master.send(answer)


class _Worker:
    """The states of one process, and the requests it serves."""

    def __init__(
        self, model: Model[Any, Any], config: Any, number: int, workers: int, states_max: int | None
    ) -> None:
        self.model = model
        self.number = number
        self.workers = workers
        self.states_max = states_max
        self.initial = model.initial(config)
        self.rows = Rows(columns_of(self.initial[0]), workers)
        self.functions = Remembered(model, config, self.rows)
        self.links: dict[Row, int] = {}
        """The links of an Exploration, but parents have global numbers.

        A global number is the state's number in the process that owns it, times `workers`, plus the number of
        that process.
        """
        self.taken: defaultdict[int, int] = defaultdict(int)
        """By label: how often its step was taken."""
        self.found: list[Row] = []
        """The newest of the states."""
        self.sent: set[Row] = set()
        """States of other owners that were sent to them recently."""
        self.values_sent = [0] * workers
        """By process: how many of the values were sent to it."""
        self.numbers: list[list[int]] = [[] for _ in range(workers)]
        """By process: the own numbers of the values that it sent."""
        self.memory_before = 0

    def start(self) -> _Received:
        self.memory_before = resident_bytes()
        for row in map(self.rows.row, self.initial):
            if self.rows.part(row) == self.number and row not in self.links:
                self.links[row] = INITIAL
                self.found.append(row)
        return self._received()

    def expand(self) -> _Expanded:
        frontier, self.found = self.found, []
        batches: list[list[tuple[Row, int]]] = [[] for _ in range(self.workers)]
        broken: tuple[str, int, int, Row] | None = None
        links, sent, taken, shares = self.links, self.sent, self.taken, self.rows.shares
        if len(sent) > _SENT_MAX:
            sent.clear()
        for source, row in enumerate(frontier, start=len(links) - len(frontier)):
            for label, changes, share, invariant in self.functions.steps(row):
                taken[label] += 1
                changed = list(row)
                for column, number in changes:
                    share -= shares[changed[column]]
                    changed[column] = number
                after = tuple(changed)
                if invariant is not None and broken is None:
                    broken = invariant, source, label, after
                owner = (self.number + share) % self.workers
                if after in (links if owner == self.number else sent):
                    continue
                link = (source * self.workers + self.number) * LABELS_MAX + label
                if owner == self.number:
                    links[after] = link
                    self.found.append(after)
                else:
                    sent.add(after)
                    batches[owner].append((after, link))
            check_size(self.model, len(links), self.states_max)
        packed = [self._pack(owner, batch) for owner, batch in enumerate(batches)]
        return _Expanded(packed, broken and self._described(*broken))

    def receive(self, batches: list[bytes]) -> _Received:
        for sender, batch in enumerate(batches):
            for row, link in self._unpack(sender, batch):
                if row not in self.links:
                    self.links[row] = link
                    self.found.append(row)
        return self._received()

    def _received(self) -> _Received:
        first = len(self.links) - len(self.found)
        broken: tuple[str, int] | None = None
        for number, row in enumerate(self.found, start=first):
            if (invariant := self.functions.broken(row)) is not None:
                broken = invariant, number
                break
        return _Received(len(self.links), len(self.found), broken)

    def counted(self) -> tuple[dict[str, int], int]:
        taken = dict.fromkeys(self.model.actions, 0)
        for (action, _), number in self.functions.labels.items():
            taken[action] += self.taken[number]
        return taken, max(resident_bytes() - self.memory_before, 0)

    def known_labels(self) -> list[Label]:
        return list(self.functions.labels)

    def at(self, number: int) -> tuple[Any, int]:
        row, link = next(islice(self.links.items(), number, None))
        return self.rows.state(row), link

    def _described(self, invariant: str, source: int, label: int, after: Row) -> tuple[str, int, Label, Any]:
        return invariant, source, self.known_labels()[label], self.rows.state(after)

    def _pack(self, owner: int, batch: list[tuple[Row, int]]) -> bytes:
        """Pack rows, and the values that their owner does not know yet."""
        if not batch:
            return b""
        new = slice(self.values_sent[owner], None)
        values = list(zip(self.rows.places[new], self.rows.values[new], strict=True))
        self.values_sent[owner] += len(values)
        numbers = array("L", chain.from_iterable(row for row, _ in batch))
        links = [link for _, link in batch]
        return pickle.dumps((values, numbers.tobytes(), links), pickle.HIGHEST_PROTOCOL)

    def _unpack(self, sender: int, packed: bytes) -> Iterator[tuple[Row, int]]:
        """Yield the rows, in the numbers of this process, with their links."""
        if not packed:
            return iter(())
        values, numbers, links = pickle.loads(packed)
        own = self.numbers[sender]
        own += [self.rows.number(column, value) for column, value in values]
        theirs = array("L")
        theirs.frombytes(numbers)
        width = len(theirs) // len(links)
        ours = map(own.__getitem__, theirs)
        return zip(zip(*[ours] * width, strict=True), links, strict=True)
