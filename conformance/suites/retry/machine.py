"""Messages are sent, read, and sent back with various delay levels, while time passes.

Faults are injected into the broker. Hypothesis draws and shrinks the examples. A rule is one step of a
session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.retry.dimensions import UNKNOWN_MAX
from mqproof.conformance.suites.retry.session import RetrySession
from mqproof.conformance.suites.retry.target import RETRIES_MAX, Capability, Copy, RetryTarget

ROUNDS_MAX: Final = 3
"""The maximum number of rounds in one example, in real time."""
_SHORT_S: Final = 0.6
"""A wait that is shorter than any delay."""
_LEVELS: Final = (0, 0, 0, 1, 2, 4, 18, 40, -1)
_SEND_LEVELS: Final = (0, 0, 1, 4, 30)
_faults = st.lists(
    st.sampled_from(
        [*(each for each in BrokerFault if each is not BrokerFault.POWER_LOSS), Capability.LOSE_MESSAGES]
    ),
    max_size=FAULTS_MAX,
)
"""The faults of an example. POWER_LOSS is left out: it may lose the copy that is sent back next."""
_TIMES_MAX: Final = (None, None, 0, 1, RETRIES_MAX + 1)


class RetryMachine(Machine[RetryTarget, RetrySession]):
    """One example, with a new topic and a new group."""

    unknown = 0
    rounds = 0

    @initialize(retry_queues=st.sampled_from((1, 1, 2, 0)), count=st.integers(1, 3), faults=_faults)
    def open(self, retry_queues: int, count: int, faults: list[BrokerFault | Capability]) -> None:
        self.session = RetrySession(self.target, retry_queues)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        for _ in range(count):
            self.session.send(0)
        self.session.read()

    @rule(level=st.sampled_from(_SEND_LEVELS))
    def send(self, level: int) -> None:
        self.session.send(level)
        self.session.read()

    @precondition(lambda machine: bool(machine.session.copies))
    @rule(
        age=st.integers(0, 5),
        level=st.sampled_from(_LEVELS),
        times_max=st.sampled_from(_TIMES_MAX),
        oneway=st.booleans(),
        pause_s=st.sampled_from((0, _SHORT_S)),
    )
    def send_back(self, age: int, level: int, times_max: int | None, oneway: bool, pause_s: float) -> None:
        oneway = oneway and self.unknown < UNKNOWN_MAX
        self.unknown += oneway
        self.session.send_back(self._copy(age), level, times_max, oneway=oneway)
        if pause_s:
            self.session.wait(pause_s)
        self.session.read()

    @rule(seconds=st.sampled_from((0.3, 0.9, 1.1, 2.5)))
    def wait(self, seconds: float) -> None:
        self.session.wait(seconds)
        self.session.read()

    @precondition(lambda machine: bool(machine.session.copies))
    @rule(age=st.integers(0, 1), rounds=st.integers(1, 3))
    def fail_again_and_again(self, age: int, rounds: int) -> None:
        """Send the newest copies back as clients do, until they are dead letters.

        If waiting takes real time, the number of rounds is limited.
        """
        for _ in range(rounds):
            self.rounds += 1
            if self.rounds > ROUNDS_MAX and not self.target.is_simulated:
                break
            self.session.send_back(self._copy(age), 0, None)
            self.session.settle()

    @rule()
    def send_back_nothing(self) -> None:
        self.session.send_back_nothing()

    @precondition(lambda machine: bool(machine.ahead))
    @rule(age=st.integers(0, 5), comes=st.booleans())
    def cause_fault(self, age: int, comes: bool) -> None:
        """Inject the next fault while a copy that was sent back still waits, or has just arrived."""
        if self.session.copies:
            self.session.send_back(self._copy(age), 0, None)
        if comes:
            self.session.settle()
        fault = self.ahead.pop()
        if isinstance(fault, BrokerFault):
            self.session.inject(fault)
        else:
            self.session.lose_messages()
            self.session.send(0)
            self.session.read()
            self.session.send_back(self._copy(0), 0, None)
        self.session.read()

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault(age=len(self.ahead), comes=False)
        self.session.settle()

    def _copy(self, age: int) -> Copy:
        copies = self.session.copies
        return copies[-1 - age % len(copies)]
