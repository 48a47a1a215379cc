"""Runs sends of a producer in the thread that calls, without its event loop.

All sends run in the event loop instead if the session uses TLS or hooks.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.producing.producer import Producer, with_transport
from mqproof.impl.client.producing.transport import ThreadTransport
from mqproof.impl.runtime.immediate import result_of

T = TypeVar("T")

_LANES_MAX: Final = 16
"""The most sends that run in their threads at a time. Further ones run in the event loop."""


class _Lane(NamedTuple):
    """What one send at a time uses: a producer, with connections of its own."""

    producer: Producer
    transport: ThreadTransport


class ThreadSends:
    """The sends of one producer. Its methods may be called from any thread."""

    def __init__(
        self, producer: Producer, session: Session, loop: asyncio.AbstractEventLoop, *, has_hooks: bool
    ) -> None:
        """Create it. With hooks no send runs in its thread: hooks run in the event loop."""
        self._producer = producer
        self._session = session
        self._loop = loop
        tls = session.runtime.tls
        self._is_usable = not has_hooks and (tls is None or tls.client is None)
        # Other threads use these two at any time; each call of a method on them is atomic.
        self._idle: deque[_Lane] = deque()
        self._lanes: list[_Lane] = []

    def run(self, send: Callable[[Producer], Coroutine[Any, Any, T]]) -> T:
        """Run a send, and return its result."""
        lane = self._take()
        if lane is None:
            return asyncio.run_coroutine_threadsafe(send(self._producer), self._loop).result()
        try:
            return result_of(send(lane.producer))
        finally:
            self._idle.append(lane)
            if not self._is_usable:
                self._close_idle()

    def close(self) -> None:
        """Close the connections. Sends in progress end, as they do when the session stops."""
        self._is_usable = False
        for lane in list(self._lanes):
            lane.transport.connections.interrupt()
        self._close_idle()

    def _take(self) -> _Lane | None:
        if not self._is_usable:
            return None
        try:
            return self._idle.pop()  # the last one used, so that few of them keep connections
        except IndexError:
            return self._new() if len(self._lanes) < _LANES_MAX else None

    def _new(self) -> _Lane:
        transport = ThreadTransport(self._session, self._loop)
        lane = _Lane(with_transport(self._producer, transport), transport)
        self._lanes.append(lane)
        if not self._is_usable:  # closed meanwhile
            transport.connections.interrupt()
        return lane

    def _close_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().transport.connections.close()
            except IndexError:  # another thread was faster
                return
