"""Half messages are sent and ended in any way and order, while checks arrive and faults are injected.

Hypothesis draws and shrinks the examples. A rule is one step of a session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.transactions.session import TransactionsSession
from mqproof.conformance.suites.transactions.target import Capability, End, TransactionsTarget

TRANSACTIONS_MAX: Final = 6
_SHORT_S: Final = (0.5, 4.0, 9.0)
"""Times before the first round of checks, shorter and longer than the collection of operations."""

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_ends = st.sampled_from(End)
_numbers = st.integers(0, TRANSACTIONS_MAX - 1)


class TransactionsMachine(Machine[TransactionsTarget, TransactionsSession]):
    """One example, with a new topic and a new producer group."""

    @initialize(count=st.integers(1, 3), faults=_faults)
    def open(self, count: int, faults: list[BrokerFault]) -> None:
        self.session = TransactionsSession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        for _ in range(count):
            self.session.send()

    @precondition(lambda machine: len(machine.session.halves) < TRANSACTIONS_MAX)
    @rule()
    def send(self) -> None:
        self.session.send()

    @rule(number=_numbers, end=_ends, copy=st.integers(0, 2), again=st.sampled_from((None, None, *End)))
    def report(self, number: int, end: End, copy: int, again: End | None) -> None:
        """Report an end, and perhaps another end of the same transaction."""
        self.session.report(number, end, copy)
        if again is not None:
            self.session.report(number, again, copy + 1)
        self.session.read()

    @rule(seconds=st.sampled_from(_SHORT_S))
    def wait(self, seconds: float) -> None:
        self._pause(seconds)
        self.session.read()

    @precondition(lambda machine: Capability.CHECKS in machine.target.capabilities)
    @rule(rounds=st.sampled_from((1, 1, 2, 4)), end=st.sampled_from((None, *End)))
    def wait_for_checks(self, rounds: int, end: End | None) -> None:
        """Wait, and perhaps report an end of each transaction twice: by its first and by its last copy."""
        self.session.wait(rounds * self.target.round_s + 1)
        for number in range(len(self.session.halves) if end else 0):
            for copy in (0, -1):
                self.session.report(number, end or End.COMMIT, copy)
        self.session.read()

    @precondition(lambda machine: bool(machine.ahead))
    @rule(
        number=_numbers, end=_ends, pause_s=st.sampled_from((0.0, 9.0)), after=st.sampled_from((None, *End))
    )
    def cause_fault(self, number: int, end: End, pause_s: float, after: End | None) -> None:
        """End a transaction and inject the next fault.

        Then report an end of all transactions, or let the broker check those that it takes for open.
        """
        self.session.report(number, end, 0)
        if pause_s:
            self._pause(pause_s)
        self.session.inject(self.ahead.pop())
        self.session.read()
        if after is not None:
            for other in range(len(self.session.halves)):
                self.session.report(other, after, 0)
        elif Capability.CHECKS in self.target.capabilities:
            self.session.wait(self.target.round_s + 1)
        self.session.read()

    def _pause(self, seconds: float) -> None:
        """Let time pass; if waiting takes real time, not more than the shortest."""
        is_simulated = Capability.CHECKS in self.target.capabilities
        self.session.wait(seconds if is_simulated else min(_SHORT_S))

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault(number=0, end=End.COMMIT, pause_s=0.0, after=End.COMMIT)
        if Capability.CHECKS in self.target.capabilities:
            self.session.send()
            self.session.wait(3 * self.target.round_s)
        self.session.read()
