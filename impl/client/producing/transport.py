"""How the requests of a producer reach a broker: the event loop, or the thread that calls."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, Protocol, TypeVar, TypeVarTuple

from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting.blocking_client import BlockingRemotingClient
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime import blocking_connection
from mqproof.impl.runtime.network import Address

T = TypeVar("T")
_Ts = TypeVarTuple("_Ts")


class Transport(Protocol):
    """What a send needs from where it runs. Only `invoke` and `run` wait for a server."""

    def now_s(self) -> float:
        """Return a monotonic time, which is the same for all transports of a session."""
        ...

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        """Return the response, as RemotingClient.invoke does."""
        ...

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, which runs in the session's event loop."""
        ...

    def in_loop(self, function: Callable[[*_Ts], object], *arguments: *_Ts) -> None:
        """Call a function in the session's event loop, at once or soon."""
        ...


class LoopTransport:
    """The transport of a send that runs in the session's event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        return await self._session.remoting.invoke(address, request, timeout_s)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    def in_loop(self, function: Callable[[*_Ts], object], *arguments: *_Ts) -> None:
        function(*arguments)


class ThreadTransport:
    """The transport of a send that runs in a thread without an event loop. It blocks instead of suspending.

    It has connections of its own. One thread at a time uses it.
    """

    def __init__(self, session: Session, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop
        self.connections = BlockingRemotingClient()

    def now_s(self) -> float:
        return blocking_connection.monotonic_s()

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        remoting = self._session.remoting
        if not _is_ip_address(address.host):  # only the event loop limits the time to resolve a name
            return await self.run(remoting.invoke(address, request, timeout_s))
        signed = remoting.credentials.signed(request) if remoting.credentials else request
        return self.connections.invoke(address, signed, timeout_s)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def in_loop(self, function: Callable[[*_Ts], object], *arguments: *_Ts) -> None:
        with contextlib.suppress(RuntimeError):  # the client was closed during the send, and with it the loop
            self._loop.call_soon_threadsafe(function, *arguments)


_is_ip_address = lru_cache(maxsize=1024)(blocking_connection.is_ip_address)
