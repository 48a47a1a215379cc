"""An embedded broker in a thread of its own, for tests with or without an event loop."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.loop_thread import LoopThread


@dataclass(frozen=True, slots=True)
class ThreadedClock:
    """The time of a broker in a thread, which a test can advance."""

    _broker: "ThreadedBroker"

    def advance(
        self, *, hours: float = 0, minutes: float = 0, seconds: float = 0, keep_clients: bool = True
    ) -> None:
        """Let this much of the broker's time pass at once, as ThreadedBroker.advance."""
        self._broker.advance(hours=hours, minutes=minutes, seconds=seconds, keep_clients=keep_clients)


class ThreadedBroker:
    """A name server and a broker in another thread, on free ports of the loopback interface.

    Its methods block for a moment, and may be called from any thread. Clients use real sockets and the
    machine's time, unless `advance` has moved the broker's.
    """

    def __init__(
        self, *, store: Path | str | None = None, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a broker that starts when the `with` block is entered; arguments as in EmbeddedBroker."""
        self._inner = EmbeddedBroker(store=store, sockets=True, properties=properties)
        self._thread = LoopThread("rocketmq")
        self.name_server = ""
        """The address of the name server, as HOST:PORT; empty before the start."""

    def __enter__(self) -> Self:
        self._thread.start_with(self._inner.start())
        self.name_server = self._inner.name_server
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.end_after(self._inner.stop())

    @property
    def clock(self) -> ThreadedClock:
        """The broker's time: `clock.advance(hours=2)`, as in tests with `broker()`."""
        return ThreadedClock(self)

    def client(self, consumer_group: str = "mqproof_consumer") -> BlockingClient:
        """Return a client whose calls block, to be used in `with`."""
        return BlockingClient(self.name_server, consumer_group=consumer_group)

    def session(self) -> Session:
        """Return a session for the caller's event loop, to be used in `async with`."""
        return connect(self.name_server)

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all stored messages of the topic, as EmbeddedBroker.messages."""
        return self._thread.call(lambda: self._inner.messages(topic))

    def expect(self, topic: str, count: int = 1, *, within_s: float = 5.0) -> list[ReceivedMessage]:
        """Wait until the topic has `count` messages, and return them, as EmbeddedBroker.expect.

        Raises:
            ExpectationError: it has more, or after `within_s` seconds it has fewer.
        """
        return self._thread.run(self._inner.expect(topic, count, within_s=within_s))

    def advance(
        self, *, hours: float = 0, minutes: float = 0, seconds: float = 0, keep_clients: bool = True
    ) -> None:
        """Let this much of the broker's time pass at once. The time of the clients does not pass.

        With `keep_clients`, they stay connected; otherwise they expire when the broker misses them for two
        minutes.

        Raises:
            ValueError: the duration is negative or not finite.
        """
        total_s = hours * 3600 + minutes * 60 + seconds
        self._thread.run(self._inner.advance(total_s, keep_clients=keep_clients))

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
        self._thread.call(
            lambda: self._inner.fail_next(operation, times, code=code, remark=remark, executed=executed)
        )
