"""A broker in memory, in a thread of its own, that another event loop controls and can replace."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.loop_thread import LoopThread
from mqproof.impl.runtime.network import Address

T = TypeVar("T")

FAULTS_MAX: Final = 10_000
"""The most faults of one kind that may wait."""


class TooManyFaultsError(ValueError):
    """More faults would wait than are kept."""


class ControlledBroker:
    """A name server and a broker whose thread has its own, virtual time.

    Its methods are called from one other event loop, whose time stays that of the machine.
    """

    def __init__(self, properties: Mapping[str, str], namesrv_port: int = 0, broker_port: int = 0) -> None:
        """Create a broker; port 0 is any free port.

        Raises:
            ConfigError: an unknown key, a key that the embedded broker sets itself, or a wrong value.
        """
        self._properties = properties
        self._ports = (namesrv_port, broker_port)
        self._thread = LoopThread("ephemeral-broker")
        self._broker = self._new()
        self._changes = asyncio.Lock()
        """Held by the operation that changes the broker; others wait."""
        self._reset_count = 0

    @property
    def name_server(self) -> Address:
        return Address.parse(self._broker.name_server)

    @property
    def address(self) -> Address:
        """The address of the broker itself."""
        return Address.parse(self._broker.address)

    @property
    def reset_count(self) -> int:
        """How often it was reset."""
        return self._reset_count

    async def start(self) -> None:
        """Start the thread and both servers. Raises OSError when a port is in use."""
        self._thread.start()
        try:
            await self._run(self._broker.start())
        except BaseException:
            self._thread.end()
            raise
        self._ports = (self.name_server.port, self.address.port)

    async def stop(self) -> None:
        """Stop both servers and the thread. Nothing happens if they do not run."""
        if self._thread.is_alive:
            async with self._changes:
                await self._run(self._broker.stop())
                self._thread.end()

    async def reset(self) -> None:
        """Replace both servers by new ones without topics, groups, messages or faults, on the same ports.

        Clients lose their connections and connect again. The time stays where it is.
        """
        async with self._changes:
            await self._run(self._broker.stop())
            self._broker = self._new()
            await self._run(self._broker.start())
            self._reset_count += 1

    async def advance(self, seconds: float, *, keep_clients: bool = True) -> int:
        """Let this much of the broker's time pass, as EmbeddedBroker.advance.

        Returns the time, in milliseconds since the epoch.

        Raises:
            ValueError: the duration is negative or not finite.
        """
        async with self._changes:
            await self._run(self._broker.advance(seconds, keep_clients=keep_clients))
            return self.now_ms()

    def now_ms(self) -> int:
        """Return the broker's time, in milliseconds since the epoch."""
        return self._broker.clock.now_us() // 1000

    async def fail_next(self, operation: str, times: int, code: str, remark: str, *, executed: bool) -> None:
        """Let the next requests of a kind fail, as EmbeddedBroker.fail_next.

        Raises:
            TooManyFaultsError: more than FAULTS_MAX would wait.
            ValueError: an unknown operation or code.
        """

        async def order() -> None:
            waiting = self._broker.faults().get(operation, 0)
            if waiting + times > FAULTS_MAX:
                raise TooManyFaultsError(f"{waiting} faults of {operation} wait: at most {FAULTS_MAX}")
            self._broker.fail_next(operation, times, code=code, remark=remark, executed=executed)

        await self._run(order())

    async def faults(self) -> dict[str, int]:
        """Return how many requests of each kind will still fail."""

        async def read() -> dict[str, int]:
            return self._broker.faults()

        return await self._run(read())

    async def forget_faults(self) -> None:
        """Let no further request fail."""

        async def forget() -> None:
            self._broker.forget_faults()

        await self._run(forget())

    async def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all stored messages of the topic, as EmbeddedBroker.messages."""

        async def read() -> list[ReceivedMessage]:
            return self._broker.messages(topic)

        async with self._changes:
            return await self._run(read())

    @property
    def failure(self) -> str:
        """Why the broker does not work any more; empty while it works."""
        return self._broker.failure

    def _new(self) -> EmbeddedBroker:
        return EmbeddedBroker(sockets=True, properties=self._properties, ports=self._ports)

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(work))
