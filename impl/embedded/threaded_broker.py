"""An embedded broker in a thread of its own, for tests with or without an event loop."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker

T = TypeVar("T")

_STOP_S: Final = 30.0


class ThreadedBroker:
    """A name server and a broker in another thread, on free ports of the loopback interface.

    Its methods block for a moment, and may be called from any thread. Clients use real sockets and the
    machine's time.
    """

    def __init__(
        self, *, store: Path | str | None = None, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a broker that starts when the `with` block is entered; arguments as in EmbeddedBroker."""
        self._inner = EmbeddedBroker(store=store, sockets=True, properties=properties)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rocketmq", daemon=True)
        self.name_server = ""
        """The address of the name server, as HOST:PORT; empty before the start."""

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._inner.start(), self._loop).result()
        except BaseException:
            self._end()
            raise
        self.name_server = self._inner.name_server
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._inner.stop(), self._loop).result(_STOP_S)
        finally:
            self._end()

    def client(self, consumer_group: str = "mqproof_consumer") -> BlockingClient:
        """Return a client whose calls block, to be used in `with`."""
        return BlockingClient(self.name_server, consumer_group=consumer_group)

    def session(self) -> Session:
        """Return a session for the caller's event loop, to be used in `async with`."""
        return connect(self.name_server)

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all stored messages of the topic, as EmbeddedBroker.messages."""
        return self._call(lambda: self._inner.messages(topic))

    def expect(self, topic: str, count: int = 1, *, within_s: float = 5.0) -> list[ReceivedMessage]:
        """Wait until the topic has `count` messages, and return them, as EmbeddedBroker.expect.

        Raises:
            ExpectationError: it has more, or after `within_s` seconds it has fewer.
        """
        work = self._inner.expect(topic, count, within_s=within_s)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def fail_next(
        self,
        operation: str,
        times: int = 1,
        *,
        code: str = "SYSTEM_BUSY",
        remark: str = "ordered by the test",
        executed: bool = False,
    ) -> None:
        """Let the next requests of a kind fail, as EmbeddedBroker.fail_next."""
        self._call(
            lambda: self._inner.fail_next(operation, times, code=code, remark=remark, executed=executed)
        )

    def _call(self, function: Callable[[], T]) -> T:
        """Call the function in the broker's thread, and return what it returns."""

        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)
        self._loop.close()
