"""Tests TLS on connections: modes, trust, and peers that stall.

Method: our remoting server and client over real sockets with certificates made for the test, Python's own TLS
client as a foreign peer, and stalls in the simulated world, where ten seconds pass at once.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from mqproof.impl.remoting.channel import ConnectError, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address, AsyncioNetwork, Connection, SimulatedNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.security.tls import HANDSHAKE_S, Tls, TlsMode, TlsNetwork
from mqproof.impl.runtime.security.tls_file import load, read
from mqproof.impl.runtime.serving import run
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.runtime.test_network import End

BODY = bytes(range(256)) * 8192  # 2 MiB: many TLS records


@dataclass(frozen=True)
class Files:
    """Create PEM files of one authority."""

    certificate: str
    key: str
    authority: str

    def properties(self, side: str, *more: str) -> str:
        lines = [f"tls.{side}.certPath={self.certificate}", f"tls.{side}.keyPath={self.key}"]
        return "\n".join([*lines, f"tls.{side}.trustCertPath={self.authority}", *more])


def made(folder: Path) -> Files:
    folder.mkdir()
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(folder / "key.pem")
    own.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return Files(*(str(folder / name) for name in ("cert.pem", "key.pem", "ca.pem")))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return made(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return made(tmp_path_factory.mktemp("tls") / "theirs")


def client_tls(*lines: str) -> Tls:
    return read("\n".join(["tls.enable=true", *lines]), "client")


def server_tls(files: Files, *lines: str) -> Tls:
    return read(files.properties("server", *lines), "server")


def echo(request: Command, _: object) -> Command:
    return request.answer(0, body=request.body)


Main = Callable[[Coroutine[Any, Any, None]], None]


def in_asyncio(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


async def serving(tls: Tls, scenario: Callable[[Address], Awaitable[None]]) -> None:
    """Run a scenario with a server, which ends in any case."""
    server = RemotingServer(TlsNetwork(AsyncioNetwork(), tls), echo)
    address = await server.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(60):
            await scenario(address)
    finally:
        await server.stop()


async def asked(address: Address, tls: Tls | None) -> bytes:
    """Return the answer that our client receives."""
    network = AsyncioNetwork()
    client = RemotingClient(TlsNetwork(network, tls) if tls else network)
    try:
        return (await client.invoke(address, new_request(1, body=BODY), 30.0)).body
    finally:
        await client.close()


@pytest.mark.parametrize("loop", [in_asyncio, run])
def test_tls_and_plain_clients_are_served_on_one_port(files: Files, loop: Main) -> None:
    async def scenario(address: Address) -> None:
        trusting, checking = client_tls(), client_tls(*_trust(files))
        answers = await asyncio.gather(*(asked(address, tls) for tls in (None, trusting, checking)))
        assert answers == [BODY] * 3

    loop(serving(server_tls(files), scenario))


def _trust(files: Files) -> tuple[str, str]:
    return "tls.client.authServer=true", f"tls.client.trustCertPath={files.authority}"


def test_an_enforcing_server_refuses_plain_clients(files: Files) -> None:
    async def scenario(address: Address) -> None:
        assert await asked(address, client_tls()) == BODY
        with pytest.raises(RemotingError):
            await asked(address, None)

    in_asyncio(serving(server_tls(files, "tls.server.mode=enforcing"), scenario))


@pytest.mark.parametrize("has_certificate", [True, False])
def test_a_server_without_tls_refuses_tls_clients(files: Files, has_certificate: bool) -> None:
    async def scenario(address: Address) -> None:
        assert await asked(address, None) == BODY
        with pytest.raises(ConnectError, match="the peer closed the connection during the handshake"):
            await asked(address, client_tls())

    disabled = server_tls(files, "tls.server.mode=disabled")
    in_asyncio(serving(disabled if has_certificate else Tls(), scenario))


def test_a_client_that_checks_does_not_trust_another_authority(files: Files, strangers: Files) -> None:
    async def scenario(address: Address) -> None:
        with pytest.raises(ConnectError, match="not trusted"):
            await asked(address, client_tls(*_trust(strangers)))
        assert await asked(address, client_tls()) == BODY

    in_asyncio(serving(server_tls(files), scenario))


def test_clients_show_certificates_where_that_is_required(files: Files, strangers: Files) -> None:
    async def scenario(address: Address) -> None:
        mine = client_tls(f"tls.client.certPath={files.certificate}", f"tls.client.keyPath={files.key}")
        assert await asked(address, mine) == BODY
        theirs = f"tls.client.certPath={strangers.certificate}", f"tls.client.keyPath={strangers.key}"
        for tls in (client_tls(), client_tls(*theirs)):
            with pytest.raises(RemotingError):
                await asked(address, tls)

    in_asyncio(serving(server_tls(files, "tls.server.need.client.auth=require"), scenario))


def test_a_handshake_in_single_bytes_works_and_tls_is_closed(files: Files) -> None:
    async def scenario(address: Address) -> None:
        context = ssl.create_default_context(cafile=files.authority)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        reader, writer = await asyncio.open_connection(*address)

        async def until_done(step: Callable[[], object]) -> object:
            while True:
                try:
                    result = step()
                except ssl.SSLWantReadError:
                    result = None
                for byte in outgoing.read():
                    writer.write(bytes([byte]))
                    await writer.drain()
                if result is not None:
                    return result
                incoming.write(await reader.read(65536))

        def handshake() -> bool:
            tls.do_handshake()
            return True

        await until_done(handshake)
        frame = b"\x00\x00\x00\x19" + b"\x01\x00\x00\x15" + b"\x00\x01" + bytes(19)
        await until_done(lambda: tls.write(frame))
        answer = await until_done(lambda: tls.read(65536))
        assert isinstance(answer, bytes)
        assert len(answer) > 8
        with pytest.raises(ssl.SSLWantReadError):
            tls.unwrap()
        writer.write(outgoing.read())
        assert await reader.read() != b""  # its own close notification, and then the end
        writer.close()
        await writer.wait_closed()

    in_asyncio(serving(server_tls(files), scenario))


@pytest.mark.parametrize("garbage", [b"\x16" * 100, b"\x16\x03\x01\x00\x05hello" + bytes(50)])
def test_invalid_data_after_the_first_byte_of_tls_ends_the_connection(files: Files, garbage: bytes) -> None:
    async def scenario(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(garbage)
        with suppress(ConnectionError):
            await reader.read()  # perhaps an alert, then the end
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        assert await asked(address, None) == BODY

    in_asyncio(serving(server_tls(files), scenario))


@pytest.mark.parametrize("said", [b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_a_peer_that_stalls_in_the_handshake_is_disconnected_in_time(files: Files, said: bytes) -> None:
    async def scenario() -> None:
        network = SimulatedNetwork()
        ends: list[End] = []

        def accept(connection: Connection) -> End:
            ends.append(End(connection))
            return ends[-1]

        await TlsNetwork(network, server_tls(files)).listen("server", 1, accept)
        near = End(await network.connect(Address("server", 1), End))
        near.connection.write(said)
        for _ in range(int(HANDSHAKE_S) - 1):
            await asyncio.sleep(1)
            near.connection.write(b"\x01" if len(said) > 1 else b"")
        assert not ends[0].gone.is_set()
        await asyncio.sleep(1.5)
        assert ends[0].gone.is_set()
        assert not ends[0].data

    run_simulated(scenario())


def test_a_server_that_stalls_in_the_handshake_is_a_timeout(files: Files) -> None:
    async def scenario() -> None:
        network = SimulatedNetwork()
        await network.listen("server", 1, End)
        client = RemotingClient(TlsNetwork(network, client_tls()))
        with pytest.raises(ConnectError, match="no connection"):
            await client.invoke(Address("server", 1), new_request(1), 20.0)
        await client.close()

    run_simulated(scenario())


# The properties file.


def test_the_file_names_the_trusted_certificates_and_our_own(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "tls.properties"
    path.write_text(
        files.properties("server", "tls.server.mode=enforcing", "tls.server.authClient=true")
        + "\n"
        + files.properties("client", "tls.enable=true", "tls.client.authServer=true")
    )
    tls = load(str(path))
    assert tls.mode is TlsMode.ENFORCING
    assert tls.server is not None
    assert tls.client is not None
    assert tls.server.verify_mode is tls.client.verify_mode is ssl.CERT_REQUIRED
    assert read("", "f") == Tls(TlsMode.PERMISSIVE, None, None)
    assert client_tls().client.verify_mode is ssl.CERT_NONE  # type: ignore[union-attr]  # it is enabled


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tls.server.mode=strict", "f:1: tls.server.mode is 'strict', disabled or permissive or enforcing"),
        ("\ntls.server.certPath=/nowhere", "f:2: tls.server.certPath and .keyPath cannot be used: "),
        ("tls.enable=true\ntls.client.authServer=true", "f: tls.client.trustCertPath is missing"),
        ("tls.enable=maybe", "f:1: tls.enable is 'maybe', true or false expected"),
        (
            "tls.enable=true\ntls.client.authServer=true\ntls.client.trustCertPath=/nowhere",
            "f:3: tls.client.trustCertPath cannot be used: ",
        ),
    ],
)
def test_an_unusable_file_is_an_error_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, "f")
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(("mode", "warnings"), [(0o600, 0), (0o644, 1)])
def test_a_private_key_that_other_users_can_read_is_logged(
    tmp_path: Path, mode: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = made(tmp_path / "keys")
    Path(files.key).chmod(mode)
    read(files.properties("server"), "f")
    assert len([one for one in caplog.messages if f"chmod 600 {files.key}" in one]) == warnings
