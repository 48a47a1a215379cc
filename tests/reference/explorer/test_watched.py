"""A watched state records exactly what a function reads and sets; everything else is as in the state."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as ordinary_replace
from typing import Any, NamedTuple

import pytest

from mqproof.reference.explorer.columns import Columns, columns_of
from mqproof.reference.explorer.watched import Watch, watched, written
from mqproof.reference.updates import replace


@dataclass(frozen=True, slots=True)
class Inner:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class State:
    phase: str
    inner: Inner
    log: tuple[str, ...]

    def is_up(self) -> bool:
        return self.phase == "up"


class Named(NamedTuple):
    phase: str
    log: tuple[str, ...]


class Counted(NamedTuple):
    count: int  # type: ignore[assignment]

    def __contains__(self, other: object) -> bool:
        return other != self.count


VALUES = ["up", 1, 9, ("m1",)]


def watching(columns: Columns, values: list[Any]) -> tuple[Any, Watch]:
    watch = Watch(range(len(values)), values)
    return watched(columns, watch), watch


def state() -> tuple[Any, Watch, Columns]:
    columns = columns_of(State("up", Inner(1, 9), ("m1",)))
    return *watching(columns, VALUES), columns


def test_the_columns_of_a_nested_dataclass_are_its_fields() -> None:
    _, _, columns = state()
    assert list(columns.names()) == ["phase", "inner.low", "inner.high", "log"]
    assert dict(columns.split(State("a", Inner(2, 3), ()))) == {0: "a", 1: 2, 2: 3, 3: ()}


def test_a_value_of_another_class_is_refused() -> None:
    _, _, columns = state()
    with pytest.raises(TypeError, match="not of the class Inner"):
        dict(columns.split(State("a", (2, 3), ())))  # type: ignore[arg-type]


def test_only_the_fields_that_are_read_are_recorded_in_order() -> None:
    seen, watch, _ = state()
    assert seen.log == ("m1",)
    assert seen.inner.high == 9
    assert seen.log == ("m1",)
    assert list(watch.read.items()) == [(3, 3), (2, 2)]
    assert seen.is_up()
    assert list(watch.read) == [3, 2, 0]


def test_a_copy_records_what_is_set_and_does_not_read_it() -> None:
    seen, watch, columns = state()
    after = replace(replace(seen, phase="down"), inner=replace(seen.inner, low=5))
    assert (after.phase, after.inner.low, after.inner.high) == ("down", 5, 9)
    assert written(columns, after) == {0: "down", 1: 5}
    assert list(watch.read) == [2]


def test_setting_a_field_to_the_value_that_it_has_is_recorded() -> None:
    seen, _, columns = state()
    assert written(columns, replace(seen, phase="up")) == {0: "up"}
    assert written(columns, seen) == {}


def test_an_ordinary_state_sets_all_columns() -> None:
    seen, watch, columns = state()
    after = ordinary_replace(seen, phase="down")
    assert type(after) is State
    assert written(columns, after) == {0: "down", 1: 1, 2: 9, 3: ("m1",)}
    assert written(columns, replace(seen, inner=Inner(1, 2))) == {1: 1, 2: 2}
    assert sorted(watch.read) == [1, 2, 3]


def test_a_named_tuple_is_watched_like_a_dataclass() -> None:
    columns = columns_of(Named("up", ("m1",)))
    seen, watch = watching(columns, ["up", ("m1",)])
    assert written(columns, seen._replace(log=())) == {1: ()}
    assert not watch.read
    assert seen == Named("up", ("m1",))
    assert sorted(watch.read) == [0, 1]
    assert (*seen,) == ("up", ("m1",))
    assert (seen[0], len(seen), hash(seen)) == ("up", 2, hash(Named("up", ("m1",))))


OF_TUPLES: dict[str, Callable[[Any], Any]] = {
    "equal": lambda state: (state == ("up", ("m1",)), operator.eq(("up", ("m1",)), state)),
    "not equal": lambda state: (state != Named("up", ("m1",)), state != state._replace()),
    "less": lambda state: (state < ("a",), operator.lt(("a",), state), state < state._replace()),
    "at most": lambda state: (state <= ("a",), operator.le(("a",), state), state <= state._replace()),
    "greater": lambda state: (state > ("a",), operator.gt(("a",), state), state > state._replace()),
    "at least": lambda state: (state >= ("a",), operator.ge(("a",), state), state >= state._replace()),
    "contains": lambda state: ("up" in state, "down" in state, ("m1",) in state),
    "sum": lambda state: (operator.add(state, (1,)), operator.add((1,), state), state + state._replace()),
    "product": lambda state: (state * 2, 2 * state),
    "index": lambda state: (state.index(("m1",)), state.count("up"), state.count("down")),
    "slice": lambda state: (state[:1], state[-1], [*reversed(state)]),
    "text": repr,
}


@pytest.mark.parametrize("name", OF_TUPLES)
def test_a_watched_named_tuple_acts_as_a_tuple_of_the_values_and_records_them_as_read(name: str) -> None:
    seen, watch = watching(columns_of(Named("up", ("m1",))), ["up", ("m1",)])
    assert OF_TUPLES[name](seen) == OF_TUPLES[name](Named("up", ("m1",)))
    assert sorted(watch.read) == [0, 1]


def test_a_method_of_a_named_tuple_is_kept() -> None:
    seen, watch = watching(columns_of(Counted(3)), [3])
    assert (seen.count, 3 in seen, 4 in seen) == (3, False, True)
    assert list(watch.read) == [0]


def test_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="State has no field 'lag'"):
        replace(state()[0], lag=1)
