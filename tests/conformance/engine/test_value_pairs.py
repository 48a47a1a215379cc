"""A table of dimensions: its pairs, its rows, and the values that a script shows."""

import random

import pytest

from mqproof.conformance.engine.value_pairs import (
    Dimension,
    Dimensions,
    Infeasible,
    Value,
    covering_rows,
    row_of,
    shown,
)

SIZE = Dimension("size", (Value("small", "^small"), Value("large", "^large")))
END = Dimension("end", (Value("none", hides="^kill"), Value("kill", "^kill", needs=frozenset({"kill"}))))
MODE = Dimension("mode", (Value("sync", "sync"), Value("async", "async")), opens=True)
TABLE = Dimensions(
    (MODE, SIZE, END), (Infeasible(("size", "large"), ("end", "kill"), "a large one takes too long"),)
)


def test_infeasible_pairs_and_values_beyond_the_target_are_left_out_with_a_reason() -> None:
    assert len(TABLE.pairs({"kill"})) == 4 + 4 + 3
    assert len(TABLE.pairs(())) == 4 + 2 + 2
    assert dict(TABLE.excluded({"kill"})) == {"size: large with end: kill": "a large one takes too long"}
    assert dict(TABLE.excluded(()))["end: kill"] == "the target does not support kill"


def test_an_infeasible_pair_must_be_in_the_table() -> None:
    with pytest.raises(AssertionError, match="huge"):
        Dimensions((SIZE, END), (Infeasible(("size", "huge"), ("end", "kill"), ""),))


def test_a_value_that_every_script_shows_is_refused() -> None:
    with pytest.raises(AssertionError, match="every script has"):
        Value("vague")


def test_rows_keep_the_opening_and_meet_all_pairs() -> None:
    chance = random.Random(0)
    missing = set(TABLE.pairs({"kill"}))
    for number in range(12):
        opening = {"mode": ("sync", "async")[number % 2]}
        row = TABLE.row(missing, opening, {"kill"}, chance)
        assert not row or row["mode"] == opening["mode"]
        assert row.get("size") != "large" or row.get("end") != "kill"
        missing -= TABLE.pairs_of(row)
    assert not missing


def test_rows_depend_only_on_the_seed() -> None:
    missing = set(TABLE.pairs({"kill"}))
    rows = [TABLE.row(missing, {"mode": "sync"}, {"kill"}, random.Random(7)) for _ in range(3)]
    assert rows[0] == rows[1] == rows[2] != {}


def test_only_the_values_that_the_script_shows_count() -> None:
    row = {"mode": "sync", "size": "small", "end": "kill"}
    assert TABLE.opening("a broker, sync") == {"mode": "sync"}
    met = [shown(pair) for pair in TABLE.met(row, "a broker, sync\nsmall message")]
    assert met == ["mode: sync with size: small"]
    assert len(TABLE.met(row, "a broker, sync\nsmall message\nkill")) == 3


def test_the_rows_of_consecutive_numbers_have_all_pairs() -> None:
    rows = covering_rows(TABLE)
    assert len(rows) <= 8
    found = {pair for number in range(5, 5 + len(rows)) for pair in TABLE.pairs_of(row_of(TABLE, number))}
    assert found == set(TABLE.pairs(()))


def test_all_values_of_a_script_are_pairs_unless_they_are_infeasible() -> None:
    met = [shown(pair) for pair in TABLE.shown_in("sync and async\nlarge\nkill")]
    assert sorted(met) == [
        "mode: async with end: kill",
        "mode: async with size: large",
        "mode: sync with end: kill",
        "mode: sync with size: large",
    ]
