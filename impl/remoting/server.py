"""Accepts connections and creates a channel for each."""

import asyncio
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Final, NamedTuple

from mqproof.impl.remoting.budget import ServerBudgets, server_budgets
from mqproof.impl.remoting.channel import Channel, Handler, Limits
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.network import Address, Connection, Listener, Network
from mqproof.impl.runtime.supervision import Supervisor

IDLE_S: Final = 120.0
"""A connection is closed after this time without reads and writes, or when one frame takes this long."""

_CLOSE_S: Final = 1.0

_SCAN_S: Final = 10.0


class Traffic(NamedTuple):
    """The requests in progress, and a number that changes whenever bytes are read or written."""

    unanswered: int
    activity: float


class RemotingServer:
    """A listener and its channels. Connections above `connections_max`, or a share of it, are closed."""

    def __init__(
        self,
        network: Network,
        handle: Handler,
        *,
        limits: Limits | None = None,
        connections_max: int = 10_000,
        on_closed: Callable[[Channel], None] = lambda _: None,
        supervisor: Supervisor | None = None,
        budgets: ServerBudgets | None = None,
        bodies_used: Container[int] | None = None,
    ) -> None:
        """`budgets` are those of a server that has several listeners. `bodies_used`: as for a channel."""
        self._network = network
        self._handle = handle
        self._limits = limits or Limits()
        self.budgets = budgets or server_budgets(connections_max, self._limits.frame_bytes_max)
        self._bodies_used = bodies_used
        self._on_closed = on_closed
        self._supervisor = supervisor or Supervisor()
        self._none_left = asyncio.Event()
        self._channels: dict[Channel, None] = {}  # in the order of their arrival
        self._listener: Listener | None = None
        self._idle_scan: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> Address:
        """Listen and return the address, with the chosen port if `port` was 0. Raises OSError."""
        self._listener = await self._network.listen(host, port, self._accept)
        self._idle_scan = self._supervisor.run("scan for idle connections", self._close_idle())
        return self._listener.address

    async def stop(self, drain_s: float = 1.0) -> None:
        """Accept no more connections, finish requests within drain_s, and close every connection."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._idle_scan is not None:
            self._idle_scan.cancel()
            await asyncio.gather(self._idle_scan, return_exceptions=True)
        await asyncio.gather(*(channel.drain(drain_s) for channel in self._channels))
        for channel in list(self._channels):
            channel.close()
        if self._channels:
            # Give the last responses time to be sent.
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._none_left.wait()

    def kill(self) -> None:
        """End a simulated process: connections break, and no response is sent."""
        if self._listener is not None:
            self._listener.close()
        if self._idle_scan is not None:
            self._idle_scan.cancel()
        for channel in list(self._channels):
            channel.kill()

    def count_as_active(self) -> None:
        """Treat all connections as if their peers had just sent something."""
        for channel in self._channels:
            channel.active_at_s = upkeep.now_s()

    def traffic(self) -> Traffic:
        """Return what goes on in all connections. While it stays equal, nothing is sent or received."""
        return Traffic(
            sum(channel.unanswered for channel in self._channels),
            sum(channel.active_at_s for channel in self._channels),
        )

    def has_silent(self, since_s: float) -> bool:
        """Return whether a peer has sent nothing, and was sent nothing, since that time of upkeep."""
        return any(channel.active_at_s < since_s for channel in self._channels)

    def _accept(self, connection: Connection) -> Channel:
        if self.budgets.connections.refusal(connection) is not None:
            connection.abort()
            return Channel(connection, _ignore, self._limits)
        channel = Channel(
            connection, self._handle, self._limits, self._forget, self.budgets, self._bodies_used
        )
        self.budgets.connections.take(channel)
        self._channels[channel] = None
        return channel

    def _forget(self, channel: Channel) -> None:
        del self._channels[channel]
        self.budgets.connections.take(channel, -1)
        if not self._channels:
            self._none_left.set()
        self._on_closed(channel)

    async def _close_idle(self) -> None:
        while True:
            await upkeep.sleep(_SCAN_S)
            oldest_s = upkeep.now_s() - IDLE_S
            for channel in list(self._channels):
                if channel.active_at_s < oldest_s:
                    channel.close()
                elif channel.is_waiting_since(oldest_s):
                    channel.abort()


def _ignore(request: Command, channel: Channel) -> None:
    """The handler of a connection that is being refused: it does nothing."""
