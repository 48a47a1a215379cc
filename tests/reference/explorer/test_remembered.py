"""Remembered functions return what the model returns, and are evaluated once for what they read."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from mqproof.reference import flush, replication
from mqproof.reference.explorer.columns import columns_of
from mqproof.reference.explorer.remembered import Remembered
from mqproof.reference.explorer.rows import Rows
from mqproof.reference.explorer.search import Label, explore
from mqproof.reference.explorer.watched import UnsteadyError
from mqproof.reference.flush import Config, State
from mqproof.reference.model import Action, Model

SMALL = Config(messages=("m1",))
PAIR = replication.Config(("m1",), flush_modes=("SYNC_FLUSH",), roles=("SYNC_MASTER",), crashes_max=0)


def _rows(model: Model[Any, Any], config: Any, parts: int = 1) -> Rows:
    return Rows(columns_of(model.initial(config)[0]), parts)


def _with_dispatch(apply: Callable[[Config, State], State | None]) -> Model[Config, State]:
    dispatch = Action("Dispatch", apply, flush.ACTIONS["Dispatch"].domain)
    return replace(flush.MODEL, actions={"Dispatch": dispatch})


@pytest.mark.parametrize(
    ("model", "config"),
    [(flush.MODEL, SMALL), (replication.MODEL, PAIR)],
)
def test_the_steps_of_each_state_are_those_of_the_model(model: Model[Any, Any], config: Any) -> None:
    rows = _rows(model, config)
    functions = Remembered(model, config, rows)
    for state in explore(model, config).parents:
        row = rows.row(state)
        taken: dict[Label, Any] = {}
        for edge in functions.steps(row):
            after = list(row)
            for column, number in edge.changes:
                after[column] = number
            taken[list(functions.labels)[edge.label]] = rows.state(tuple(after))
        assert taken == {(name, parameters): after for name, parameters, after in model.steps(config, state)}


def test_an_action_is_evaluated_once_for_the_values_that_it_reads() -> None:
    evaluated: list[str] = []

    def dispatch(_config: Config, state: State) -> State | None:
        evaluated.append(state.phase)
        return None

    model = _with_dispatch(dispatch)
    rows = _rows(model, SMALL)
    functions = Remembered(model, SMALL, rows)
    for state in explore(flush.MODEL, SMALL).parents:
        assert not list(functions.steps(rows.row(state)))
    assert sorted(evaluated) == ["dispatching", "down", "log_recovered", "running"]


def test_an_action_that_reads_other_fields_in_an_equal_situation_is_reported() -> None:
    turn = count()

    def unsteady(_config: Config, state: State) -> State | None:
        fields = (state.phase, state.flushed) if next(turn) == 0 else (state.mode,)
        assert fields
        return None

    model = _with_dispatch(unsteady)
    rows = _rows(model, SMALL)
    functions = Remembered(model, SMALL, rows)
    first = flush.initial(SMALL)[0]
    list(functions.steps(rows.row(first)))
    with pytest.raises(UnsteadyError, match="read different fields"):
        list(functions.steps(rows.row(replace(first, phase="down"))))


def test_a_step_and_a_state_that_violate_an_invariant_name_it() -> None:
    model = replace(
        flush.MODEL,
        invariants={"NoLog": lambda _config, state: not state.log},
        step_invariants={"NoFlush": lambda _config, _before, action, _after: action != "FlushLog"},
    )
    rows = _rows(model, SMALL)
    functions = Remembered(model, SMALL, rows)
    state = flush.initial(SMALL)[0]
    appended = flush.append_record(SMALL, state, "m1", "q0")
    assert appended is not None
    assert functions.broken(rows.row(state)) is None
    assert functions.broken(rows.row(appended)) == "NoLog"
    broken = {
        list(functions.labels)[edge.label][0]: edge.broken for edge in functions.steps(rows.row(appended))
    }
    assert broken.pop("FlushLog") == "NoFlush"
    assert broken
    assert set(broken.values()) == {None}


def test_rows_return_their_states_and_equal_states_have_one_part_in_all_processes() -> None:
    ours, theirs = (_rows(flush.MODEL, SMALL, 2) for _ in range(2))
    states = list(explore(flush.MODEL, SMALL).parents)
    parts = [ours.part(ours.row(state)) for state in states]
    assert [ours.state(ours.row(state)) for state in states] == states
    assert [theirs.part(theirs.row(state)) for state in reversed(states)] == parts[::-1]
    assert 0.4 < sum(parts) / len(parts) < 0.6
