"""One run of one broker: drives it, records observations, and follows the states that the model allows."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.shared_steps import Span, Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.retry.checkers import checkers
from mqproof.conformance.suites.retry.oracle import State, bound_for, explanation, wait_s
from mqproof.conformance.suites.retry.steps import LoseMessages, Operation, Read, Send, SendBack
from mqproof.conformance.suites.retry.target import Answer, Copy, Place, RetryTarget

PATIENCE_S: Final = 10.0
"""The maximum wait with a real clock in an example; steps that would take longer are skipped."""
_POLL_S: Final = 0.2
_NO_SPAN: Final = Span(0.0, 0.0)
_NOWHERE: Final = 1 << 40
"""A commit-log offset at which no log has a message."""


class RetrySession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: RetryTarget, retry_queues: int) -> None:
        self.target = target
        self.setup = target.open(retry_queues)
        self.copies: list[Copy] = []
        """All copies that were read; they may be sent back."""
        self._retry_queues = retry_queues
        self._due_s = 0.0
        """The time when all pending copies should have arrived."""
        self._missing: Counter[tuple[str, int, Place]] = Counter()
        """The number of promised copies that have not arrived, by message id, number of retries and place."""
        self._possible: Counter[tuple[str, int, Place]] = Counter()
        """The number of copies that may arrive, too, because the answer was not awaited."""
        self._sent = 0
        self._waited_s = 0.0
        opened = f"a broker with a new topic, and a group with {retry_queues} retry queues"
        super().__init__(opened, explanation(self.setup, retry_queues), checkers(self.setup, retry_queues))

    def send(self, level: int) -> None:
        if not self._affordable(wait_s(self.setup, level)):
            return
        self._sent += 1
        msg_id = f"m{self._sent}"
        origin, span = self.target.send(msg_id, level)
        self._missing[msg_id, 0, Place.TOPIC] += 1
        self._due_s = max(self._due_s, span.end_s + wait_s(self.setup, level))
        self.observe(Send(msg_id, level, origin, span))

    def send_back(self, copy: Copy, level: int, times_max: int | None, *, oneway: bool = False) -> None:
        span_less = SendBack(copy, level, times_max, Answer.UNKNOWN, _NO_SPAN)
        place, waits_s = bound_for(self.setup, span_less)
        if not self._affordable(waits_s):
            return
        if oneway:
            answer, span = Answer.UNKNOWN, self.target.send_back_oneway(copy.handle, level, times_max)
        else:
            answer, span = self.target.send_back(copy.handle, level, times_max)
        if self._retry_queues and answer is not Answer.REFUSED:
            among = self._missing if answer is Answer.OK else self._possible
            among[copy.msg_id, copy.times + 1, place] += 1
        self._due_s = max(self._due_s, span.end_s + waits_s)
        self.observe(SendBack(copy, level, times_max, answer, span))

    def send_back_nothing(self) -> None:
        """Send back a message that never existed."""
        answer, span = self.target.send_back(_NOWHERE, 0, None)
        self.observe(SendBack(None, 0, None, answer, span))

    def wait(self, seconds: float) -> None:
        """Let time pass, up to a limit if waiting takes real time."""
        if self._affordable(self._waited_s + seconds):
            self._waited_s += seconds
            self._wait(seconds)

    def inject(self, fault: BrokerFault) -> None:
        self.target.inject(fault)
        over_s = self.target.now_s()
        self._due_s = max(self._due_s, over_s)  # nothing arrived during the fault
        self.observe(InjectFault(fault, over_s))

    def lose_messages(self) -> None:
        """Delete all messages; only messages that are sent later can be sent back."""
        self.target.lose_messages()
        self.copies.clear()
        self._missing.clear()
        self._possible.clear()
        self._due_s = self.target.now_s()
        self.observe(LoseMessages())

    def read(self, *, settled: bool = False) -> None:
        """Read all new copies in all places."""
        for place in Place:
            copies, span = self.target.read(place)
            self._arrived(Counter((copy.msg_id, copy.times, place) for copy in copies))
            self.copies.extend(copies)
            self.observe(Read(place, copies, span, settled))

    def settle(self) -> None:
        """Wait until all pending copies must have arrived, and read them.

        If waiting takes real time, wait no longer than necessary.
        """
        if (left_s := self._due_s - self.target.now_s()) > 0:
            self._wait(round(left_s + _POLL_S, 3))
        if self.target.is_simulated:
            self._wait(self.setup.slack_s)
        else:
            for _ in range(round(self.setup.slack_s / _POLL_S)):
                if not self._missing:
                    break
                self.read()
                self.target.wait(_POLL_S)
            else:  # what is still missing will not arrive
                self._missing.clear()
                self._possible.clear()
        self.read(settled=True)

    def faults_in(self, operation: Operation) -> Iterable[FaultKind]:
        if isinstance(operation, SendBack) and operation.answer is Answer.UNKNOWN:
            return (FaultKind.UNHEARD,)
        return super().faults_in(operation)

    def _affordable(self, waits_s: float) -> bool:
        return self.target.is_simulated or waits_s <= PATIENCE_S

    def _arrived(self, copies: Counter[tuple[str, int, Place]]) -> None:
        """Count the arrivals. Copies of one message look alike, and those that were not promised count first.

        A promised copy that comes later is then still awaited.
        """
        not_promised = copies & self._possible
        self._possible -= not_promised
        self._missing -= copies - not_promised

    def _wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.observe(Wait(seconds))
