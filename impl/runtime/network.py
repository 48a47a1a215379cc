"""The network seam: byte streams that are pushed to a receiver, over real sockets or in memory.

A `Connection` carries bytes both ways in order. Whoever opens or accepts one hands in a receiver, which is
told of bytes, of a full or drained send buffer, and of the end, always from the event loop and never from
inside a call of its own. Broker, name server and client know nothing else of networks, so the same code runs
over TCP (`AsyncioNetwork`) and, without sockets and in a deterministic order, over `SimulatedNetwork`.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Final, NamedTuple, Protocol


class Address(NamedTuple):
    """Where somebody listens or where a connection comes from: an IP address or host name, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """The address written as HOST:PORT.

        Raises:
            ValueError: no colon, an empty host, or a port that is not a number from 0 to 65535.
        """
        host, colon, port = text.strip().rpartition(":")
        if not (colon and host and port.isascii() and port.isdecimal() and int(port) <= 65535):
            raise ValueError(f"{text!r} is not an address, HOST:PORT expected")
        return cls(host, int(port))


_TOGETHER_BYTES_MAX: Final = 256 * 1024


class Connection(Protocol):
    """One end of an established byte stream."""

    @property
    def local(self) -> Address: ...
    @property
    def remote(self) -> Address: ...
    def write(self, data: bytes) -> None:
        """Queue `data` to be sent. Ignored once the connection is closing."""
        ...

    def close(self) -> None:
        """Close once what was written is sent. The receiver hears `closed` later."""
        ...

    def abort(self) -> None:
        """Close at once and forget what was not sent. The receiver hears `closed` later."""
        ...

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Receiver(Protocol):
    """What a connection tells its owner."""

    def received(self, data: bytes) -> None: ...
    def write_paused(self) -> None:
        """The peer does not take what is sent to it: hold back until `write_resumed`."""
        ...

    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        """The last call: the connection is gone, for whatever reason."""
        ...


ReceiverFactory = Callable[[Connection], Receiver]


class Listener(Protocol):
    """An open door."""

    @property
    def address(self) -> Address: ...
    def close(self) -> None:
        """Accept no more. Connections that exist stay."""
        ...


class Network(Protocol):
    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        """Accept connections on host:port, port 0 being any free one. Raises OSError when that is taken."""
        ...

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        """Open a connection, however long that takes. Raises OSError when nobody accepts it."""
        ...


class AsyncioNetwork:
    """TCP by the running event loop."""

    backlog: Final = 1024

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        loop = asyncio.get_running_loop()
        with _named(host):
            server = await loop.create_server(
                lambda: _StreamProtocol(on_connection), host, port, backlog=self.backlog
            )
        return _AsyncioListener(server)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        loop = asyncio.get_running_loop()
        with _named(address.host):
            _, protocol = await loop.create_connection(
                lambda: _StreamProtocol(on_connection), address.host, address.port
            )
        if protocol.connection is None:
            raise ConnectionResetError(f"{address} closed the connection at once, or it led back to itself")
        return protocol.connection


@contextmanager
def _named(host: str) -> Iterator[None]:
    """Text that cannot be a host's name is a ValueError of the event loops; hosts are named by peers too."""
    try:
        yield
    except ValueError as error:
        raise OSError(f"{host!r} cannot be the name of a host: {error}") from None


class _AsyncioListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.address = Address(*server.sockets[0].getsockname()[:2])

    def close(self) -> None:
        self._server.close()


class _StreamProtocol(asyncio.Protocol):
    """Translates asyncio's callbacks. Event loops switch Nagle's algorithm off by themselves."""

    def __init__(self, on_connection: ReceiverFactory) -> None:
        self._on_connection = on_connection
        self.connection: _StreamConnection | None = None
        """None until it is made, and for good when it was over before it began."""
        self._receiver: Receiver | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        local, remote = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        # Without addresses the peer has closed already. The same address twice: TCP lets a socket that looks
        # for a listener on a port of its own range connect to itself, and nobody else could listen there.
        if not local or not remote or local == remote:
            # create_server and create_connection make no other kind of transport.
            transport.abort()  # type: ignore[attr-defined]
            return
        # As above; uvloop's transport is not a subclass of asyncio's.
        self.connection = _StreamConnection(transport, Address(*local[:2]), Address(*remote[:2]))  # type: ignore[arg-type]
        self._receiver = self._on_connection(self.connection)

    def data_received(self, data: bytes) -> None:
        if self._receiver:
            self._receiver.received(data)

    def pause_writing(self) -> None:
        if self._receiver:
            self._receiver.write_paused()

    def resume_writing(self) -> None:
        if self._receiver:
            self._receiver.write_resumed()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        if self._receiver:
            self._receiver.closed()


class _StreamConnection:
    def __init__(self, transport: asyncio.Transport, local: Address, remote: Address) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self.local = local
        self.remote = remote

    def write(self, data: bytes) -> None:
        # What is written in one turn of the loop goes out together: a flush answers many sends at once, and
        # a system call for each would cost more than the rest of the answer.
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes >= _TOGETHER_BYTES_MAX:
            self._send()  # and so learn whether the peer takes it, before more is written

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._unsent.clear()
        self._transport.abort()

    def _send(self) -> None:
        unsent, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if unsent and not self._transport.is_closing():
            self._transport.write(b"".join(unsent))

    def pause_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()


