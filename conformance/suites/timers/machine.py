"""Messages are sent for many times and recalled, while time passes, segments expire, and faults are injected.

Hypothesis draws and shrinks the examples. A rule is one step of a session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.timers.session import TimersSession
from mqproof.conformance.suites.timers.target import DELAY_MAX_S, Capability, TimersTarget

MESSAGES_MAX: Final = 12
_DELAYS_S: Final = (0.3, 1.0, 2.0, 2.5, 20.0, 120.0)
_REFUSED_S: Final = (DELAY_MAX_S + 1, 9e12)
"""Delays that are too long: a little longer than the longest delay, and much longer."""
_PAUSES_S: Final = (0.2, 1.7, 4.0, 25.0)
_OLD_S: Final = 70.0
"""After this time, a segment may be deleted."""
_SHORT_S: Final = 2.5
"""The longest delays and pauses if waiting takes real time."""

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_numbers = st.integers(0, MESSAGES_MAX - 1)


class TimersMachine(Machine[TimersTarget, TimersSession]):
    """One example, with a new topic."""

    @initialize(faults=_faults)
    def open(self, faults: list[BrokerFault]) -> None:
        self.session = TimersSession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]

    @precondition(lambda machine: machine.session.count < MESSAGES_MAX)
    @rule(delays_s=st.lists(st.sampled_from(_DELAYS_S), min_size=1, max_size=3))
    def send(self, delays_s: list[float]) -> None:
        for delay_s in delays_s:
            self.session.send(self._within(delay_s))

    @precondition(lambda machine: machine.session.count < MESSAGES_MAX)
    @rule(delay_s=st.sampled_from(_REFUSED_S))
    def send_too_long(self, delay_s: float) -> None:
        self.session.send(delay_s)
        self.session.read()

    @rule(number=_numbers)
    def recall(self, number: int) -> None:
        self.session.recall(number)
        self.session.read()

    @rule(seconds=st.sampled_from(_PAUSES_S))
    def wait(self, seconds: float) -> None:
        self.session.wait(self._within(seconds))
        self.session.read()

    @precondition(lambda machine: Capability.DELETION in machine.target.capabilities)
    @rule(again=st.booleans())
    def delete_old(self, again: bool) -> None:
        """Let segments with waiting messages become old, and delete them."""
        self.session.send(100.0)
        self.session.wait(_OLD_S)
        self.session.read()
        for _ in range(3 if again else 2):
            self.session.delete_old()
            self.session.wait(2.0)
        self.session.read()

    @precondition(lambda machine: bool(machine.ahead))
    @rule(delay_s=st.sampled_from(_DELAYS_S), number=_numbers, pause_s=st.sampled_from((0.0, 0.2, 4.0)))
    def cause_fault(self, delay_s: float, number: int, pause_s: float) -> None:
        """Send a message, recall another, and inject the next fault."""
        self.session.send(self._within(delay_s))
        self.session.recall(number)
        if pause_s:
            self.session.wait(self._within(pause_s))
        self.session.inject(self.ahead.pop())
        self.session.read()

    def _within(self, seconds: float) -> float:
        is_simulated = Capability.LONG_WAITS in self.target.capabilities
        return seconds if is_simulated else min(seconds, _SHORT_S)

    def last_look(self) -> None:
        """Read when all messages are certainly due, after deletions and faults if they are possible."""
        while self.ahead:
            self.cause_fault(delay_s=2.0, number=0, pause_s=0.0)
        is_simulated = Capability.LONG_WAITS in self.target.capabilities
        self.session.send(_REFUSED_S[-1])
        if Capability.DELETION in self.target.capabilities:
            self.session.send(130.0)
            self.session.recall(len(self.session.sent) - 1)
            self.session.send(120.0)
            self.delete_old(again=True)
        self.session.send(2.0)
        self.session.wait(1.7)
        self.session.send(2.0)  # the broker looks at its messages when one arrives
        self.session.wait(0.1)
        self.session.read()
        if is_simulated:
            for fault in (BrokerFault.KILL, BrokerFault.POWER_LOSS):
                if fault in self.target.capabilities:
                    self.session.wait(0.8)
                    self.session.send(2.0)
                    self.session.inject(fault)
        self.session.wait(64.0 if is_simulated else _SHORT_S + 1.6)
        self.session.read()
