"""Exploration by several processes has the results of one process and leaves no process behind."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from mqproof.reference import damage, flush, mutants
from mqproof.reference.constants import constants
from mqproof.reference.explorer import parallel, search
from mqproof.reference.flush import Config, State
from mqproof.reference.model import Action, Model
from mqproof.spec.model_file import load

# The test runner has threads. The processes forked here use none of the locks of those threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

SMALL = Config(messages=("m1",))


def _with_dispatch(apply: Any) -> Model[Config, State]:
    broken = Action("Dispatch", apply, flush.ACTIONS["Dispatch"].domain)
    return replace(flush.MODEL, actions={**flush.ACTIONS, "Dispatch": broken})


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_counts_do_not_depend_on_the_number_of_processes(workers: int) -> None:
    sequential = search.explore(flush.MODEL, SMALL)
    parallel_run = parallel.explore(flush.MODEL, SMALL, workers)
    assert (parallel_run.states, parallel_run.edges, parallel_run.depth) == (986, 1741, sequential.depth)
    assert parallel_run.taken == sequential.taken
    assert parallel_run.violation is None


def test_fields_with_equal_values_of_different_types_keep_them() -> None:
    """In Damage, a named tuple of one field can equal a tuple of another."""
    (question,) = (q for q in load().questions["Damage"] if q.name == "MCDamage_liveness")
    config = damage.MODEL.from_constants(constants(question.config.text()))
    assert parallel.explore(damage.MODEL, config, 2).states == 1254


def test_two_processes_find_the_recorded_size_of_the_smoke_configuration() -> None:
    levels: list[tuple[int, int]] = []
    result = parallel.explore(flush.MODEL, Config(), 2, on_level=lambda *level: levels.append(level))
    assert (result.states, result.edges, result.depth) == (32782, 79966, 21)
    assert levels[-1] == (21, 32782)
    assert result.memory_bytes


@pytest.mark.parametrize("name", ["AckBeforeFlush", "LateCommit", "TornRecordKept"])
def test_the_counterexample_is_shortest_and_always_the_same(name: str) -> None:
    mutant = mutants.MUTANTS[name]
    model = mutant.broken()
    sequential = search.explore(model, mutant.config)
    assert sequential.violation is not None
    found = [parallel.explore(model, mutant.config, 2) for _ in range(2)]
    assert found[0].violation == found[1].violation
    violation = found[0].violation
    assert violation is not None
    assert violation.invariant == sequential.violation.invariant == mutant.invariant
    assert len(violation.path) == len(sequential.violation.path)
    assert (found[0].states, found[0].depth) == (len(sequential.parents), sequential.depth)
    state = violation.path[0].state
    assert state in flush.initial(mutant.config)
    for step in violation.path[1:]:
        state = model.actions[step.action].apply(mutant.config, state, *step.parameters)
        assert state == step.state


def test_an_initial_state_that_violates_an_invariant_is_a_counterexample() -> None:
    model = replace(flush.MODEL, invariants={"Never": lambda _config, _state: False})
    violation = parallel.explore(model, SMALL, 2).violation
    assert violation is not None
    assert [step.action for step in violation.path] == ["Init"]


def test_exploration_stops_at_the_maximum_number_of_states() -> None:
    with pytest.raises(MemoryError, match="more than 100 states"):
        parallel.explore(flush.MODEL, Config(), 2, states_max=100)
    assert not multiprocessing.active_children()


def test_an_exception_in_a_process_is_reported() -> None:
    def fail(_config: Config, _state: State) -> State | None:
        raise ZeroDivisionError("injected")

    with pytest.raises(parallel.WorkerError, match="ZeroDivisionError: injected"):
        parallel.explore(_with_dispatch(fail), SMALL, 2)
    assert not multiprocessing.active_children()


def test_a_killed_process_is_reported_as_out_of_memory() -> None:
    def die(_config: Config, _state: State) -> State | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    with pytest.raises(MemoryError, match="was killed"):
        parallel.explore(_with_dispatch(die), SMALL, 2)
    assert not multiprocessing.active_children()


def test_an_interrupt_ends_all_processes() -> None:
    def hang(_config: Config, _state: State) -> State | None:
        time.sleep(60)
        return None

    # The signal is sent to this thread: in another thread it would not end the wait for a response.
    this_thread = threading.main_thread().ident
    assert this_thread is not None
    timer = threading.Timer(0.5, signal.pthread_kill, (this_thread, signal.SIGINT))
    timer.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.explore(_with_dispatch(hang), SMALL, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    timer.join()
    assert not multiprocessing.active_children()
