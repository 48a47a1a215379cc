"""Every fault injected into a broker has a kind on the scoreboard."""

import pytest

from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.history.record import CLOSERS
from mqproof.conformance.suites.flush.steps import End
from mqproof.conformance.suites.flush.target import Fault

EXAMPLES = dict.fromkeys(EXAMINEES, 15) | {"transactions": 30, "admin": 30, "delivery": 30}
"""Enough examples of each suite to meet every fault."""


def test_every_fault_has_a_kind() -> None:
    assert {*Fault, *BrokerFault, *End, *(kind for kinds in CLOSERS.values() for kind in kinds)} == set(KINDS)


@pytest.mark.parametrize("suite", EXAMINEES)
def test_our_broker_meets_every_fault_kind_of_the_single_broker_suites(suite: str) -> None:
    """The exception is `retry`, which injects no power loss (docs/explanation/conformance/suites.md)."""
    examinee = EXAMINEES[suite]
    with examinee.targets("impl") as factory:
        drawn = examine(factory, EXAMPLES[suite], 0, suite=examinee.suite).faults
    missing = {KINDS[each] for each in BrokerFault} - drawn.keys()
    assert missing == ({FaultKind.LOSE_WRITES} if suite == "retry" else set())
