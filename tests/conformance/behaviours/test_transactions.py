"""Behaviours of Transactions on our broker: no difference; injected defects differ.

The broker restarts, or a slave takes over, between any two steps. Each check ends with an exception.
"""

from typing import Any

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import transactions
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.impl.broker.transactions import Transactions
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, sample, scripts

STATES, STEPS = 3645, 21_060

_check, _check_all = Transactions._check, Transactions._check_all


async def _ended_checked(broker: Transactions, *arguments: Any) -> None:
    ended, broker._table._ended = broker._table._ended, {}
    await _check_all(broker, *arguments)
    broker._table._ended |= ended


async def _dropped_after_exception(broker: Transactions, half: Any, *arguments: Any) -> None:
    try:
        await _check(broker, half, *arguments)
    except OSError:
        broker._table.drop(half.original)


_BROKER = "mqproof.impl.broker.transactions:Transactions"
DEFECTS = [
    *transactions.MUTANTS.values(),
    Mutant(
        "ended-checked-again",
        "a transaction is checked again after its end (issue 1517)",
        "TXN-4",
        f"{_BROKER}._check_all",
        _ended_checked,
    ),
    Mutant(
        "dropped-after-exception",
        "a half message is not checked again after an exception (issue 9500)",
        "TXN-5",
        f"{_BROKER}._check",
        _dropped_after_exception,
    ),
]


@pytest.fixture(scope="module")
def some() -> list[Script]:
    return sample("Transactions", every=200, every_tried=2)


def test_our_broker_follows_the_model(some: list[Script]) -> None:
    seen = on_ours("Transactions", some)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 800
    assert seen.actions.keys() == MODELS["Transactions"].actions.keys()
    assert (+seen.refused).keys() == {"End", "Check", "Discard", "WriteOperations", "Advance"}
    assert set(seen.impossible) <= {"Advance", "Crash"}


@pytest.mark.deep
def test_our_broker_takes_most_steps_of_the_model() -> None:
    """Count the reached states and steps.

    The others need a progress without the operation before it, or a loss of what the broker flushes with it.
    """
    seen = on_ours("Transactions", scripts("Transactions"))
    assert not seen.failures
    assert 3300 < len(seen.states) <= STATES
    assert 13_500 < len(seen.steps) < STEPS


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_the_broker_is_detected(defect: Mutant, some: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Transactions", some).failures
