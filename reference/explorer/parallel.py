"""The explorer with several processes: each owns the states whose fingerprints are assigned to it.

The exploration proceeds by levels. Each process takes all steps of its newest states, keeps its own
successors and sends the others to their owners, in one batch per owner. The caller's process only forwards
batches. The order is fixed: the same number of processes always finds the same result, including the
counterexample. Counts, depth and the length of a counterexample are the same for any number of processes.
"""

import pickle
import signal
import traceback
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice, starmap
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from operator import itemgetter
from typing import Any, Final, Generic, NoReturn

from mqproof.reference.explorer.fingerprint import fingerprint, values_of
from mqproof.reference.explorer.memory import resident_bytes
from mqproof.reference.explorer.search import (
    INITIAL,
    LABELS_MAX,
    Label,
    OnLevel,
    Step,
    Violation,
    broken_step,
    check_size,
    first_broken,
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
class _Expanded(Generic[StateT]):
    """A worker's result for the first half of a level, in which it takes all steps of its newest states."""

    batches: list[bytes]
    """The successors that other workers own, by owner."""
    broken: tuple[str, int, Label, StateT] | None
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


def _step_violation(team: _Team, expanded: list[_Expanded[Any]]) -> Violation[Any] | None:
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


def _serve(
    worker: "_Worker[Any, Any]", pipes: list[tuple["Connection[Any, Any]", "Connection[Any, Any]"]]
) -> None:
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


class _Worker(Generic[ConfigT, StateT]):
    """The states of one process, and the requests it serves."""

    def __init__(
        self,
        model: Model[ConfigT, StateT],
        config: ConfigT,
        number: int,
        workers: int,
        states_max: int | None,
    ) -> None:
        self.model = model
        self.config = config
        self.number = number
        self.workers = workers
        self.states_max = states_max
        self.kind = type(model.initial(config)[0])
        self.steps = model.under(config)
        self.links: dict[StateT, int] = {}
        """The links of an Exploration, but parents have global numbers.

        A global number is the state's number in the process that owns it, times `workers`, plus the number of
        that process.
        """
        self.labels: dict[Label, int] = {}
        self.taken = dict.fromkeys(model.actions, 0)
        self.found: list[StateT] = []
        """The newest of the states."""
        self.sent: set[StateT] = set()
        """States of other owners that were sent to them recently."""
        self.memory_before = 0

    def start(self) -> _Received:
        self.memory_before = resident_bytes()
        for state in self.model.initial(self.config):
            if self._owner(state) == self.number and state not in self.links:
                self.links[state] = INITIAL
                self.found.append(state)
        return self._received()

    def expand(self) -> _Expanded[StateT]:
        frontier, self.found = self.found, []
        batches: list[list[tuple[StateT, int]]] = [[] for _ in range(self.workers)]
        broken: tuple[str, int, Label, StateT] | None = None
        links, labels, taken, steps = self.links, self.labels, self.taken, self.steps
        sent = self.sent
        if len(sent) > _SENT_MAX:
            sent.clear()
        for source, state in enumerate(frontier, start=len(links) - len(frontier)):
            for name, parameters, after in steps(state):
                taken[name] += 1
                if broken is None and (invariant := broken_step(self.model, self.config, state, name, after)):
                    broken = invariant, source, (name, parameters), after
                if after in links or after in sent:
                    continue
                label = labels.setdefault((name, parameters), len(labels))
                link = (source * self.workers + self.number) * LABELS_MAX + label
                owner = self._owner(after)
                if owner == self.number:
                    links[after] = link
                    self.found.append(after)
                else:
                    sent.add(after)
                    batches[owner].append((after, link))
            check_size(self.model, len(links), self.states_max)
        return _Expanded([_pack(batch) for batch in batches], broken)

    def receive(self, batches: list[bytes]) -> _Received:
        for batch in batches:
            for state, link in _unpack(batch, self.kind):
                if state not in self.links:
                    self.links[state] = link
                    self.found.append(state)
        return self._received()

    def _received(self) -> _Received:
        first = len(self.links) - len(self.found)
        broken = first_broken(self.model, self.config, self.found)
        place = broken and (broken[0], first + self.found.index(broken[1]))
        return _Received(len(self.links), len(self.found), place)

    def counted(self) -> tuple[dict[str, int], int]:
        return self.taken, max(resident_bytes() - self.memory_before, 0)

    def known_labels(self) -> list[Label]:
        return list(self.labels)

    def at(self, number: int) -> tuple[StateT, int]:
        return next(islice(self.links.items(), number, None))

    def _owner(self, state: StateT) -> int:
        if self.workers == 1:
            return 0
        return fingerprint(state) % self.workers


def _pack(batch: list[tuple[StateT, int]]) -> bytes:
    """Pack the distinct values of each field once, and the states as numbers of them.

    This takes less work than pickling the states, and the receiver's states share their values again. Each
    field has its own numbers, because a named tuple of one field may equal a tuple of another.
    """
    if not batch:
        return b""
    columns = zip(*map(values_of(type(batch[0][0])), map(itemgetter(0), batch)), strict=True)
    return pickle.dumps(
        (list(map(_packed_column, columns)), list(map(itemgetter(1), batch))), pickle.HIGHEST_PROTOCOL
    )


def _packed_column(values: Iterable[Any]) -> tuple[list[Any], bytes]:
    numbers = _Numbers()
    places = array("L", map(numbers.__getitem__, values))
    return list(numbers), places.tobytes()


class _Numbers(dict[Any, int]):
    """Numbers its keys in the order in which they are first looked up."""

    def __missing__(self, thing: Any) -> int:
        number = self[thing] = len(self)
        return number


def _unpack(packed: bytes, kind: Callable[..., StateT]) -> Iterator[tuple[StateT, int]]:
    if not packed:
        return iter(())
    columns, links = pickle.loads(packed)
    values = starmap(_column, columns)
    return zip(starmap(kind, zip(*values, strict=True)), links, strict=True)


def _column(things: list[Any], places: bytes) -> Iterator[Any]:
    numbers = array("L")
    numbers.frombytes(places)
    return map(things.__getitem__, numbers)
