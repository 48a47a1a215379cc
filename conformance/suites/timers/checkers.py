"""The named invariants of timers; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.timers.steps import Operation, Read, Recall, Send
from mqproof.conformance.suites.timers.target import DELAY_MAX_S, Answer

LATE_S: Final = 1.5
"""How late a message may be while the broker serves: 1 s, plus time for the requests of the suite."""
_LOST_S: Final = 30.0
"""A message that is this late is lost."""


@dataclass(slots=True)
class _Known:
    """What the run shows about one message that was accepted."""

    began_s: float
    at_s: float
    delay_s: float
    recall_asked: bool = False
    was_recalled: bool = False


class _Followed:
    """What the run has shown so far."""

    def __init__(self) -> None:
        self.messages: dict[str, _Known] = {}
        self.serves_since_s = 0.0
        """When the last fault was over."""

    def follow(self, operation: Operation) -> None:
        match operation:
            case Send(msg_id, delay_s, Answer.OK, began_s, at_s):
                self.messages[msg_id] = _Known(began_s, at_s, delay_s)
            case Recall(msg_id, answer):
                self.messages[msg_id].recall_asked = True
                self.messages[msg_id].was_recalled |= answer is Answer.OK
            case InjectFault(_, over_s):
                self.serves_since_s = over_s
            case _:
                pass

    def late_by_s(self, message: _Known, at_s: float) -> float:
        """Return for how long the broker has been able to deliver a message."""
        return at_s - max(message.at_s + message.delay_s, self.serves_since_s)


def _reads(run: Run[Operation]) -> Iterator[tuple[int, Read, _Followed]]:
    """Yield each read with its step, and what was shown before."""
    followed = _Followed()
    for step, operation in run.numbered():
        followed.follow(operation)
        if isinstance(operation, Read):
            yield step, operation, followed


def not_early(run: Run[Operation]) -> Finding:
    """DELIV-8 NotEarly: no message is visible before its delay is over."""
    tally = Tally()
    for step, read, followed in _reads(run):
        for msg_id, message in followed.messages.items():
            early_s = message.began_s + message.delay_s - read.at_s
            if early_s > 0:
                tally.looked += 1
                if msg_id in read.msg_ids:
                    tally.found(f"step {step}: {msg_id} is visible {early_s:.3f} s early")
    return tally.finding("messages")


def timer_kept(run: Run[Operation]) -> Finding:
    """TIMER-1 TimerKept: an accepted message without a recall is visible within _LOST_S after its time."""
    return _visible_after(run, _LOST_S, "is lost")


def timer_delivered(run: Run[Operation]) -> Finding:
    """TIMER-4 TimerDelivered: such a message is visible within the bound of lateness.

    A run is finite, so this is the part of the liveness that a time limit can show.
    """
    return _visible_after(run, LATE_S, "is late")


def _visible_after(run: Run[Operation], late_s: float, problem: str) -> Finding:
    tally = Tally()
    for step, read, followed in _reads(run):
        for msg_id, message in followed.messages.items():
            if not message.recall_asked and followed.late_by_s(message, read.at_s) > late_s:
                tally.looked += 1
                if msg_id not in read.msg_ids:
                    late = followed.late_by_s(message, read.at_s)
                    tally.found(f"step {step}: {msg_id} {problem}: not visible {late:.3f} s after its time")
    return tally.finding("messages")


def timer_once(run: Run[Operation]) -> Finding:
    """TIMER-2 TimerOnce: no message is visible twice."""
    tally = Tally()
    for step, read, _ in _reads(run):
        for msg_id, count in Counter(read.msg_ids).items():
            tally.looked += 1
            if count > 1:
                tally.found(f"step {step}: {msg_id} is visible {count} times")
    return tally.finding("messages")


def recall_holds(run: Run[Operation]) -> Finding:
    """TIMER-3 RecallHolds: a message whose recall succeeded is not visible."""
    tally = Tally()
    for step, read, followed in _reads(run):
        for msg_id, message in followed.messages.items():
            if message.was_recalled and followed.late_by_s(message, read.at_s) > 0:
                tally.looked += 1
                if msg_id in read.msg_ids:
                    tally.found(f"step {step}: {msg_id} is visible after its recall")
    return tally.finding("messages")


def delay_bounded(run: Run[Operation]) -> Finding:
    """TIMER-5 DelayBounded: a delay beyond the maximum is refused, and one within it is accepted."""
    tally = Tally()
    for step, operation in run.numbered():
        if isinstance(operation, Send):
            tally.looked += 1
            if (operation.answer is Answer.OK) != (operation.delay_s <= DELAY_MAX_S):
                tally.found(f"step {step}: a delay of {operation.delay_s} s is answered {operation.answer}")
    return tally.finding("sends")


CHECKERS: Final[Checkers[Operation]] = {
    "DELIV-8": not_early,
    "TIMER-1": timer_kept,
    "TIMER-2": timer_once,
    "TIMER-3": recall_holds,
    "TIMER-4": timer_delivered,
    "TIMER-5": delay_bounded,
}
