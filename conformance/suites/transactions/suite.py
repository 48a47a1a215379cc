"""The suite of transactions, as `conform --suite transactions` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Need, Suite, machine_of, scenario_of
from mqproof.conformance.suites.transactions.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.transactions.machine import TransactionsMachine
from mqproof.conformance.suites.transactions.target import Capability

TRANSACTIONS: Final = Suite(
    "transactions",
    "Transactions.tla",
    ("DELIV-9", "TXN-1", "TXN-2", "TXN-3", "TXN-4", "TXN-5", SPEC_1),
    dict.fromkeys(("TXN-4", "TXN-5"), Need(one_of=frozenset({Capability.CHECKS}))),
    machine_of(TransactionsMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""A broker's transactions: half messages, their ends, and the checks of those that do not end."""
