"""Every fault injected into a broker has a kind on the scoreboard.

tests/conformance/adapters/brokers/test_factories.py tests that our broker meets each kind.
"""

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.fault_kinds import KINDS
from mqproof.conformance.history.record import CLOSERS
from mqproof.conformance.suites.flush.steps import End
from mqproof.conformance.suites.flush.target import Fault


def test_every_fault_has_a_kind() -> None:
    assert {*Fault, *BrokerFault, *End, *(kind for kinds in CLOSERS.values() for kind in kinds)} == set(KINDS)
