"""Tests the network between brokers: which peers get a connection. In simulated time."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from mqproof.impl.runtime.disk import RealDisk, write_durably
from mqproof.impl.runtime.network import Address, Connection, SimulatedNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.security.peer_network import (
    UNPROVED_OF_ADDRESS_MAX,
    PeerConfig,
    PeerIdentity,
    PeerNetwork,
    parse_addresses,
    read_secret,
    warn_if_open,
)
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

T = TypeVar("T")
SECRET = b"0123456789abcdef"
PORT = Address("10.0.0.1", 10912)


class Peer:
    """One end of a connection, which remembers what it receives."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.heard = b""
        self.is_closed = False

    def received(self, data: bytes) -> None:
        self.heard += data

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        self.is_closed = True


class Site:
    """A listener that counts the connections its owner receives."""

    def __init__(self, secret: bytes | None = SECRET, addresses: tuple[str, ...] = ()) -> None:
        self.inner = SimulatedNetwork(delay_s=0.01)
        self.network = self.of(secret, addresses)
        self.accepted: list[Peer] = []

    def of(self, secret: bytes | None, addresses: tuple[str, ...] = ()) -> PeerNetwork:
        identity = PeerIdentity(secret, "me", "test", os.urandom)
        return PeerNetwork(self.inner, identity, addresses)

    async def listen(self) -> None:
        def accepted(connection: Connection) -> Peer:
            self.accepted.append(Peer(connection))
            return self.accepted[-1]

        await self.network.listen(*PORT, accepted)

    async def stranger(self) -> Peer:
        """Connect without a handshake."""
        made: list[Peer] = []

        def connected(connection: Connection) -> Peer:
            made.append(Peer(connection))
            return made[0]

        await self.inner.connect(PORT, connected)
        return made[0]


def _play(site: Site, scenario: Callable[[Site], Awaitable[T]]) -> T:
    async def main() -> T:
        await site.listen()
        return await scenario(site)

    return run_simulated(main(), SimulatedLoop())


def test_peers_with_the_secret_exchange_bytes() -> None:
    async def scenario(site: Site) -> tuple[bytes, bytes]:
        made: list[Peer] = []

        def connected(connection: Connection) -> Peer:
            made.append(Peer(connection))
            connection.write(b"hello")
            return made[0]

        connection = await site.of(SECRET).connect(PORT, connected)
        connection.write(b" there")
        await asyncio.sleep(1)
        site.accepted[0].connection.write(b"yes")
        await asyncio.sleep(1)
        connection.close()
        await asyncio.sleep(10)
        assert site.accepted[0].is_closed
        return site.accepted[0].heard, made[0].heard

    assert _play(Site(), scenario) == (b"hello there", b"yes")


def test_a_stranger_gets_no_byte_and_its_owner_no_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> tuple[bytes, bool, int]:
        strangers = [await site.stranger() for _ in range(3)]
        for stranger in strangers:
            stranger.connection.write(bytes(8))
        silent = await site.stranger()
        await asyncio.sleep(10)
        closed = all(one.is_closed for one in [*strangers, silent])
        return b"".join(one.heard for one in strangers), closed, len(site.accepted)

    with caplog.at_level(logging.WARNING):
        assert _play(Site(), scenario) == (b"", True, 0)
    assert len(caplog.records) == 1, "once in a minute for an address"


def test_strangers_do_not_keep_out_a_peer() -> None:
    async def scenario(site: Site) -> tuple[int, int]:
        strangers = [await site.stranger() for _ in range(4 * UNPROVED_OF_ADDRESS_MAX)]
        await asyncio.sleep(0.1)
        open_now = sum(not one.is_closed for one in strangers)
        await site.of(SECRET).connect(PORT, Peer)
        await asyncio.sleep(1)
        return open_now, len(site.accepted)

    assert _play(Site(), scenario) == (UNPROVED_OF_ADDRESS_MAX, 1)


@pytest.mark.parametrize(
    ("listens", "connects", "message"),
    [
        (SECRET, b"another secret....", "do both ends have the same peer secret"),
        (None, SECRET, "did not prove in 5 s"),
    ],
)
def test_a_connection_without_the_same_secret_fails(
    listens: bytes | None, connects: bytes, message: str
) -> None:
    async def scenario(site: Site) -> str:
        with pytest.raises(OSError, match=message) as error:
            await site.of(connects).connect(PORT, Peer)
        return str(error.value)

    assert str(PORT) in _play(Site(listens), scenario)


@pytest.mark.parametrize(("allowed", "accepted"), [(("10.0.0.1",), 1), (("10.0.0.2",), 0)])
def test_only_listed_addresses_are_accepted(allowed: tuple[str, ...], accepted: int) -> None:
    async def scenario(site: Site) -> tuple[int, bool]:
        peer = await site.stranger()
        await asyncio.sleep(1)
        return len(site.accepted), peer.is_closed

    assert _play(Site(None, allowed), scenario) == (accepted, not accepted)


def test_addresses_are_numeric() -> None:
    assert parse_addresses("10.0.0.1; ::1") == ("10.0.0.1", "::1")
    with pytest.raises(ValueError, match="numeric"):
        parse_addresses("broker-a")


@pytest.mark.parametrize("text", [b"", b"short", b"x" * 5000])
def test_a_secret_of_another_size_is_refused(text: bytes) -> None:
    disk = SimulatedDisk()
    write_durably(disk, "secret", text)
    with pytest.raises(ConfigError, match="bytes, 16 to 4096 expected"):
        read_secret(disk, "secret")
    with pytest.raises(ConfigError, match="missing"):
        read_secret(disk, "missing")


def test_a_secret_that_others_can_read_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    assert read_secret(RealDisk(), str(path)) == SECRET
    assert not caplog.records
    path.chmod(0o644)
    read_secret(RealDisk(), str(path))
    assert str(path) in caplog.text


@pytest.mark.parametrize(
    ("config", "host", "level"),
    [
        (PeerConfig(), "0.0.0.0", logging.WARNING),
        (PeerConfig(), "127.0.0.1", logging.INFO),
        (PeerConfig(secret_file="s"), "0.0.0.0", None),
        (PeerConfig(peer_addresses=("10.0.0.1",)), "0.0.0.0", None),
    ],
)
def test_an_open_port_is_reported_at_the_start(
    config: PeerConfig, host: str, level: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        warn_if_open(config, Address(host, 10912), "HA", "receives all messages")
    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])
