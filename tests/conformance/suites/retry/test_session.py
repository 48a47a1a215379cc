"""The session of the retry suite waits for promised copies only, and takes no other copy for them."""

from dataclasses import replace

from mqproof.conformance.adapters.brokers.retry import ReferenceRetry
from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.suites.retry.session import RetrySession
from mqproof.conformance.suites.retry.target import Copy, Place, Setup
from mqproof.report.model import Verdict

LATE_S = 3.0


class Running(ReferenceRetry):
    """Looks like a broker in real time: every request arrives, and awaited copies come late."""

    is_simulated = False
    unheard = False
    arrives = True

    def open(self, retry_queues: int) -> Setup:
        return replace(super().open(retry_queues), slack_s=60.0)

    def send_back_oneway(self, handle: int, level: int, times_max: int | None) -> Span:
        self.unheard = True
        span = self.send_back(handle, level, times_max)[1] if self.arrives else self._span()
        self.unheard = False
        return span

    def _store(self, place: Place, copy: Copy, waits_s: float) -> None:
        super()._store(place, copy, waits_s + (LATE_S if copy.times and not self.unheard else 0.0))


class Loses(Running):
    """Loses the requests whose answers are not awaited."""

    arrives = False


def settled(target: Running) -> RetrySession:
    """Send a message back twice, the first time without waiting for the answer; then settle."""
    session = RetrySession(target, 1)
    session.send(0)
    session.settle()
    session.send_back(session.copies[-1], 1, None, oneway=True)
    session.send_back(session.copies[-1], 1, None)
    session.settle()
    return session


def test_a_promised_copy_is_awaited_after_one_that_was_not_promised() -> None:
    session = settled(Running())
    assert [copy.times for copy in session.copies] == [0, 1, 1]
    assert session.findings()["DELIV-7"].verdict is Verdict.HELD


def test_a_request_that_was_lost_is_awaited_only_once() -> None:
    target = Loses()
    session = settled(target)
    assert session.findings()["DELIV-7"].verdict is Verdict.HELD
    began_s = target.now_s()
    session.settle()
    assert target.now_s() - began_s < 1
