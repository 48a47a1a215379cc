"""Sends with a delay, recalls, deletions, and what consumers saw."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.timers.target import Answer


@dataclass(frozen=True, slots=True)
class Send:
    msg_id: str
    delay_s: float
    answer: Answer
    began_s: float
    """The time before the request."""
    at_s: float
    """The time after the answer."""

    def __str__(self) -> str:
        return f"at {self.began_s:.3f} s {self.msg_id} is sent for {self.delay_s} s later: {self.answer}"


@dataclass(frozen=True, slots=True)
class Recall:
    msg_id: str
    answer: Answer
    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s recall of {self.msg_id}: {self.answer}"


@dataclass(frozen=True, slots=True)
class DeleteOld:
    """Old segments of the log are deleted."""

    def __str__(self) -> str:
        return "old segments of the log are deleted"


@dataclass(frozen=True, slots=True)
class Read:
    msg_ids: tuple[str, ...]
    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s visible: {', '.join(self.msg_ids) or 'nothing'}"


Operation = Send | Recall | DeleteOld | Read | Wait | InjectFault
