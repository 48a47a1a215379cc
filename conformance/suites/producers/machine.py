"""Sends that succeed, fail and are slow, while time passes and routes change (spec/tla/QueueChoice.tla).

Hypothesis draws and shrinks the examples. A rule is one step of a session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.producers.session import ProducerSession
from mqproof.conformance.suites.producers.target import ATTEMPTS_MAX, BROKERS, Fate, ProducerTarget, Setup

_PAUSES_S: Final = (0.5, 2.0, 5.5, 11.0)
"""Pauses: shorter than any rest, equal to one, longer than some, and longer than the rest after a failure."""

_fates = st.lists(st.sampled_from(Fate), min_size=ATTEMPTS_MAX, max_size=ATTEMPTS_MAX)


class ProducerMachine(Machine[ProducerTarget, ProducerSession]):
    """One example, with one new producer."""

    @initialize(brokers=st.integers(2, len(BROKERS)), queues=st.integers(1, 2), strategy=st.booleans())
    def open(self, brokers: int, queues: int, strategy: bool) -> None:
        self.session = ProducerSession(self.target, Setup(brokers, queues, strategy))

    @rule(fates=_fates)
    def send(self, fates: list[Fate]) -> None:
        self.session.send(tuple(fates))

    @rule(count=st.integers(1, 4))
    def send_well(self, count: int) -> None:
        for _ in range(count):
            self.session.send((Fate.OK,) * ATTEMPTS_MAX)

    @rule(seconds=st.sampled_from(_PAUSES_S), fates=_fates)
    def wait(self, seconds: float, fates: list[Fate]) -> None:
        self.session.wait(seconds)
        self.session.send(tuple(fates))

    @rule(brokers=st.sets(st.sampled_from(BROKERS), min_size=1))
    def route(self, brokers: set[str]) -> None:
        known = BROKERS[: self.session.setup.brokers]
        if chosen := tuple(broker for broker in known if broker in brokers):
            self.session.route(chosen)
