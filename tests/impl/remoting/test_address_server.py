"""Tests the address server over a simulated network.

Source: docs/reference/protocol/clients.md, "Address server".
"""

import asyncio
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mqproof.impl.remoting.address_server import AddressServer, AddressServerError, _Answer, parse
from mqproof.impl.runtime.network import Address, AsyncioNetwork, Connection, SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

WHERE = Address("10.0.0.7", 8080)


class WebServer:
    """Answers every request with `answer` and closes the connection; with None it stays silent."""

    def __init__(
        self, connection: Connection, answer: Callable[[], bytes | None], asked: list[bytes]
    ) -> None:
        self._connection = connection
        self._answer = answer
        self._asked = asked

    def received(self, data: bytes) -> None:
        self._asked.append(data)
        answer = self._answer()
        if answer is not None:
            self._connection.write(answer)
            self._connection.close()

    def closed(self) -> None: ...
    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...


async def web_server(
    network: SimulatedNetwork, answer: Callable[[], bytes | None], asked: list[bytes] | None = None
) -> None:
    """Run a web server at WHERE that appends its requests to `asked`."""
    requests = [] if asked is None else asked
    await network.listen(*WHERE, lambda connection: WebServer(connection, answer, requests))


def ok(text: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + text.encode()


def fetch(answer: bytes | None) -> tuple[tuple[Address, ...], list[bytes]]:
    loop = SimulatedLoop()
    asked: list[bytes] = []

    async def main() -> tuple[Address, ...]:
        network = SimulatedNetwork()
        await web_server(network, lambda: answer, asked)
        return await AddressServer(WHERE, "/rocketmq/nsaddr").fetch(network)

    return run_simulated(main(), loop), asked


def test_the_answer_is_a_list_of_addresses() -> None:
    found, asked = fetch(ok("10.0.0.1:9876;10.0.0.2:9876\n"))
    assert found == (Address("10.0.0.1", 9876), Address("10.0.0.2", 9876))
    assert asked == [b"GET /rocketmq/nsaddr HTTP/1.0\r\nHost: 10.0.0.7:8080\r\nConnection: close\r\n\r\n"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "no answer within 3 s"),
        (b"", "not the start of an HTTP response"),
        (b"SSH-2.0\r\n\r\n", "not the start of an HTTP response"),
        (b"HTTP/1.0 404 Not Found\r\n\r\nhost:1", "status 404"),
        (ok(""), "0 addresses"),
        (ok("<html>"), "is not an address"),
        (ok(";".join(f"h:{port}" for port in range(200))), "200 addresses"),
        (ok("x" * 100_000), "more than 65536 bytes"),
        (b"HTTP/1.0 200 OK\r\n\r\n\xff", "not ASCII"),
    ],
)
def test_any_other_answer_is_one_error_that_names_the_server(answer: bytes | None, reason: str) -> None:
    with pytest.raises(AddressServerError, match=rf"^http://10.0.0.7:8080/rocketmq/nsaddr: .*{reason}"):
        fetch(answer)


def test_a_real_web_server_returns_the_addresses() -> None:
    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # the library's name
            self.send_response(200 if self.path == "/rocketmq/nsaddr" else 404)
            self.send_header("Content-Length", "14")
            self.end_headers()
            self.wfile.write(b"10.0.0.1:9876\n")

        def log_message(self, format: str, *_: object) -> None: ...  # noqa: A002  # the library's name

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = parse(f"http://127.0.0.1:{server.server_port}/rocketmq/nsaddr")
        assert isinstance(there, AddressServer)
        assert asyncio.run(there.fetch(AsyncioNetwork())) == (Address("10.0.0.1", 9876),)
        with pytest.raises(AddressServerError, match="status 404"):
            asyncio.run(AddressServer(there.address, "/").fetch(AsyncioNetwork()))
        server.shutdown()


def test_an_unreachable_address_server_is_the_same_kind_of_error() -> None:
    async def main() -> None:
        await AddressServer(WHERE, "/").fetch(SimulatedNetwork())

    with pytest.raises(AddressServerError, match="no server listens"):
        asyncio.run(main())


def test_name_servers_are_named_by_addresses_or_by_a_url() -> None:
    assert parse("a:1; b:2") == (Address("a", 1), Address("b", 2))
    assert parse("http://web:8080/rocketmq/nsaddr-unit?nofix=1") == AddressServer(
        Address("web", 8080), "/rocketmq/nsaddr-unit?nofix=1"
    )
    assert str(parse("http://web")) == "http://web:80/"


@pytest.mark.parametrize(
    "text", ["ftp://web/x", "http:///x", "http://web:port/", "http://web/\r\nX: y", "web"]
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|Port|port"):
        parse(text)


def test_bytes_after_a_refused_answer_are_ignored() -> None:
    async def main() -> None:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        receiver = _Answer(answer)
        for _ in range(3):
            receiver.received(bytes(65536))
        receiver.closed()
        with pytest.raises(ValueError, match="more than 65536 bytes"):
            await answer

    run_simulated(main(), SimulatedLoop())


@pytest.mark.parametrize("count", [0, 1, 100, 101])
def test_an_answer_has_1_to_100_addresses(count: int) -> None:
    answer = ok(";".join(f"10.0.0.1:{port}" for port in range(1, count + 1)))
    if 1 <= count <= 100:
        assert len(fetch(answer)[0]) == count
    else:
        with pytest.raises(AddressServerError, match=f"{count} addresses, 1 to 100 expected"):
            fetch(answer)


@pytest.mark.parametrize("extra", [0, 1])
def test_an_answer_has_at_most_64_kib(extra: int) -> None:
    start = ok("10.0.0.1:9876;")
    answer = start + b";" * (64 * 1024 - len(start) + extra)
    if extra:
        with pytest.raises(AddressServerError, match="an answer of more than 65536 bytes"):
            fetch(answer)
    else:
        assert fetch(answer)[0] == (Address("10.0.0.1", 9876),)


@pytest.mark.parametrize(("delay_s", "is_answered"), [(2.9, True), (3.1, False)])
def test_an_answer_arrives_within_3_s(delay_s: float, is_answered: bool) -> None:
    class SlowServer(WebServer):
        def received(self, data: bytes) -> None:
            asyncio.get_running_loop().call_later(delay_s, super().received, data)

    async def main() -> tuple[Address, ...]:
        network = SimulatedNetwork()
        await network.listen(
            *WHERE, lambda connection: SlowServer(connection, lambda: ok("10.0.0.1:9876"), [])
        )
        return await AddressServer(WHERE, "/").fetch(network)

    if is_answered:
        assert run_simulated(main()) == (Address("10.0.0.1", 9876),)
    else:
        with pytest.raises(AddressServerError, match="no answer within 3 s"):
            run_simulated(main())


@pytest.mark.parametrize(
    ("url", "address", "path"),
    [
        ("http://h", Address("h", 80), "/"),
        ("http://h:8080/a", Address("h", 8080), "/a"),
        ("http://h/a?b=c", Address("h", 80), "/a?b=c"),
        ("http://h?b=c", Address("h", 80), "/?b=c"),
    ],
)
def test_the_port_and_the_path_of_a_url_have_defaults(url: str, address: Address, path: str) -> None:
    assert parse(url) == AddressServer(address, path)
