"""Tests the server of a console over real sockets: its start, its bounds, and its end."""

import asyncio
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from mqproof.impl.console import web_server
from mqproof.impl.console.config import ConsoleConfig
from mqproof.impl.console.web_server import HEADER_BYTES_MAX, ConsoleServer
from mqproof.impl.remoting.address_server import parse
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import production
from mqproof.testing import EmbeddedBroker
from tests.impl.console.desk import ACCOUNTS

NOWHERE = [Address("127.0.0.1", 1)]
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def server_of(**config: Any) -> ConsoleServer:
    return ConsoleServer(
        ConsoleConfig(**{"name_servers": NOWHERE, "port": 0, **config}), production(AsyncioNetwork())
    )


async def exchange(address: Address, data: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """Return what the server answers before it closes the connection."""
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*address, ssl=context)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


def test_a_console_serves_until_it_stops_and_closes_silent_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "IDLE_S", 0.05)

    async def run() -> None:
        server = server_of()
        address = await server.start()
        assert b"200 OK" in await exchange(address, HEALTH)  # then it is silent, and closed
        assert await exchange(address, b"") == b""
        assert await exchange(address, b"GET / HTTP/1.1\r\nHost: ") == b""
        large = b"GET / HTTP/1.1\r\nX: " + b"x" * (2 * HEADER_BYTES_MAX)
        assert (await exchange(address, large)).split(b" ")[1] in (b"400", b"431")
        assert b"server:" not in (await exchange(address, HEALTH)).lower()
        await server.stop()
        with pytest.raises(ConnectionRefusedError):
            await exchange(address, HEALTH)

    asyncio.run(run())


def test_a_console_stops_whatever_its_sampler_does() -> None:
    """At some of these turns of the loop, a cancellation arrives together with a failed connection."""

    async def run() -> None:
        for turns in range(5, 11):
            server = server_of()
            await server.start()
            for _ in range(turns):
                await asyncio.sleep(0)
            async with asyncio.timeout(30):
                await server.stop()

    asyncio.run(run())


def test_a_busy_port_is_named() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as busy:
            port = busy.getsockname()[1]
            with pytest.raises(
                OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}: Address already in use"
            ):
                await server_of(port=port).start()
        with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:0"):
            await server_of(host="192.0.2.1", needs_login=False).start()

    asyncio.run(run())


def test_a_public_console_without_accounts_is_refused() -> None:
    async def run() -> None:
        async with EmbeddedBroker(sockets=True) as broker:
            server = server_of(name_servers=parse(broker.name_server), host="0.0.0.0")
            with pytest.raises(
                ConfigError, match=r"--host 0\.0\.0\.0 is public, and the brokers check no accounts"
            ):
                await server.start()

    asyncio.run(run())


def test_what_is_exposed_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def start(**config: Any) -> list[str]:
        caplog.clear()
        server = server_of(**config)
        await server.start()
        await server.stop()
        return [record.getMessage() for record in caplog.records if record.name == web_server.__name__]

    async def run() -> None:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "plain_acl.yml").write_text(ACCOUNTS)
        (tmp_path / "config" / "plain_acl.yml").chmod(0o600)
        assert await start() == []
        login, http = await start(host="0.0.0.0", needs_login=False)
        assert "every client that can connect has access" in login
        assert "serves HTTP" in http
        async with EmbeddedBroker(sockets=True, store=tmp_path, properties={"aclEnable": "true"}) as broker:
            (http,) = await start(name_servers=parse(broker.name_server), host="0.0.0.0")
            assert "serves HTTP" in http

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())


def test_https_is_served_with_a_certificate_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key = str(tmp_path / "c.pem"), str(tmp_path / "k.pem")
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)

    async def run() -> None:
        server = server_of(certificate=certificate, private_key=key)
        address = await server.start()
        answer = await exchange(
            address, HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), context
        )
        assert b"200 OK" in answer
        await server.stop()
        for wrong in (str(tmp_path / "none.pem"), key):
            with pytest.raises(ConfigError, match="the certificate cannot be used"):
                await server_of(certificate=wrong, private_key=key).start()

    asyncio.run(run())
