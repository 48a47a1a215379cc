"""Tests that values of reference models become JSON values which do not depend on the order of sets."""

import json
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from mqproof.conformance.behaviours.json_values import order, plain


class Record(NamedTuple):
    offset: int
    holders: frozenset[str]


class Answer(NamedTuple):
    next: int
    found: frozenset[str]


@dataclass(frozen=True)
class State:
    log: tuple[Record, ...]
    owner: tuple[str, ...]


def test_a_state_becomes_objects_lists_and_texts() -> None:
    state = State((Record(0, frozenset({"b", "a"})),), ("c1",))
    assert plain(state) == {"log": [{"offset": 0, "holders": ["a", "b"]}], "owner": ["c1"]}
    assert plain({1: "c1"}) == {"1": "c1"}
    assert json.loads(json.dumps(plain(state))) == plain(state)


def test_equal_records_of_two_types_have_their_own_names() -> None:
    empty: frozenset[str] = frozenset()
    assert plain(Record(0, empty)) == {"offset": 0, "holders": []}
    assert plain(Answer(0, empty)) == {"next": 0, "found": []}


def test_sets_of_records_have_one_order() -> None:
    records = [Record(number, frozenset({"x"})) for number in (2, 0, 1)]
    orders = {json.dumps(plain(frozenset(each))) for each in permutations(records)}
    assert len(orders) == 1
    assert sorted(records, key=order)[0].offset == 0
