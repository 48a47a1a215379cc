"""Several processes find the same as one process, and leave nothing behind."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from mqproof.reference import flush, mutants
from mqproof.reference.explorer import parallel, search
from mqproof.reference.flush import Config, State
from mqproof.reference.model import Action, Model

# The test runner has threads. The processes forked here use none of their locks.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

SMALL = Config(messages=("m1",))


def _with_dispatch(apply: Any) -> Model[Config, State]:
    broken = Action("Dispatch", apply, flush.ACTIONS["Dispatch"].domain)
    return replace(flush.MODEL, actions={**flush.ACTIONS, "Dispatch": broken})


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_processes_counts_the_same(workers: int) -> None:
    alone = search.explore(flush.MODEL, SMALL)
    together = parallel.explore(flush.MODEL, SMALL, workers)
    assert (together.states, together.edges, together.depth) == (986, 1741, alone.depth)
    assert together.taken == alone.taken
    assert together.violation is None


def test_two_processes_find_the_recorded_size_of_the_smoke_configuration() -> None:
    levels: list[tuple[int, int]] = []
    done = parallel.explore(flush.MODEL, Config(), 2, on_level=lambda *level: levels.append(level))
    assert (done.states, done.edges, done.depth) == (32782, 79966, 21)
    assert levels[-1] == (21, 32782)
    assert done.memory_bytes


@pytest.mark.parametrize("name", ["AckBeforeFlush", "LateCommit", "TornRecordKept"])
def test_a_counterexample_is_as_short_and_is_always_the_same(name: str) -> None:
    mutant = mutants.MUTANTS[name]
    model = mutant.broken()
    alone = search.explore(model, mutant.config)
    assert alone.violation is not None
    found = [parallel.explore(model, mutant.config, 2) for _ in range(2)]
    assert found[0].violation == found[1].violation
    violation = found[0].violation
    assert violation is not None
    assert violation.invariant == alone.violation.invariant == mutant.invariant
    assert len(violation.path) == len(alone.violation.path)
    assert (found[0].states, found[0].depth) == (len(alone.parents), alone.depth)
    state = violation.path[0].state
    assert state in flush.initial(mutant.config)
    for step in violation.path[1:]:
        state = model.actions[step.action].apply(mutant.config, state, *step.parameters)
        assert state == step.state


def test_an_initial_state_may_be_the_counterexample() -> None:
    model = replace(flush.MODEL, invariants={"Never": lambda _config, _state: False})
    violation = parallel.explore(model, SMALL, 2).violation
    assert violation is not None
    assert [step.action for step in violation.path] == ["Init"]


def test_too_many_states_are_refused() -> None:
    with pytest.raises(MemoryError, match="more than 100 states"):
        parallel.explore(flush.MODEL, Config(), 2, states_max=100)
    assert not multiprocessing.active_children()


def test_a_failure_in_a_process_is_reported_with_its_traceback() -> None:
    def fail(_config: Config, _state: State) -> State | None:
        raise ZeroDivisionError("injected")

    with pytest.raises(parallel.WorkerError, match="ZeroDivisionError: injected"):
        parallel.explore(_with_dispatch(fail), SMALL, 2)
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_counts_as_out_of_memory() -> None:
    def die(_config: Config, _state: State) -> State | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    with pytest.raises(MemoryError, match="was killed"):
        parallel.explore(_with_dispatch(die), SMALL, 2)
    assert not multiprocessing.active_children()


def test_an_interrupt_leaves_no_process() -> None:
    def hang(_config: Config, _state: State) -> State | None:
        time.sleep(60)
        return None

    # Sent to this thread: a signal to another thread does not end the wait for an answer.
    here = threading.main_thread().ident
    assert here is not None
    timer = threading.Timer(0.5, signal.pthread_kill, (here, signal.SIGINT))
    timer.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.explore(_with_dispatch(hang), SMALL, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    timer.join()
    assert not multiprocessing.active_children()
