"""Tests queue choice with the numbers of docs/reference/protocol/clients.md, "Queue choice"."""

from collections import Counter

import pytest

from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.producing.queue_choice import (
    LEVELS_4_9,
    LEVELS_5,
    LatencyLevels,
    QueueChoice,
    by_hash,
)
from mqproof.impl.remoting.message import java_hash


def queues(brokers: str, each: int = 2) -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for broker in brokers for queue_id in range(each)]


def test_round_robin_visits_the_queues_in_order_and_starts_over() -> None:
    choice = QueueChoice(3)
    chosen = [choice.choose(queues("ab"), None, 0.0) for _ in range(5)]
    assert [(queue.broker_name, queue.queue_id) for queue in chosen] == [
        ("b", 1),
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]


@pytest.mark.parametrize("turn", range(6))
def test_route_5_retry_avoids_last_broker(turn: int) -> None:
    """ROUTE-5 RetryAvoidsLastBroker."""
    assert QueueChoice(turn).choose(queues("abc"), "b", 0.0).broker_name != "b"
    assert QueueChoice(turn).choose(queues("b"), "b", 0.0).broker_name == "b"


def test_every_broker_is_tried_before_one_is_tried_again() -> None:
    choice, tried = QueueChoice(1), ["b"]
    for _ in range(2):
        tried.append(choice.choose(queues("abc", 1), tried[-1], 0.0).broker_name)
    assert len(set(tried)) == 3


@pytest.mark.parametrize(
    ("levels", "took_ms", "rest_ms"),
    [
        (LEVELS_4_9, 0, 0),
        *((levels, took_ms, 0) for levels in (LEVELS_4_9, LEVELS_5) for took_ms in (49, 50, 99, 100, 101)),
        (LEVELS_4_9, 549, 0),
        (LEVELS_4_9, 550, 30_000),
        (LEVELS_4_9, 2999, 120_000),
        (LEVELS_4_9, LEVELS_4_9.failure_ms, 600_000),
        (LEVELS_5, 550, 2000),
        (LEVELS_5, 1799, 2000),
        (LEVELS_5, 14_999, 10_000),
        (LEVELS_5, LEVELS_5.failure_ms, 10_000),
        (LEVELS_5, 15_000, 30_000),
    ],
)
def test_the_largest_threshold_reached_applies(levels: LatencyLevels, took_ms: int, rest_ms: int) -> None:
    assert levels.rest_ms(took_ms) == rest_ms


def test_a_failed_attempt_counts_as_30_seconds_and_as_10_with_the_levels_of_5() -> None:
    assert (LEVELS_4_9.failure_ms, LEVELS_5.failure_ms) == (30_000, 10_000)


def test_route_6_faulty_broker_rested() -> None:
    """ROUTE-6 FaultyBrokerRested: until its time is over, and not after it."""
    choice = QueueChoice(0, LEVELS_5)
    choice.failed("a", 100.0)
    resting = {choice.choose(queues("ab"), None, 109.9).broker_name for _ in range(8)}
    rested = Counter(choice.choose(queues("ab"), None, 110.0).broker_name for _ in range(8))
    assert resting == {"b"}
    assert rested == {"a": 4, "b": 4}


def test_route_6_a_retry_may_use_the_same_broker_if_all_others_are_avoided() -> None:
    """ROUTE-6 FaultyBrokerRested: avoiding a slow broker has priority over changing the broker."""
    choice = QueueChoice(0, LEVELS_5)
    choice.failed("a", 0.0)
    assert {choice.choose(queues("ab"), "b", 1.0).broker_name for _ in range(4)} == {"b"}


def test_if_every_broker_is_avoided_a_retry_still_goes_to_another() -> None:
    choice = QueueChoice(0, LEVELS_5)
    for broker in "ab":
        choice.failed(broker, 0.0)
    assert {choice.choose(queues("ab"), "a", 1.0).broker_name for _ in range(4)} == {"b"}


def test_a_quick_answer_ends_the_avoidance_and_a_slow_one_starts_it() -> None:
    choice = QueueChoice(0, LEVELS_5)
    choice.failed("a", 0.0)
    choice.answered("a", 0.01, 1.0)
    choice.answered("b", 0.6, 1.0)
    assert {choice.choose(queues("ab"), None, 2.0).broker_name for _ in range(4)} == {"a"}


def test_without_the_strategy_no_broker_is_avoided() -> None:
    choice = QueueChoice(0)
    choice.failed("a", 0.0)
    assert {choice.choose(queues("ab"), None, 0.0).broker_name for _ in range(4)} == {"a", "b"}


@pytest.mark.parametrize("key", ["order-1", "order-2", "polygenelubricants", ""])
def test_a_sharding_key_always_has_the_same_queue(key: str) -> None:
    some = queues("ab", 3)
    assert by_hash(key)(some) == some[abs(java_hash(key)) % 6] == by_hash(key)(some)


def test_the_hash_without_a_positive_counterpart_has_a_queue_too() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert by_hash("polygenelubricants")(queues("abc")) == MessageQueue("T", "b", 0)


@pytest.mark.parametrize(
    ("levels", "rests_ms"),
    [
        (LEVELS_4_9, {550: 30_000, 1000: 60_000, 2000: 120_000, 3000: 180_000, 15_000: 600_000}),
        (LEVELS_5, {550: 2000, 1800: 5000, 3000: 6000, 5000: 10_000, 15_000: 30_000}),
    ],
)
def test_each_threshold_begins_the_rest_of_its_level(levels: LatencyLevels, rests_ms: dict[int, int]) -> None:
    before_ms = 0
    for threshold_ms, rest_ms in rests_ms.items():
        assert levels.rest_ms(threshold_ms - 1) == before_ms
        assert levels.rest_ms(threshold_ms) == rest_ms
        before_ms = rest_ms


def test_a_broker_rests_from_the_end_of_a_slow_attempt() -> None:
    choice = QueueChoice(0, LEVELS_5)
    choice.answered("a", 1.8, 100.0)
    for now_s, brokers in ((104.999, {"b"}), (105.0, {"a", "b"})):
        assert {choice.choose(queues("ab"), None, now_s).broker_name for _ in range(4)} == brokers
