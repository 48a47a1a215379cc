"""Half messages, the reported ends, the checks that arrived, and what consumers saw."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.transactions.target import Answer, End


@dataclass(frozen=True, slots=True)
class SendHalf:
    msg_id: str
    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s half message {self.msg_id} is answered SEND_OK"


@dataclass(frozen=True, slots=True)
class Report:
    msg_id: str
    end: End
    copies: int
    """0 if the request names the original, else the number of the copy."""
    answer: Answer
    at_s: float

    def __str__(self) -> str:
        named = f"copy {self.copies} of {self.msg_id}" if self.copies else self.msg_id
        return f"at {self.at_s:.3f} s {self.end} of {named}: {self.answer}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The checks that the producer received by this time, in the order of their arrival."""

    msg_ids: tuple[str, ...]
    at_s: float

    def __str__(self) -> str:
        return f"by {self.at_s:.3f} s checked: {', '.join(self.msg_ids) or 'none'}"


@dataclass(frozen=True, slots=True)
class Read:
    msg_ids: tuple[str, ...]
    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s visible: {', '.join(self.msg_ids) or 'nothing'}"


Operation = SendHalf | Report | Checked | Read | Wait | InjectFault
