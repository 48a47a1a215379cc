"""The network between brokers: only peers that are allowed get a connection.

`PeerNetwork` wraps a network, as `TlsNetwork` does. A peer is allowed if its address is listed, and if it
proves that it has the shared secret, as far as these are configured. The owner of a listener does not notice
any other peer: its receiver is made after the proof.

See docs/reference/protocol/replication.md, "Authentication of peers".
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from mqproof.impl.runtime.disk import Disk, read_whole
from mqproof.impl.runtime.network import Address, Connection, Listener, Network, Receiver, ReceiverFactory
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.security.peer_handshake import NONCE_BYTES, Accepting, Connecting, HandshakeError
from mqproof.impl.runtime.security.secret_files import warn_if_exposed

_log = logging.getLogger(__name__)

PROOF_S: Final = 5.0
"""The time that a peer has to prove itself."""
UNPROVED_MAX: Final = 64
"""The most connections of one port that have not proved themselves yet. Above it, the oldest is closed."""
UNPROVED_OF_ADDRESS_MAX: Final = 16
SECRET_BYTES_MIN: Final = 16
SECRET_BYTES_MAX: Final = 4096
_REPORT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class PeerConfig:
    """Which peers may use the HA port and the DLedger port. By default any peer may, as in RocketMQ."""

    secret_file: str = ""
    """The property peerSecretFile: the file of the secret that all brokers of a replica set or group share.

    Empty means that peers are not authenticated.
    """
    peer_addresses: tuple[str, ...] = ()
    """The property peerAddresses: the IP addresses from which peers may connect. Empty means any address."""

    @property
    def is_open(self) -> bool:
        """Whether any peer that reaches the port may use it."""
        return not self.secret_file and not self.peer_addresses


def warn_if_open(config: PeerConfig, bound: Address, port: str, can: str) -> None:
    """Log at the start whether any peer may use a port. On the loopback address this is not a warning."""
    if not config.is_open:
        return
    level = logging.INFO if _is_loopback(bound.host) else logging.WARNING
    text = (
        "the %s port %s is open: any peer that reaches it %s (peerSecretFile and peerAddresses are not set)"
    )
    _log.log(level, text, port, bound, can)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_addresses(value: str) -> tuple[str, ...]:
    """Parse IP addresses separated by `;`. Raises ValueError with the expected form."""
    try:
        return tuple(str(ip_address(part.strip())) for part in value.split(";") if part.strip())
    except ValueError:
        raise ValueError("numeric IP addresses, separated by ';',") from None


def read_secret(disk: Disk, path: str) -> bytes:
    """Return the secret in a file, without spaces and line ends around it.

    Raises:
        ConfigError: the file cannot be read, or its secret is too short or too long.
    """
    try:
        secret = read_whole(disk, path).strip()
    except OSError as error:
        raise ConfigError(f"peerSecretFile {path}: {error.strerror or error}") from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ConfigError(
            f"peerSecretFile {path}: {len(secret)} bytes, {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} expected"
        )
    warn_if_exposed(disk, path)
    return secret


@dataclass(frozen=True, slots=True)
class PeerIdentity:
    """The end of a connection in its handshake."""

    secret: bytes | None
    """None if peers are not authenticated."""
    name: str
    """The name that this end reports to its peer, for the log."""
    purpose: str
    """What the connection is for. A peer that proves itself for another purpose is refused."""
    nonce: Callable[[int], bytes]
    """Returns that many random bytes, which must never repeat."""


class PeerNetwork:
    """A network on which only allowed peers get a connection."""

    def __init__(self, inner: Network, identity: PeerIdentity, addresses: tuple[str, ...] = ()) -> None:
        self.refused = 0
        """The number of connections that were refused."""
        self._inner = inner
        self._identity = identity
        self._addresses = frozenset(addresses)
        self._unproved: dict[_Accepted, None] = {}
        self._notices = Notices(_log, _REPORT_S)

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        """Listen as Network.listen does. `on_connection` is called only for allowed peers."""

        def accepted(inner: Connection) -> Receiver:
            if self._addresses and inner.remote.host not in self._addresses:
                self.report(inner.remote, "its address is not among peerAddresses")
                inner.abort()
                return _Refused()
            if self._identity.secret is None:
                return on_connection(inner)
            return self._challenge(inner, on_connection)

        return await self._inner.listen(host, port, accepted)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        """Connect as Network.connect does, and return when both ends have proved themselves.

        Raises OSError also when the peer does not, in `PROOF_S` seconds.
        """
        identity = self._identity
        if identity.secret is None:
            return await self._inner.connect(address, on_connection)
        made: list[_Connected] = []

        def connected(inner: Connection) -> _Connected:
            nonce = identity.nonce(NONCE_BYTES)
            end = Connecting(identity.secret or b"", identity.purpose, identity.name, nonce)
            made.append(_Connected(inner, end, on_connection))
            return made[0]

        connection = await self._inner.connect(address, connected)
        try:
            async with asyncio.timeout(PROOF_S):
                await made[0].proved
        except TimeoutError:
            connection.abort()
            raise ConnectionError(
                f"{address} did not prove in {PROOF_S:.0f} s that it has the secret"
            ) from None
        except BaseException:
            connection.abort()
            raise
        return connection

    def report(self, peer: Address, why: str) -> None:
        """Log that a peer was refused, at most once in a minute for each address."""
        self.refused += 1
        purpose = self._identity.purpose
        self._notices.warn(peer.host, f"refused peer {peer.host} on the port of {purpose}: {why}")

    def forget(self, accepted: "_Accepted") -> None:
        self._unproved.pop(accepted, None)

    def _challenge(self, inner: Connection, on_connection: ReceiverFactory) -> "_Accepted":
        """Let an accepted peer prove itself.

        Peers that do not, however many, cannot keep out one that does: the oldest makes room for the newest.
        """
        identity = self._identity
        held = Counter(other.remote.host for other in self._unproved)
        if held[inner.remote.host] >= UNPROVED_OF_ADDRESS_MAX:
            next(other for other in self._unproved if other.remote.host == inner.remote.host).displace()
        elif len(self._unproved) >= UNPROVED_MAX:
            next(iter(self._unproved)).displace()
        nonce = identity.nonce(NONCE_BYTES)
        end = Accepting(identity.secret or b"", identity.purpose, identity.name, nonce)
        accepted = _Accepted(self, inner, end, on_connection)
        self._unproved[accepted] = None
        return accepted


class _Refused:
    """The receiver of a connection that is being closed."""

    def received(self, data: bytes) -> None: ...
    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None: ...


class _Accepted:
    """The receiver of an accepted connection: first the handshake, then the owner's receiver."""

    def __init__(
        self, network: PeerNetwork, inner: Connection, end: Accepting, on_connection: ReceiverFactory
    ) -> None:
        self._network = network
        self._inner = inner
        self._end = end
        self._on_connection = on_connection
        self._receiver: Receiver | None = None
        self._is_over = False
        self._limit = asyncio.get_running_loop().call_later(PROOF_S, self._too_late)

    @property
    def remote(self) -> Address:
        return self._inner.remote

    def displace(self) -> None:
        """Close the connection, because another one needs its place."""
        self._refuse("too many connections without a proof of the peer secret")

    def received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._receiver is not None:
            self._receiver.received(data)
            return
        try:
            answer = self._end.received(data)
        except HandshakeError as error:
            self._refuse(str(error))
            return
        if answer:
            self._inner.write(answer)
        if self._end.is_done:
            self._settle()
            self._receiver = self._on_connection(self._inner)
            if rest := self._end.rest():
                self._receiver.received(rest)

    def write_paused(self) -> None:
        if self._receiver is not None:
            self._receiver.write_paused()

    def write_resumed(self) -> None:
        if self._receiver is not None:
            self._receiver.write_resumed()

    def closed(self) -> None:
        self._settle()
        if self._receiver is not None:
            self._receiver.closed()

    def _too_late(self) -> None:
        self._refuse(f"it did not prove in {PROOF_S:.0f} s that it has the peer secret")

    def _refuse(self, why: str) -> None:
        self._is_over = True
        self._settle()
        self._network.report(self.remote, why)
        self._inner.abort()

    def _settle(self) -> None:
        self._limit.cancel()
        self._network.forget(self)


