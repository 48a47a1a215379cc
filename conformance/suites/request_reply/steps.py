"""Requests, the answers to their replies, and the results that the requesters received."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.request_reply.target import Answer, End


@dataclass(frozen=True, slots=True)
class Request:
    call: str
    client: str
    limit_s: float
    stored: bool
    at_s: float

    def __str__(self) -> str:
        where = "is in the topic" if self.stored else "is not in the topic"
        return f"at {self.at_s:.3f} s request {self.call} of {self.client}, for {self.limit_s:g} s, {where}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The consumer replied; `at_s` is the time of the answer, `sent_s` that of the reply."""

    call: str
    answer: Answer
    sent_s: float
    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s the reply to {self.call}, sent at {self.sent_s:.3f} s: {self.answer}"


@dataclass(frozen=True, slots=True)
class Ended:
    call: str
    end: End
    body: str
    at_s: float

    def __str__(self) -> str:
        body = f" with body {self.body}" if self.body else ""
        return f"at {self.at_s:.3f} s request {self.call} has ended: {self.end}{body}"


@dataclass(frozen=True, slots=True)
class Lost:
    client: str

    def __str__(self) -> str:
        return f"the process of {self.client} ends"


@dataclass(frozen=True, slots=True)
class Look:
    """All results until this time are in the run."""

    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s no other request has ended"


Operation = Request | Reply | Ended | Lost | Look | Wait | InjectFault
