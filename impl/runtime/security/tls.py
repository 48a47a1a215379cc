"""TLS over any network: the first byte of an accepted connection decides whether it uses TLS.

`TlsNetwork` wraps a network. Its users listen and connect as on any other network. See
docs/reference/protocol/access-control.md, "TLS".
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mqproof.impl.runtime.network import Address, Connection, Listener, Network, Receiver, ReceiverFactory

_log = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
"""The time that a peer has to complete the handshake."""

_HANDSHAKE: Final = 0x16
"""The first byte of every TLS connection; no frame that we accept begins with it."""
_READ_BYTES: Final = 64 * 1024


class TlsMode(StrEnum):
    """Which connections a server accepts."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    """Connections with TLS and without."""
    ENFORCING = "enforcing"
    """Connections with TLS only."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The TLS settings of one process. A direction without a context does not use TLS."""

    mode: TlsMode = TlsMode.PERMISSIVE
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


class TlsNetwork:
    """A network whose connections use TLS where that is configured."""

    def __init__(self, inner: Network, tls: Tls) -> None:
        self._inner = inner
        self._tls = tls

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        """Listen as Network.listen does.

        A new connection is reported at once, before its first byte has arrived.
        """

        def accepted(inner: Connection) -> _End:
            end = _End(inner)
            end.on_first = lambda is_tls: self._decide(end, is_tls)
            end.receiver = on_connection(end)
            return end

        return await self._inner.listen(host, port, accepted)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        """Connect as Network.connect does, and return when the handshake is done.

        Raises OSError also when the handshake fails.
        """
        context = self._tls.client
        if context is None:
            return await self._inner.connect(address, on_connection)
        ready: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()

        def connected(inner: Connection) -> _End:
            def begin() -> None:
                if not ready.done():
                    end.receiver = on_connection(end)
                    ready.set_result(end)

            def fail(error: OSError) -> None:
                if not ready.done():
                    ready.set_exception(error)

            end = _End(inner)
            end.on_ready, end.on_failed = begin, fail
            end.begin(context, server_side=False)
            return end

        connection = await self._inner.connect(address, connected)
        try:
            return await ready
        except BaseException:
            connection.abort()
            raise

    def _decide(self, end: "_End", is_tls: bool) -> bool:
        """Decide whether an accepted connection uses TLS; return False when the connection must be closed."""
        mode, context = self._tls.mode, self._tls.server
        if not is_tls:
            if mode is TlsMode.ENFORCING:
                _log.warning("closing the connection to %s: it does not use TLS", end.remote)
            return mode is not TlsMode.ENFORCING
        if mode is TlsMode.DISABLED or context is None:
            _log.warning("closing the connection to %s: this server does not use TLS", end.remote)
            return False
        end.begin(context, server_side=True)
        return True


class _Pipe:
    """One end of a TLS session: bytes in, bytes out. Every method raises ssl.SSLError when TLS fails."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self.is_ready = False
        """Whether the handshake is done."""
        self.is_over = False
        """Whether the peer has announced that it sends nothing more."""

    def read(self, data: bytes) -> bytes:
        """Decrypt the received bytes and return the plain bytes."""
        self._incoming.write(data)
        said = bytearray()
        try:
            if not self.is_ready:
                self._object.do_handshake()
                self.is_ready = True
            while part := self._object.read(_READ_BYTES):
                said += part
            self.is_over = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_over = True
        return bytes(said)

    def write(self, data: bytes) -> None:
        self._object.write(data)

    def end(self) -> None:
        """Announce to the peer that nothing more follows."""
        with suppress(ssl.SSLError):  # the peer has not announced its end yet, or TLS has failed anyway
            self._object.unwrap()

    def outgoing(self) -> bytes:
        """Return the bytes to send to the peer."""
        return self._outgoing.read()


class _End:
    """An adapter between a connection and its receiver: each sees it in place of the other.

    Before `begin` it passes everything on unchanged.
    """

    def __init__(self, inner: Connection) -> None:
        self._inner = inner
        self._pipe: _Pipe | None = None
        self._limit: asyncio.TimerHandle | None = None
        self.receiver: Receiver | None = None
        """None until the handshake is done, on a connection that we opened."""
        self.on_first: Callable[[bool], bool] | None = None
        """Called with whether the first byte is that of TLS; returns whether the connection may continue."""
        self.on_ready: Callable[[], None] = lambda: None
        self.on_failed: Callable[[OSError], None] = lambda error: _log.warning("%s", error)

    def begin(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        """Use TLS on this connection from now on."""
        self._pipe = _Pipe(context, server_side=server_side)
        self._limit = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._too_late)
        if not server_side:
            self._advance(self._pipe, b"")

    # Methods of the Receiver protocol.

    def received(self, data: bytes) -> None:
        on_first, self.on_first = self.on_first, None
        if on_first is not None and not on_first(data[0] == _HANDSHAKE):
            self._inner.abort()
        elif self._pipe is not None:
            self._advance(self._pipe, data)
        elif self.receiver is not None:
            self.receiver.received(data)

    def write_paused(self) -> None:
        if self.receiver is not None:
            self.receiver.write_paused()

    def write_resumed(self) -> None:
        if self.receiver is not None:
            self.receiver.write_resumed()

    def closed(self) -> None:
        self._end_limit()
        if self._pipe is not None and not self._pipe.is_ready:
            self.on_failed(
                ConnectionResetError(
                    f"TLS with {self.remote}: the peer closed the connection during the handshake"
                )
            )
        if self.receiver is not None:
            self.receiver.closed()

    # Methods of the Connection protocol.

    @property
    def local(self) -> Address:
        return self._inner.local

    @property
    def remote(self) -> Address:
        return self._inner.remote

    @property
    def unsent_bytes(self) -> int:
        return self._inner.unsent_bytes

    def write(self, data: bytes) -> None:
        if self._pipe is None:
            self._inner.write(data)
        elif self._pipe.is_ready:  # before the handshake is done, there is nothing to send
            self._pipe.write(data)
            self._send(self._pipe)

    def close(self) -> None:
        if self._pipe is not None and self._pipe.is_ready:
            self._pipe.end()
            self._send(self._pipe)
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    # Internal methods.

    def _advance(self, pipe: _Pipe, data: bytes) -> None:
        was_ready = pipe.is_ready
        try:
            said = pipe.read(data)
        except ssl.SSLError as error:
            self.on_failed(ConnectionError(f"TLS with {self.remote}: {_reason(error)}"))
            self._send(pipe)  # the alert gives the peer the reason
            self._inner.close()
            return
        self._send(pipe)
        if pipe.is_ready and not was_ready:
            self._end_limit()
            self.on_ready()
        if said and self.receiver is not None:
            self.receiver.received(said)
        if pipe.is_over:
            self.close()

    def _send(self, pipe: _Pipe) -> None:
        if data := pipe.outgoing():
            self._inner.write(data)

    def _too_late(self) -> None:
        self.on_failed(ConnectionError(f"TLS with {self.remote}: no handshake in {HANDSHAKE_S:.0f} s"))
        self._inner.abort()

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return error.reason or str(error)
