"""An embedded cluster in a thread of its own, for tests with or without an event loop."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded.cluster_members import ClusterKind
from mqproof.impl.embedded.embedded_cluster import EmbeddedCluster
from mqproof.impl.embedded.loop_thread import LoopThread


class ThreadedCluster:
    """A name server and brokers with replicas in another thread, on free ports of the loopback interface.

    Its methods block for a moment, and may be called from any thread. The time of the brokers passes at once
    where they would wait for each other; that of the clients does not.
    """

    def __init__(
        self, kind: str = ClusterKind.MASTER_SLAVE, *, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a cluster that starts when the `with` block is entered; arguments as in EmbeddedCluster."""
        self._inner = EmbeddedCluster(kind, sockets=True, properties=properties)
        self._thread = LoopThread("rocketmq-cluster")
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
    def master(self) -> str | None:
        """The name of the broker that takes messages; None while there is none."""
        return self._thread.call(lambda: self._inner.master)

    @property
    def running(self) -> list[str]:
        """The names of the brokers that run: master and slave, or n0, n1 and n2."""
        return self._thread.call(lambda: self._inner.running)

    def stop_master(self, *, kill: bool = False) -> str:
        """Stop the broker that takes messages, and return its name, as EmbeddedCluster.stop_master."""
        return self._thread.run(self._inner.stop_master(kill=kill))

    def start_member(self, name: str) -> None:
        """Start a stopped broker again, as EmbeddedCluster.start_member."""
        self._thread.run(self._inner.start_member(name))

    def in_sync(self) -> None:
        """Wait until all running brokers have what the master has, as EmbeddedCluster.in_sync."""
        self._thread.run(self._inner.in_sync())

    def client(self, consumer_group: str = "mqproof_consumer") -> BlockingClient:
        """Return a client whose calls block, to be used in `with`."""
        return BlockingClient(self.name_server, consumer_group=consumer_group)

    def session(self) -> Session:
        """Return a session for the caller's event loop, to be used in `async with`."""
        return connect(self.name_server)

    def messages(self, topic: str, *, member: str | None = None) -> list[ReceivedMessage]:
        """Return all messages of the topic that a broker has stored, as EmbeddedCluster.messages."""
        return self._thread.call(lambda: self._inner.messages(topic, member=member))

    def expect(self, topic: str, count: int = 1, *, within_s: float = 5.0) -> list[ReceivedMessage]:
        """Wait until the topic has `count` messages, and return them, as EmbeddedCluster.expect.

        Raises:
            ExpectationError: it has more, or after `within_s` seconds it has fewer.
        """
        return self._thread.run(self._inner.expect(topic, count, within_s=within_s))

    def fail_next(
        self,
        operation: str,
        times: int = 1,
        *,
        code: str = "SYSTEM_BUSY",
        remark: str = "ordered by the test",
        executed: bool = False,
    ) -> None:
        """Let the next requests of a kind fail at any broker, as EmbeddedBroker.fail_next."""
        self._thread.call(
            lambda: self._inner.fail_next(operation, times, code=code, remark=remark, executed=executed)
        )

    def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let this much of the brokers' time pass at once, as ThreadedBroker.advance."""
        self._thread.run(self._inner.clock.advance(hours=hours, minutes=minutes, seconds=seconds))
