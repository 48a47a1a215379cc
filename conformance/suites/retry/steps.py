"""The operations of the suite on a broker's messages, and the places where the messages arrived again."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.shared_steps import Span, Wait
from mqproof.conformance.suites.retry.target import Answer, Copy, Place


@dataclass(frozen=True, slots=True)
class Send:
    msg_id: str
    level: int
    origin: str
    span: Span

    def __str__(self) -> str:
        return f"send {self.msg_id}{f' with delay level {self.level}' if self.level else ''}"


@dataclass(frozen=True, slots=True)
class SendBack:
    copy: Copy | None
    """The copy that is sent back; None stands for a message that never existed."""
    level: int
    times_max: int | None
    answer: Answer
    span: Span

    def __str__(self) -> str:
        most = "" if self.times_max is None else f", at most {self.times_max} retries"
        what = self.copy or "a message that does not exist"
        return f"send back {what}, delay level {self.level}{most}: {self.answer}"


@dataclass(frozen=True, slots=True)
class Read:
    place: Place
    copies: tuple[Copy, ...]
    span: Span
    settled: bool
    """Whether every pending copy had enough time to arrive."""

    def __str__(self) -> str:
        copies = ", ".join(map(str, self.copies)) or "nothing new"
        return f"at {self.span.begin_s:.3f} s, {self.place}: {copies}"


@dataclass(frozen=True, slots=True)
class LoseMessages:
    """All messages are deleted while the broker is stopped."""

    def __str__(self) -> str:
        return (
            "the broker is stopped, its messages are deleted but not its settings and offsets, and it starts"
        )


Operation = Send | SendBack | Read | Wait | InjectFault | LoseMessages
