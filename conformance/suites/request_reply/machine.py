"""Requests and replies in any order, while clients end and faults are injected.

Hypothesis draws and shrinks the examples. A rule is one step of a session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.request_reply.session import RequestReplySession
from mqproof.conformance.suites.request_reply.target import Capability, RequestReplyTarget

_CALLS_MAX: Final = 8
_LONG_S: Final = 20.0
_SHORT_S: Final = 1.0
_REAL_S: Final = 1.5
"""The longest limit where waiting takes real time."""

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_clients = st.sampled_from(("c1", "c2"))
_numbers = st.integers(0, _CALLS_MAX - 1)


class RequestReplyMachine(Machine[RequestReplyTarget, RequestReplySession]):
    """One example, with a new topic and new clients."""

    @initialize(faults=_faults)
    def open(self, faults: list[BrokerFault]) -> None:
        self.session = RequestReplySession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        self.is_simulated = Capability.SIMULATED_TIME in self.target.capabilities
        self.count = 0

    @precondition(lambda machine: machine.count < _CALLS_MAX)
    @rule(client=_clients, limit_s=st.sampled_from((_SHORT_S, _LONG_S)))
    def request(self, client: str, limit_s: float) -> None:
        self.count += 1
        self.session.request(client, limit_s if self.is_simulated else min(limit_s, _REAL_S))

    @precondition(lambda machine: machine.session.calls)
    @rule(number=_numbers)
    def reply(self, number: int) -> None:
        self.session.reply(number)

    @precondition(lambda machine: machine.count < _CALLS_MAX)
    @rule(client=_clients, replies=st.integers(1, 2))
    def request_and_reply(self, client: str, replies: int) -> None:
        """Request, let another request wait as well, and reply to the first of both."""
        self.request(client, _LONG_S)
        self.request(client, _LONG_S)
        for _ in range(replies if len(self.session.calls) > 1 else 0):
            self.session.reply(len(self.session.calls) - 2)

    @precondition(lambda machine: machine.session.calls)
    @rule(number=_numbers)
    def reply_late(self, number: int) -> None:
        """Let the time limits end, and reply then."""
        self._pass()
        self.session.reply(number)

    @precondition(lambda machine: machine.count < _CALLS_MAX)
    @rule(client=_clients, again=st.booleans())
    def lose_and_reply(self, client: str, again: bool) -> None:
        """End a client that waits, and reply to it, perhaps after its next process has requested."""
        self.request(client, _LONG_S)
        known = len(self.session.calls)
        self.session.lose(client)
        if again:
            self.request(client, _LONG_S)
        if known:
            self.session.reply(known - 1)

    @precondition(lambda machine: bool(machine.ahead))
    @rule(client=_clients, pause_s=st.sampled_from((0.0, 5.0)))
    def cause_fault(self, client: str, pause_s: float) -> None:
        """Let a request wait through the next fault."""
        self.request(client, _LONG_S)
        self.session.inject(self.ahead.pop())
        if pause_s and self.is_simulated:
            self.session.wait(pause_s)
        if self.session.calls:
            self.session.reply(len(self.session.calls) - 1)

    def _pass(self) -> None:
        """Let all time limits end."""
        self.session.wait((_LONG_S if self.is_simulated else _REAL_S) + 1.0)

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault("c1", 5.0)
        self.lose_and_reply("c2", again=False)
        self._pass()
