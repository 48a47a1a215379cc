"""A client with one connection per address, opened on first use."""

import asyncio
from collections.abc import Callable

from mqproof.impl.remoting.channel import Channel, ConnectError, Handler, Limits
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.request_handler import refuse_everything
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address, Connection, Network

CONNECT_TIMEOUT_S = 3.0


class RemotingClient:
    """Sends requests to addresses. Requests to the same address share one connection.

    `handle` handles requests from servers. `on_connected` is called for each new connection. With
    credentials, every request is signed. A request that times out leaves its connection open.
    """

    def __init__(
        self,
        network: Network,
        handle: Handler = refuse_everything,
        limits: Limits | None = None,
        on_connected: Callable[[Address], None] = lambda _: None,
        credentials: Credentials | None = None,
    ) -> None:
        self._network = network
        self._handle = handle
        self._limits = limits or Limits()
        self._on_connected = on_connected
        self.credentials = credentials
        """May be set later."""
        self._channels: dict[Address, Channel] = {}
        self._connecting: dict[Address, asyncio.Task[Channel]] = {}
        self._closed = False

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        """Return the response to the request. Connecting counts towards timeout_s.

        Raises:
            ConnectError: nothing was sent.
            ConnectionLostError, RequestTimeoutError: sent, outcome unknown.
        """
        channel = self._channels.get(address)
        if channel is None:
            loop = asyncio.get_running_loop()
            deadline_s = loop.time() + timeout_s
            channel = await self._connected(address, min(timeout_s, CONNECT_TIMEOUT_S))
            timeout_s = max(0.0, deadline_s - loop.time())
        return await channel.invoke(self._signed(request), timeout_s)

    def ask(self, address: Address, request: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Send a request; return the future of its response, which fails as `invoke` does.

        Over a connection that exists, this takes less time than a task that invokes.
        """
        channel = self._channels.get(address)
        if channel is None:
            return asyncio.get_running_loop().create_task(self.invoke(address, request, timeout_s))
        try:
            return channel.ask(self._signed(request), timeout_s)
        except ConnectError as error:
            failed: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed

    async def send_oneway(self, address: Address, request: Command) -> None:
        """Send a request, waiting only for the connection and for a peer that reads what was sent before.

        Raises:
            ConnectError: nothing was sent.
        """
        channel = self._channels.get(address) or await self._connected(address, CONNECT_TIMEOUT_S)
        if not channel.takes:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await channel.until_it_takes()
            except TimeoutError:
                raise ConnectError(f"{address} does not read the data sent to it") from None
        channel.send_oneway(self._signed(request))

    def channel(self, address: Address) -> Channel | None:
        """Return the connection to an address, or None when there is none. A later one is another object."""
        return self._channels.get(address)

    def is_connected(self, address: Address) -> bool:
        return address in self._channels

    async def close(self) -> None:
        """Close every connection. Pending requests fail; later ones raise ConnectError."""
        self._closed = True
        for task in list(self._connecting.values()):
            task.cancel()
        for channel in list(self._channels.values()):
            channel.close()

    def abort(self) -> None:
        """Break every connection at once."""
        self._closed = True
        for task in list(self._connecting.values()):
            task.cancel()
        for channel in list(self._channels.values()):
            channel.abort()

    async def _connected(self, address: Address, timeout_s: float) -> Channel:
        if self._closed:
            raise ConnectError(f"the client is closed, no connection to {address}")
        task = self._connecting.get(address)
        if task is None:
            task = asyncio.create_task(self._connect(address))
            task.add_done_callback(_look_at_outcome)
            self._connecting[address] = task
        try:
            async with asyncio.timeout(timeout_s):
                # Other callers may wait for the same connection, so this timeout must not cancel it.
                return await asyncio.shield(task)
        except TimeoutError:
            raise ConnectError(f"no connection to {address} within {round(timeout_s * 1000)} ms") from None
        except OSError as error:
            raise ConnectError(f"no connection to {address}: {error.strerror or error}") from None
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelled():
                raise ConnectError(f"the client is closed, no connection to {address}") from None
            raise

    async def _connect(self, address: Address) -> Channel:
        def on_connection(connection: Connection) -> Channel:
            channel = Channel(connection, self._handle, self._limits, lambda _: self._forget(address))
            self._channels[address] = channel
            return channel

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._network.connect(address, on_connection)
        finally:
            del self._connecting[address]
        channel = self._channels.get(address)
        if channel is None:
            # A server that crashes at this moment, or is not accepting yet, closes the connection at once.
            raise ConnectError(f"the connection to {address} was lost as soon as it was made")
        self._on_connected(address)
        return channel

    def _signed(self, request: Command) -> Command:
        return self.credentials.signed(request) if self.credentials else request

    def _forget(self, address: Address) -> None:
        self._channels.pop(address, None)


def _is_cancelled() -> bool:
    """Return whether the running task itself is cancelled, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _look_at_outcome(task: asyncio.Task[Channel]) -> None:
    """Retrieve the exception of an attempt that failed after all callers gave up.

    Otherwise asyncio would log it as never retrieved.
    """
    if not task.cancelled():
        task.exception()
