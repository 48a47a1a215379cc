"""A channel: one connection on which both sides send requests. Responses are matched by opaque number.

The memory that a peer can use is bounded: the size of a frame, the number of unanswered requests, their
bytes, and the bytes of answers that it does not read. At a bound the channel stops reading from that peer
until it has caught up. Other connections are not affected. All channels of a server share its budgets; beyond
those a request is refused as SYSTEM_BUSY.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import msgspec

from mqproof.impl.remoting.budget import ServerBudgets
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command, decode, encode
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX, FrameError, read_frame
from mqproof.impl.remoting.later import Later
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.network import Address, Connection

_log = logging.getLogger(__name__)


class RemotingError(Exception):
    """A request got no response."""


class ConnectError(RemotingError):
    """There is no connection; the request was not sent."""


class ConnectionLostError(RemotingError):
    """The connection broke before the response. It is not known whether the request took effect."""


class RequestTimeoutError(RemotingError):
    """There was no response in time. It is not known whether the request took effect."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on the resources that one peer may use."""

    frame_bytes_max: int = FRAME_BYTES_MAX
    unanswered_max: int = 65_535
    """The maximum number of requests in progress, including waiting long polls."""
    unanswered_bytes_max: int = 64 * 1024 * 1024
    pending_max: int = 65_535
    """The maximum number of our requests that the peer has not answered."""


CLOSE_S = 10.0
"""How long a closing connection may wait for a peer that does not read what was sent to it."""

_SMALL_BYTES = 64 * 1024
"""The bytes of an incomplete frame that each connection may always buffer, despite the common budget."""

_RESERVED_BYTES: Final = 4 * 1024
"""Bytes of unanswered requests are taken from the common budget in multiples of this."""

_FRAMES_AT_ONCE: Final = 64
_FRAME_BYTES_AT_ONCE: Final = 256 * 1024
"""After so many frames of a peer, or bytes of them, other connections get a turn of the event loop."""

_SMALL_ANSWER_BYTES: Final = 64 * 1024
"""An answer with a body up to this size is sent whatever the peer has not read."""


class _Pending(NamedTuple):
    """A request of ours that the peer has not answered."""

    answer: asyncio.Future[Command]
    timeout_s: float
    until_s: float


Reply = Command | None
Handler = Callable[[Command, "Channel"], Reply | Awaitable[Reply]]
"""A function that handles a request. It responds at once, later, or not at all, and never raises."""


