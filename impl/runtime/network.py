"""The network interface: byte streams that are pushed to a receiver, over real sockets or in memory.

A `Connection` carries bytes in both directions, in order. The code that opens or accepts one supplies a
receiver. The receiver is called with received bytes, when the send buffer fills or drains, and at the end.
These calls always come from the event loop, never from inside one of the receiver's own calls.

Broker, name server and client use only this interface. The same code therefore runs over TCP
(`AsyncioNetwork`) and, without sockets and in a deterministic order, over `SimulatedNetwork`.
"""

import asyncio
import errno
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Final, NamedTuple, Protocol


class Address(NamedTuple):
    """The address of a listener or of the origin of a connection: an IP address or host name, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse an address written as HOST:PORT.

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
    @property
    def unsent_bytes(self) -> int:
        """The bytes in the memory of this process that the peer has not taken yet."""
        ...

    def write(self, data: bytes) -> None:
        """Queue `data` to be sent. Ignored once the connection is closing."""
        ...

    def close(self) -> None:
        """Close after everything written has been sent. The receiver's `closed` is called later."""
        ...

    def abort(self) -> None:
        """Close at once and discard unsent bytes. The receiver's `closed` is called later."""
        ...

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Receiver(Protocol):
    """The callbacks of a connection's owner."""

    def received(self, data: bytes) -> None: ...
    def write_paused(self) -> None:
        """The peer does not accept bytes fast enough: stop writing until `write_resumed`."""
        ...

    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        """The connection has ended, for any reason. This is the last call."""
        ...


ReceiverFactory = Callable[[Connection], Receiver]


class Listener(Protocol):
    """A listening socket, or its simulation."""

    @property
    def address(self) -> Address: ...
    def close(self) -> None:
        """Stop accepting connections. Existing connections stay."""
        ...


class Network(Protocol):
    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        """Accept connections on host:port; port 0 is any free port. Raises OSError when it is in use."""
        ...

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        """Open a connection, without a time limit. Raises OSError when no listener accepts it."""
        ...


class AsyncioNetwork:
    """TCP on the running event loop."""

    backlog: Final = 1024

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        loop = asyncio.get_running_loop()
        with _named(host), _in_use(host, port):
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
            raise ConnectionResetError(f"{address} closed the connection at once, or it leads back to itself")
        return protocol.connection


@contextmanager
def _named(host: str) -> Iterator[None]:
    """Raise OSError for text that cannot be a host name; event loops raise ValueError.

    Peers can supply host names too.
    """
    try:
        yield
    except ValueError as error:
        raise OSError(f"{host!r} is not a valid host name: {error}") from None


@contextmanager
def _in_use(host: str, port: int) -> Iterator[None]:
    """Say in one clause which address is in use; event loops word it differently."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(errno.EADDRINUSE, f"{host}:{port} is in use by another process") from None


class _AsyncioListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.address = Address(*server.sockets[0].getsockname()[:2])

    def close(self) -> None:
        self._server.close()


class _StreamProtocol(asyncio.Protocol):
    """Translates asyncio's callbacks. Event loops disable Nagle's algorithm by default."""

    def __init__(self, on_connection: ReceiverFactory) -> None:
        self._on_connection = on_connection
        self.connection: _StreamConnection | None = None
        """None until the connection is made, and permanently if it ended before that."""
        self._receiver: Receiver | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        local, remote = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        # Without addresses, the peer has closed already. With the same address twice, the socket has
        # connected to itself: TCP allows this when a socket connects to a port of its own ephemeral range,
        # and no listener could use that port then.
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

    @property
    def unsent_bytes(self) -> int:
        # A transport that is closing may have no buffer any more.
        buffered = 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()
        return self._unsent_bytes + buffered

    def write(self, data: bytes) -> None:
        # Everything written in one turn of the loop is sent together: a flush answers many sends at once, and
        # a system call for each would cost more than the rest of the answer.
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes >= _TOGETHER_BYTES_MAX:
            self._send()  # this also detects whether the peer accepts bytes, before more are written

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
    """A network in memory, within one event loop.

    Bytes arrive in order, one loop turn after they were written, or `delay_s` later by the loop's clock. The
    send buffer never fills.

    - `cut` closes every connection to an address.
    - `silence` drops all bytes from and to an address: a partition that neither side notices.
    - `deafen` and `mute` drop the bytes of one direction.
    - `heal` ends these three.

    A receiver is called in the context in which its owner connected or listened, so that the loop can assign
    the call to the right process.
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
            raise ConnectionRefusedError(f"no server listens on {address}")
        near = _SimulatedConnection(self, Address(address.host, next(self._ports)), address)
        far = _SimulatedConnection(self, address, near.local)
        near.peer, far.peer = far, near
        self._connections += [near, far]
        far.context = listener.context
        far.receiver = far.context.run(listener.on_connection, far)
        near.receiver = on_connection(near)
        return near

    def cut(self, address: Address) -> None:
        """Break every connection to the listener at `address`.

        Both ends receive `closed`, also one that did not notice the end of the other side.
        """
        for connection in [c for c in self._connections if c.has_end_at(address)]:
            connection.abort()

    def silence(self, address: Address) -> None:
        """From now on drop everything that is sent to or from the listener at `address`."""
        self.deafen(address)
        self.mute(address)

    def deafen(self, address: Address) -> None:
        """From now on drop everything that is sent to the listener at `address`."""
        self._deaf.add(address)

    def mute(self, address: Address) -> None:
        """From now on drop everything that the listener at `address` sends."""
        self._mute.add(address)

    def heal(self, address: Address) -> None:
        """End `silence`, `deafen` and `mute`. The bytes dropped meanwhile stay lost."""
        self._deaf.discard(address)
        self._mute.discard(address)

    def is_lost(self, connection: "_SimulatedConnection") -> bool:
        """Return whether the bytes that this end sends are dropped."""
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

    unsent_bytes = 0  # the send buffer never fills

    def write(self, data: bytes) -> None:
        if self._open and not self._network.is_lost(self):
            _later(self._network.delay_s, self.peer.context, self.peer.deliver, data)

    def has_end_at(self, address: Address) -> bool:
        """Whether this end has the address, or the other end has it and is closed already."""
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
        """End this side, because the other side closed."""
        if self._open:
            self._end(0.0)

    def _end(self, delay_s: float) -> None:
        if self._open:
            self._open = False
            self._network.forget(self)
            # Looked up when called: a connection may be refused while its receiver is being made.
            _later(0.0, self.context, lambda: self.receiver.closed())
            # A peer that nothing reaches does not notice the end either.
            if not self._network.is_lost(self):
                _later(delay_s, self.peer.context, self.peer.end)


def _later(delay_s: float, context: Context, callback: Callable[..., None], *arguments: bytes) -> None:
    loop = asyncio.get_running_loop()
    if delay_s:
        loop.call_later(delay_s, callback, *arguments, context=context)
    else:
        loop.call_soon(callback, *arguments, context=context)
