"""The explorer with a bounded memory has the results of the one that keeps all states, and spills to files.

Small models are explored with a tiny memory, so that all arrays are in files. Their loops are not compiled,
because compiling them takes longer than running them. The deep tests compile them.
"""

import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest

from mqproof.reference import flush, mutants
from mqproof.reference.constants import constants
from mqproof.reference.explorer import search
from mqproof.reference.explorer.spilling import decisions, explorer, known, loops, takers
from mqproof.reference.explorer.spilling.known import Run
from mqproof.reference.explorer.survey import bounded_models
from mqproof.reference.flush import Config
from mqproof.reference.models import MODELS
from mqproof.spec.model_file import load

SMALL = Config(messages=("m1",))
TINY = 1 << 12

DEEP = pytest.mark.deep("compiles the loops, and explores every bounded model of the profile ci")


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the explorer use the loops as Python runs them."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    spec = importlib.util.spec_from_file_location("uncompiled_loops", loops.__file__)
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    for module in (explorer, decisions, known, takers):
        _use(plain, module, monkeypatch)
    with warnings.catch_warnings():  # in all threads, unlike numpy.errstate
        warnings.filterwarnings("ignore", "overflow encountered")  # fingerprints are sums modulo 2**64
        yield


def _use(plain: ModuleType, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in vars(module).keys() & vars(plain).keys():
        if hasattr(vars(loops)[name], "py_func"):
            monkeypatch.setattr(module, name, vars(plain)[name])


def assert_same(model: Any, config: Any, folder: Path, memory_bytes: int = TINY, threads: int = 1) -> None:
    whole = search.explore(model, config)
    bounded = explorer.explore(model, config, memory_bytes=memory_bytes, folder=folder, threads=threads)
    if whole.violation is None:
        assert (bounded.states, bounded.depth) == (len(whole.parents), whole.depth)
        assert dict(bounded.taken) == whole.taken
        assert bounded.violation is None
    else:
        assert bounded.violation is not None
        assert len(bounded.violation.path) == len(whole.violation.path)
        assert_path(model, config, bounded.violation)
    assert list(folder.iterdir()) == []


def assert_path(model: Any, config: Any, violation: search.Violation[Any]) -> None:
    first, *steps = violation.path
    assert first.state in model.initial(config)
    state = first.state
    for step in steps:
        before, state = state, model.actions[step.action].apply(config, state, *step.parameters)
        assert state == step.state
    name = violation.invariant
    if name in model.invariants:
        assert not model.invariants[name](config, state)
    else:
        assert not model.step_invariants[name](config, before, steps[-1].action, state)


@pytest.mark.usefixtures("uncompiled")
def test_all_states_are_found_with_a_memory_that_holds_few_of_them(tmp_path: Path) -> None:
    levels: list[tuple[int, int]] = []
    found = explorer.explore(
        flush.MODEL, SMALL, memory_bytes=TINY, folder=tmp_path, on_level=lambda *level: levels.append(level)
    )
    whole = search.explore(flush.MODEL, SMALL)
    assert (found.states, found.edges, found.depth) == (986, 1741, whole.depth)
    assert dict(found.taken) == whole.taken
    assert levels[-1] == (15, 986)
    assert found.disk_bytes is not None
    assert found.disk_bytes > TINY, "nothing was spilled"
    assert found.collision == pytest.approx(986 * (1741 + 2 - 986) / 2**64)
    assert list(tmp_path.iterdir()) == [], "files are left"


@pytest.mark.usefixtures("uncompiled")
def test_threads_find_the_same_states(tmp_path: Path) -> None:
    assert_same(flush.MODEL, SMALL, tmp_path, 3 * TINY, threads=3)


@pytest.mark.usefixtures("uncompiled")
def test_threads_find_the_same_counterexample_in_every_run(tmp_path: Path) -> None:
    mutant = mutants.MUTANTS["LateCommit"]
    small = replace(mutant.config, messages=("m1",))
    assert_same(mutant.broken(), small, tmp_path, 3 * TINY, threads=3)
    one, other = (
        explorer.explore(mutant.broken(), small, memory_bytes=TINY, folder=tmp_path, threads=2)
        for _ in range(2)
    )
    assert one.violation is not None
    assert one.violation == other.violation


@pytest.mark.usefixtures("uncompiled")
def test_a_thread_that_loses_a_step_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = takers.Taker.again
    monkeypatch.setattr(takers.Taker, "again", lambda taker, pairs: whole(taker, pairs[1:]))
    found = explorer.explore(
        flush.MODEL, SMALL, memory_bytes=TINY, folder=tmp_path, threads=2, states_max=986
    )
    assert found.states != 986


@pytest.mark.usefixtures("uncompiled")
def test_a_run_that_loses_a_fingerprint_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Run.between
    monkeypatch.setattr(Run, "between", lambda run, low, high: whole(run, low, high)[1:])
    found = explorer.explore(flush.MODEL, SMALL, memory_bytes=TINY, folder=tmp_path, states_max=986)
    assert found.states != 986


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("name", ["AckBeforeFlush", "LateCommit"])
def test_a_counterexample_is_as_short_as_possible(name: str, tmp_path: Path) -> None:
    mutant = mutants.MUTANTS[name]
    small = replace(mutant.config, messages=("m1",))
    assert_same(mutant.broken(), small, tmp_path)


@pytest.mark.usefixtures("uncompiled")
def test_an_initial_state_that_violates_an_invariant_is_a_counterexample(tmp_path: Path) -> None:
    model = replace(flush.MODEL, invariants={"Never": lambda _config, _state: False})
    assert_same(model, SMALL, tmp_path)


@pytest.mark.usefixtures("uncompiled")
def test_exploration_stops_at_the_maximum_number_of_states_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match="more than 10 states"):
        explorer.explore(flush.MODEL, SMALL, memory_bytes=TINY, folder=tmp_path, states_max=10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("uncompiled")
def test_results_that_need_more_than_their_part_of_the_memory_end_the_exploration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions.Decisions, "bytes", lambda _: 1 << 30)
    with pytest.raises(MemoryError, match="too many different results; allow more memory"):
        explorer.explore(flush.MODEL, SMALL, memory_bytes=TINY, folder=tmp_path)


@DEEP
@pytest.mark.parametrize("name", MODELS)
def test_every_bounded_model_has_the_counts_of_the_explorer_that_keeps_all_states(
    name: str, tmp_path: Path
) -> None:
    models = load()
    for question in bounded_models(models, name, "ci"):
        if question.violates is None:
            config = MODELS[name].from_constants(constants(question.config.text()))
            for memory_bytes, threads in ((1 << 28, 2), (1 << 31, 1)):
                assert_same(MODELS[name], config, tmp_path, memory_bytes, threads)


@DEEP
@pytest.mark.parametrize(
    "name", [name for name, m in mutants.MUTANTS.items() if m.invariant not in m.broken().liveness]
)
def test_the_counterexample_to_every_mutant_is_as_short_as_possible(name: str, tmp_path: Path) -> None:
    mutant = mutants.MUTANTS[name]
    assert_same(mutant.broken(), mutant.config, tmp_path, 1 << 26)
