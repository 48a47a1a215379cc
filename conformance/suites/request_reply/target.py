"""The operations that an implementation must offer for requests and replies, driven step by step.

The suite has its own topic, of one queue. Several clients request, and one consumer replies when the suite
says so. A client id belongs to one process at a time.
"""

from enum import StrEnum
from typing import NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault


class Capability(StrEnum):
    """The optional operations of a target."""

    SIMULATED_TIME = "simulated_time"  # waiting costs nothing


class Answer(StrEnum):
    """What the sender of a reply received."""

    OK = "ok"
    REFUSED = "refused"


class End(StrEnum):
    """How a request ended."""

    REPLY = "reply"
    TIMEOUT = "timeout"
    REFUSED = "refused"


class Result(NamedTuple):
    """A result that the application of a requesting client received."""

    call: str
    end: End
    body: str
    """The body of the reply; empty without one."""
    at_s: float


class RequestReplyTarget(Protocol):
    """One broker with its clients. `open` is called first and `close` last."""

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    def open(self) -> None:
        """Create a new topic and connect the consumer.

        Raises TargetError, as all other methods may.
        """
        ...

    def request(self, call: str, client: str, limit_s: float) -> bool:
        """Let the client request with this text as the body; return whether the request is in the topic.

        Returns when the request is in the topic or has ended.
        """
        ...

    def reply(self, call: str) -> Answer:
        """Reply to the request in the topic with its own body, and wait for the answer."""
        ...

    def lose(self, client: str) -> None:
        """End the process of a client. Its requests give no result. The client may request again later."""
        ...

    def results(self) -> tuple[Result, ...]:
        """Return the results since the last call, in the order of time."""
        ...

    def now_s(self) -> float: ...

    def wait(self, seconds: float) -> None: ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...