class Channel:
    """The receiver of one connection's bytes, and the interface for sending to its peer."""

    def __init__(
        self,
        connection: Connection,
        handle: Handler,
        limits: Limits,
        on_closed: Callable[["Channel"], None] = lambda _: None,
        budgets: ServerBudgets | None = None,
        bodies_used: Container[int] | None = None,
    ) -> None:
        """`bodies_used` has the request codes whose body is used; None means all of them."""
        self._connection = connection
        self._budgets = budgets
        self._bodies_used = bodies_used
        self._budgeted = 0
        self._reserved = 0
        self._unread = 0
        self._frames = 0
        """The frames taken since other connections got a turn, and their bytes."""
        self._frame_bytes = 0
        self._closing: asyncio.TimerHandle | None = None
        self._handle = handle
        self._limits = limits
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._pending: dict[int, _Pending] = {}
        self._alarm: asyncio.TimerHandle | None = None
        """A timer that fires at `_alarm_s`, when a pending request may time out, or earlier."""
        self._alarm_s = 0.0
        self._working: dict[asyncio.Future[None] | Later, None] = {}  # in the order of their requests
        self._drained: asyncio.Future[None] | None = None
        """Done when no request is in progress any more; None until `drain`."""
        self._unanswered = 0
        self._unanswered_bytes = 0
        self._peer_takes = True
        self._senders: list[asyncio.Future[None]] = []
        self._reading = True
        self._draining = False
        self.is_open = True
        self.active_at_s = upkeep.now_s(self._loop)
        """The time of upkeep of the last bytes read or written."""
        self._frame_since_s: float
        """When the first bytes of an incomplete frame were received."""

    @property
    def local(self) -> Address:
        return self._connection.local

    @property
    def remote(self) -> Address:
        return self._connection.remote

    @property
    def unanswered(self) -> int:
        """The number of requests of the peer that are in progress."""
        return self._unanswered

    @property
    def takes(self) -> bool:
        """Whether the peer reads what is sent to it. If not, skip messages that are not essential."""
        return self._peer_takes

    def is_waiting_since(self, before_s: float) -> bool:
        """Return whether the rest of a frame has been missing since before that time of upkeep."""
        return bool(self._buffer) and self._reading and self._frame_since_s < before_s

    async def invoke(self, request: Command, timeout_s: float) -> Command:
        """Send a request and wait for its response. A response that comes too late is dropped.

        Raises:
            ConnectError: the channel is closed, or too many requests are pending; nothing was sent.
            ConnectionLostError, RequestTimeoutError: sent, outcome unknown.
            ValueError: the request's header is too long; nothing was sent.
        """
        answer = self.ask(request, timeout_s)
        try:
            return await answer
        finally:
            self._pending.pop(request.opaque, None)

    def ask(self, request: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Send a request; return the future of its response. It raises and fails as `invoke` does."""
        if not self.is_open:
            raise ConnectError(f"the connection to {self.remote} is closed")
        if len(self._pending) >= self._limits.pending_max:
            raise ConnectError(f"{len(self._pending)} requests to {self.remote} are already unanswered")
        answer: asyncio.Future[Command] = self._loop.create_future()
        pending = _Pending(answer, timeout_s, upkeep.now_s(self._loop) + timeout_s)
        self._pending[request.opaque] = pending
        try:
            self._write(request)
        except ValueError:
            del self._pending[request.opaque]
            raise
        self._wake_by(pending.until_s)
        return answer

    def send_oneway(self, request: Command) -> None:
        """Send a request without a response. Its arrival is not confirmed; a closed channel drops it."""
        self._write(request)

    async def until_it_takes(self) -> None:
        """Wait until the peer reads what is sent to it, or is gone.

        A sender of requests without responses waits for this, because nothing else limits it.
        """
        while self.is_open and not self._peer_takes:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._senders.append(waiter)
            await waiter

    def close(self) -> None:
        """Close after the pending writes, at the latest in CLOSE_S. Then pending requests fail."""
        if self.is_open and self._closing is None:
            self._closing = self._loop.call_later(CLOSE_S, self._connection.abort)
        self._connection.close()

    def abort(self) -> None:
        """Close at once, and discard unsent data."""
        self._connection.abort()

    def kill(self) -> None:
        """End a simulated process: break the connection, and cancel the requests in progress."""
        self._draining = True
        for work in list(self._working):
            work.cancel()
        self._connection.abort()

    async def drain(self, timeout_s: float) -> None:
        """Accept no more requests, wait for those in progress, and cancel them after timeout_s."""
        self._draining = True
        self._pause_reading()
        if self._working:
            self._drained = self._loop.create_future()
            await asyncio.wait((self._drained,), timeout=timeout_s)
            for work in list(self._working):
                work.cancel()

    # The methods of a connection's receiver.

    def received(self, data: bytes) -> None:
        self.active_at_s = upkeep.now_s(self._loop)
        if not self._buffer:
            self._frame_since_s = self.active_at_s
        self._buffer += data
        self._read_frames()

    def write_paused(self) -> None:
        self._peer_takes = False
        self._count_unread()
        self._pause_reading()

    def write_resumed(self) -> None:
        self._peer_takes = True
        self._count_unread()
        self._let_senders_go_on()
        self._resume_reading()

    def closed(self) -> None:
        # Requests in progress run to their end: it is better to lose a response than to stop halfway.
        self.is_open = False
        self._let_senders_go_on()
        self._buffer.clear()
        self._account()
        self._count_unread()
        if self._closing is not None:
            self._closing.cancel()
        if self._alarm is not None:
            self._alarm.cancel()
        for answer, _, _ in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionLostError(f"the connection to {self.remote} was lost"))
        self._pending.clear()
        self._on_closed(self)

    # Requests and responses.

    def _read_frames(self) -> None:
        try:
            while self._buffer and self._reading:
                frame = read_frame(self._buffer, self._limits.frame_bytes_max)
                if frame is None:
                    break
                self._frame_since_s = self.active_at_s
                self._take(decode(frame), len(frame))
                self._count_frame(len(frame))
        except FrameError as error:
            _log.warning("closing the connection to %s: %s", self.remote, error)
            self._reading = False
            self._connection.abort()
        self._account()

    def _count_frame(self, size: int) -> None:
        self._frames += 1
        self._frame_bytes += size
        if self._frames >= _FRAMES_AT_ONCE or self._frame_bytes >= _FRAME_BYTES_AT_ONCE:
            self._frames = self._frame_bytes = 0
            self._pause_reading()
            self._loop.call_soon(self._resume_reading)

    def _account(self) -> None:
        size = len(self._buffer)
        if size == self._budgeted or self._budgets is None:
            return
        budget = self._budgets.incomplete
        budget.take(self, size - self._budgeted)
        self._budgeted = size
        if size > _SMALL_BYTES and budget.refusal(self, 0) is not None:
            self._reading = False
            self._connection.abort()

    def _reserve(self) -> str | None:
        """Take what the unanswered requests need from the common budget; return why that is not possible."""
        size, reserved = self._unanswered_bytes, self._reserved
        if self._budgets is None or size == reserved == 0:
            return None
        if size and reserved - 2 * _RESERVED_BYTES < size <= reserved:
            return None
        wanted = -(-size // _RESERVED_BYTES) * _RESERVED_BYTES
        budget = self._budgets.unanswered
        # A few bytes are always allowed: a peer that uses the whole budget must not stop others' heartbeats.
        if wanted > max(self._reserved, _RESERVED_BYTES):
            reason = budget.refusal(self, wanted - self._reserved)
            if reason is not None:
                return reason
        budget.take(self, wanted - self._reserved)
        self._reserved = wanted
        return None

    def _take(self, command: Command, size: int) -> None:
        if command.is_response:
            pending = self._pending.pop(command.opaque, None)
            if pending is not None and not pending.answer.done():
                pending.answer.set_result(command)
            return
        counts_body = self._bodies_used is None or command.code in self._bodies_used
        if not counts_body:
            size -= len(command.body)
        self._unanswered_bytes += size
        # A few bytes are never refused, so they are reserved only if the answer is not made at once.
        covered = max(self._reserved, _RESERVED_BYTES)
        if self._unanswered_bytes > covered and (reason := self._reserve()) is not None:
            self._unanswered_bytes -= size
            self._answer(command, command.answer(ResponseCode.SYSTEM_BUSY, remark=reason))
            return
        reply = self._handle(command, self)
        if isinstance(reply, Later) and reply.is_ended:
            reply = reply.reply
        if reply is None or isinstance(reply, Command):
            self._unanswered_bytes -= size
            self._reserve()
            self._answer(command, reply)
            return
        self._unanswered += 1
        self._reserve()
        if self._is_full():
            self._pause_reading()
        if command.body and not (counts_body and isinstance(reply, Later)):
            # The processor has the body, if it needs it. A `Later` refers to its whole request.
            command = msgspec.structs.replace(command, body=b"")
        if isinstance(reply, Later):
            self._working[reply] = None
            reply.when_ended(partial(self._set, command, size))
        else:
            work = self._loop.create_task(self._answered(command, reply))
            self._working[work] = None
            work.add_done_callback(partial(self._worked, size))

    async def _answered(self, request: Command, reply: Awaitable[Reply]) -> None:
        # Send it in the same turn in which it is made. Of many requests that wait for one event, the next
        # then sees whether the peer still reads (`takes`) before it makes its own response.
        self._answer(request, await reply)

    def _set(self, request: Command, size: int, work: Later) -> None:
        self._worked(size, work)
        self._answer(request, work.reply)

    def _worked(self, size: int, work: asyncio.Future[None] | Later) -> None:
        del self._working[work]
        self._unanswered -= 1
        self._unanswered_bytes -= size
        self._reserve()
        if not self._reading:
            self._resume_reading()
        if self._drained is not None and not self._working and not self._drained.done():
            self._drained.set_result(None)

    def _answer(self, request: Command, reply: Reply) -> None:
        if reply is None or request.is_oneway:
            return
        if (reason := self._too_much_unread(len(reply.body))) is not None:
            reply = request.answer(ResponseCode.SYSTEM_BUSY, remark=reason)
        try:
            self._write(reply)
        except ValueError as error:
            # A response may repeat text of the peer, and be longer than the request was.
            _log.warning("no answer to request %d of %s: %s", request.code, self.remote, error)
            remark = "the answer does not fit into a command"
            self._write(request.answer(ResponseCode.SYSTEM_ERROR, remark=remark))

    def _write(self, command: Command) -> None:
        """Write a command. Raises ValueError as `encode` does; then nothing was sent."""
        if self.is_open:
            self.active_at_s = upkeep.now_s(self._loop)
            self._connection.write(encode(command))
            if not self._peer_takes:
                self._count_unread()

    def _too_much_unread(self, body_bytes: int) -> str | None:
        """Return why an answer with such a body is not sent: too many bytes are unread; or None."""
        if self._budgets is None or body_bytes <= _SMALL_ANSWER_BYTES:
            return None
        return self._budgets.unread.refusal(self, min(body_bytes, self._limits.frame_bytes_max))

    def _count_unread(self) -> None:
        """Take from the common budget what waits for a peer that does not read, or give it back."""
        size = self._connection.unsent_bytes if self.is_open and not self._peer_takes else 0
        if self._budgets is not None and size != self._unread:
            self._budgets.unread.take(self, size - self._unread)
            self._unread = size

    def _is_full(self) -> bool:
        return (
            self._unanswered >= self._limits.unanswered_max
            or self._unanswered_bytes >= self._limits.unanswered_bytes_max
        )

    def _pause_reading(self) -> None:
        if self._reading and self.is_open:
            self._reading = False
            self._connection.pause_reading()

    def _resume_reading(self) -> None:
        if self.is_open and self._peer_takes and not self._draining and not self._is_full():
            self._reading = True
            self._connection.resume_reading()
            # Frames that arrived before the pause are still in the buffer, and no read event will come for
            # them.
            self._loop.call_soon(self._read_frames)

    def _let_senders_go_on(self) -> None:
        senders, self._senders = self._senders, []
        for waiter in senders:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_by(self, until_s: float) -> None:
        """Make sure that `_expire` runs by this time.

        One timer serves all requests. Most requests get a response, so a timer for each would nearly always
        be cancelled.
        """
        if self._alarm is not None:
            if self._alarm_s <= until_s:
                return
            self._alarm.cancel()
        self._alarm_s = until_s
        self._alarm = upkeep.call_at(until_s, self._expire)

    def _expire(self) -> None:
        """Fail the requests that have timed out, and set the timer for the others."""
        self._alarm = None
        # The timer may have fired early because of rounding.
        now_s = max(upkeep.now_s(self._loop), self._alarm_s)
        for opaque, (answer, timeout_s, until_s) in list(self._pending.items()):
            if until_s > now_s:
                self._wake_by(until_s)
                continue
            del self._pending[opaque]
            if not answer.done():
                text = f"no answer from {self.remote} within {round(timeout_s * 1000)} ms"
                answer.set_exception(RequestTimeoutError(text))
