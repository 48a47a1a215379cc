"""Every call of our client's interface: nothing differs, and a defect of each kind of client does."""

from typing import Any

import pytest

from mqproof.conformance.adapters.client_calls.every_call import differences
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.mutants import consumers
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected


def _nothing(*_args: Any, **_named: Any) -> None:
    pass


async def _nothing_later(*_args: Any, **_named: Any) -> None:
    pass


_CLIENT = "mqproof.impl.client"


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_differs_in_our_client(seed: int) -> None:
    assert differences(seed) == ()


@pytest.mark.parametrize(
    ("where", "wrong", "text"),
    [
        (f"{_CLIENT}.producing.producer:Producer._doubt", _nothing, "the doubted route"),
        (f"{_CLIENT}.producing.transaction_producer:TransactionProducer._end", _nothing_later, "transacting"),
        (f"{_CLIENT}.connection.name_server_choice:NameServerChoice._turn_from", _nothing, "registration"),
        (f"{_CLIENT}.consuming.offset_store:Offsets.reset", _nothing_later, "reset"),
        (f"{_CLIENT}.consuming.lite_pull_consumer:LitePullConsumer.resume", _nothing, "resumed"),
        (f"{_CLIENT}.tracing.trace_dispatcher:TraceDispatcher.add", _nothing, "the traces"),
        (f"{_CLIENT}.consuming.consumer_events:ConsumerEvents.of_message", _nothing, "the events"),
    ],
)
def test_a_defect_is_a_difference(where: str, wrong: Any, text: str) -> None:
    with injected(Mutant("of this test", "a call does nothing", "SPEC-1", where, wrong)):
        assert any(text in each.text for each in differences(1))


@pytest.mark.parametrize(
    "name",
    [
        "numbers-not-checked",
        "locks-not-renewed",
        "batch-to-any-queue",
        "rebalance-fails-at-its-end",
        "traces-in-one-message",
        "function-not-uploaded",
        "polled-before-the-move-counts",
    ],
)
def test_a_mutant_of_the_registry_is_a_difference(name: str) -> None:
    with injected(consumers.OF_CALLS[name]):
        assert differences(0)


def test_a_value_that_differs_is_shown_with_the_expected_one() -> None:
    expect = Expectations()
    expect.equal("the answer", {"a": 1, "b": 2}, {"a": 1, "b": 3})
    expect.equal("the answer", 1, 1)
    expect.refused("a call", ValueError, lambda: None)
    expect.accepted("another call", lambda: int("x"))
    assert [each.text for each in expect.wrong] == [
        "the answer is {'b': 3}, expected {'b': 2}",
        "a call returns None, ValueError expected",
        "another call raises ValueError: invalid literal for int() with base 10: 'x'",
    ]
    assert expect.compared == 4
