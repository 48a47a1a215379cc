"""Faults that a test orders: the next requests of a kind are refused, or executed and not answered."""

import inspect
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command

OPERATIONS: Final = {
    "send": frozenset(
        {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
    ),
    "pull": frozenset({RequestCode.PULL_MESSAGE}),
    "commit": frozenset({RequestCode.UPDATE_CONSUMER_OFFSET}),
    "send_back": frozenset({RequestCode.CONSUMER_SEND_MSG_BACK}),
    "end_transaction": frozenset({RequestCode.END_TRANSACTION}),
    "lock": frozenset({RequestCode.LOCK_BATCH_MQ}),
    "heartbeat": frozenset({RequestCode.HEART_BEAT}),
}
"""The kinds of requests that can fail, with their request codes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How one request fails."""

    code: ResponseCode
    remark: str
    is_executed: bool
    """Whether the broker executes the request and the answer is lost. The connection is closed then."""


def fault(code: str, remark: str, *, is_executed: bool) -> Fault:
    """Return the fault with the response code of this name. Raises ValueError for an unknown name."""
    if code not in ResponseCode.__members__:
        raise ValueError(f"{code!r} is not the name of a response code of RocketMQ, such as SYSTEM_BUSY")
    return Fault(ResponseCode[code], remark, is_executed)


@dataclass(frozen=True, slots=True)
class RequestFaults:
    """The faults that are still to come, in order, for each request code."""

    _coming: dict[int, deque[Fault]] = field(default_factory=dict)

    def add(self, operation: str, times: int, fault: Fault) -> None:
        """Let the next `times` requests of this kind fail.

        Raises:
            ValueError: an unknown kind, or `times` below 1.
        """
        if operation not in OPERATIONS:
            raise ValueError(
                f"{operation!r} is not a kind of request: expected one of {', '.join(OPERATIONS)}"
            )
        if times < 1:
            raise ValueError(f"times is {times}: expected 1 or more")
        shared = self._of(operation)
        shared.extend([fault] * times)

    def pending(self, operation: str) -> int:
        """Return how many requests of this kind will still fail."""
        return len(self._of(operation))

    def clear(self) -> None:
        """Let no further request fail."""
        for coming in self._coming.values():
            coming.clear()

    def around(self, inner: Handler) -> Handler:
        """Return a handler that lets requests fail as ordered, and passes the others on."""

        def handle(request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
            coming = self._coming.get(request.code)
            if not coming:
                return inner(request, channel)
            fault = coming.popleft()
            if fault.is_executed:
                return _unanswered(inner(request, channel), channel)
            return request.answer(fault.code, remark=fault.remark)

        return handle

    def _of(self, operation: str) -> deque[Fault]:
        """Return the faults of a kind: the codes of a kind share one queue."""
        codes = OPERATIONS[operation]
        shared = next((self._coming[code] for code in codes if code in self._coming), deque())
        self._coming.update(dict.fromkeys(codes, shared))
        return shared


async def _unanswered(reply: Reply | Awaitable[Reply], channel: Channel) -> None:
    """Wait until the request is executed, then close the connection instead of answering."""
    if inspect.isawaitable(reply):
        await reply
    channel.close()