class _Connected:
    """The receiver of a connection that this end opened. `proved` is done when both ends have proved."""

    def __init__(self, inner: Connection, end: Connecting, on_connection: ReceiverFactory) -> None:
        self.proved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inner = inner
        self._end = end
        self._on_connection = on_connection
        self._receiver: Receiver | None = None
        inner.write(end.begin())

    def received(self, data: bytes) -> None:
        if self._receiver is not None:
            self._receiver.received(data)
            return
        if self.proved.done():
            return  # it was given up
        try:
            answer = self._end.received(data)
        except HandshakeError as error:
            self.proved.set_exception(ConnectionError(f"{self._inner.remote}: {error}"))
            return
        if answer:
            self._inner.write(answer)
        if self._end.is_done:
            self._receiver = self._on_connection(self._inner)
            self.proved.set_result(None)
            if rest := self._end.rest():
                self._receiver.received(rest)

    def write_paused(self) -> None:
        if self._receiver is not None:
            self._receiver.write_paused()

    def write_resumed(self) -> None:
        if self._receiver is not None:
            self._receiver.write_resumed()

    def closed(self) -> None:
        if self._receiver is not None:
            self._receiver.closed()
        elif not self.proved.done():
            why = "it closed the connection: do both ends have the same peer secret?"
            self.proved.set_exception(ConnectionError(f"{self._inner.remote}: {why}"))