class SimulatedNetwork:
    """A network in memory, one event loop wide.

    Bytes arrive in order, one loop turn after they were written, or `delay_s` later by the loop's clock.
    The send buffer never fills. `cut` closes every connection to an address, `silence` makes the bytes from
    and to it vanish without a word (a partition that no side notices), `deafen` and `mute` those of one way,
    `heal` ends that. A receiver is told in the context of whoever connected or listens, so that the loop
    knows whose process it is.
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self._listeners: dict[Address, _SimulatedListener] = {}
        self._connections: list[_SimulatedConnection] = []
        self._deaf: set[Address] = set()
        self._mute: set[Address] = set()
        self._ports = itertools.count(40_000)

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        address = Address(host, port or next(self._ports))
        if address in self._listeners:
            raise OSError(f"{address} is in use")
        listener = _SimulatedListener(address, on_connection, self._listeners)
        self._listeners[address] = listener
        return listener

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        await asyncio.sleep(self.delay_s)
        listener = self._listeners.get(address)
        if listener is None:
            raise ConnectionRefusedError(f"nobody listens on {address}")
        near = _SimulatedConnection(self, Address(address.host, next(self._ports)), address)
        far = _SimulatedConnection(self, address, near.local)
        near.peer, far.peer = far, near
        self._connections += [near, far]
        far.context = listener.context
        far.receiver = far.context.run(listener.on_connection, far)
        near.receiver = on_connection(near)
        return near

    def cut(self, address: Address) -> None:
        """Break every connection to the listener at `address`: both ends hear `closed`, also the one that did
        not hear of the end of the other."""
        for connection in [c for c in self._connections if c.has_end_at(address)]:
            connection.abort()

    def silence(self, address: Address) -> None:
        """From now on nothing that is sent to or from the listener at `address` arrives."""
        self.deafen(address)
        self.mute(address)

    def deafen(self, address: Address) -> None:
        """From now on nothing that is sent to the listener at `address` arrives."""
        self._deaf.add(address)

    def mute(self, address: Address) -> None:
        """From now on nothing that the listener at `address` sends arrives."""
        self._mute.add(address)

    def heal(self, address: Address) -> None:
        """End of `silence`, `deafen` and `mute`. What was lost meanwhile stays lost."""
        self._deaf.discard(address)
        self._mute.discard(address)

    def is_lost(self, connection: "_SimulatedConnection") -> bool:
        """What this end sends does not arrive."""
        return connection.local in self._mute or connection.remote in self._deaf

    def forget(self, connection: "_SimulatedConnection") -> None:
        self._connections.remove(connection)


class _SimulatedListener:
    def __init__(
        self,
        address: Address,
        on_connection: ReceiverFactory,
        listeners: "dict[Address, _SimulatedListener]",
    ) -> None:
        self.address = address
        self.on_connection = on_connection
        self.context = copy_context()
        self._listeners = listeners

    def close(self) -> None:
        self._listeners.pop(self.address, None)


class _SimulatedConnection:
    peer: "_SimulatedConnection"
    receiver: Receiver

    def __init__(self, network: SimulatedNetwork, local: Address, remote: Address) -> None:
        self.local = local
        self.remote = remote
        self.context = copy_context()
        self._network = network
        self._open = True
        self._reading = True
        self._unread: list[bytes] = []

    def write(self, data: bytes) -> None:
        if self._open and not self._network.is_lost(self):
            _later(self._network.delay_s, self.peer.context, self.peer.deliver, data)

    def has_end_at(self, address: Address) -> bool:
        """This one; or the other one, of which nothing is left."""
        return self.local == address or (self.remote == address and not self.peer._open)

    def close(self) -> None:
        self._end(self._network.delay_s)

    def abort(self) -> None:
        self._end(0.0)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        unread, self._unread = self._unread, []
        for data in unread:
            _later(0.0, self.context, self.deliver, data)

    def deliver(self, data: bytes) -> None:
        if self._open:
            if self._reading:
                self.receiver.received(data)
            else:
                self._unread.append(data)

    def end(self) -> None:
        """The other side closed."""
        if self._open:
            self._end(0.0)

    def _end(self, delay_s: float) -> None:
        if self._open:
            self._open = False
            self._network.forget(self)
            # Looked up later: a connection may be refused while its receiver is being made.
            _later(0.0, self.context, lambda: self.receiver.closed())
            # Whom nothing reaches does not learn of the end either.
            if not self._network.is_lost(self):
                _later(delay_s, self.peer.context, self.peer.end)


def _later(delay_s: float, context: Context, callback: Callable[..., None], *arguments: bytes) -> None:
    loop = asyncio.get_running_loop()
    if delay_s:
        loop.call_later(delay_s, callback, *arguments, context=context)
    else:
        loop.call_soon(callback, *arguments, context=context)
