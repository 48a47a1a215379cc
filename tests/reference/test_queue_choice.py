"""Goal: round robin, retries, and rest times of faulty brokers are correct; TLC has the same state graph."""

from itertools import combinations
from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import queue_choice
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.queue_choice import ORDER, Config

TLA = Path(spec.__file__).parent / "tla"
ROUTES = [route for size in (1, 2, 3, 4) for route in combinations(ORDER, size)]


@pytest.mark.parametrize("queue_count", [1, 2, 3])
@pytest.mark.parametrize("route", ROUTES, ids="".join)
def test_round_robin_selects_each_broker_equally_often(route: tuple[str, ...], queue_count: int) -> None:
    size = len(route) * queue_count
    rounds = [queue_choice.broker_at(route, queue_count, i % size) for i in range(2 * size)]
    assert {b: rounds.count(b) for b in route} == dict.fromkeys(route, 2 * queue_count)
    assert queue_choice.wrap(len(ORDER), queue_count) % size == 0


def test_the_number_of_queues_before_a_wanted_broker_is_computed() -> None:
    assert queue_choice.passed(("a", "b", "c"), 2, 1, {"a"}) == 0
    assert queue_choice.passed(("a", "b", "c"), 2, 1, {"b", "c"}) == 1
    assert queue_choice.passed(("a", "b", "c"), 2, 2, {"a"}) == 4


@pytest.mark.parametrize(("last", "expected"), [(None, {"a", "b"}), ("a", {"b"}), ("c", {"a", "b"})])
def test_a_retry_goes_to_another_broker_if_there_is_one(last: str | None, expected: set[str]) -> None:
    assert queue_choice.wanted({"a", "b"}, last) == expected
    assert queue_choice.wanted({"a"}, "a") == {"a"}


def test_a_resting_broker_is_skipped_if_another_broker_is_available() -> None:
    assert queue_choice.eligible(("a", "b"), {"a"}, True) == {"b"}
    assert queue_choice.eligible(("a", "b"), {"a", "b"}, True) == {"a", "b"}
    assert queue_choice.eligible(("a", "b"), {"a"}, False) == {"a", "b"}


def test_the_smoke_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCQueueChoice_smoke.cfg").read_text(encoding="utf-8")
    exploration = explore(queue_choice.MODEL, queue_choice.MODEL.from_constants(constants(text)))
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (11598, 13)


def test_a_send_makes_at_most_the_allowed_number_of_attempts() -> None:
    states = explore(queue_choice.MODEL, Config(broker_count=2, attempts_max=2)).parents
    assert max(len(state.tried) for state in states) == 2


def test_the_queue_choice_model_has_the_same_state_graph_as_tlc() -> None:
    text = (TLA / "MCQueueChoice_liveness_smoke.cfg").read_text(encoding="utf-8")
    equivalence = compare(queue_choice.MODEL, "MCQueueChoice", text, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states == 470
