"""Answers of an address server: which ones name the name servers, which ones are errors, and when.

See docs/reference/protocol/clients.md, "Address server".
"""

import asyncio
from typing import Final

from mqproof.conformance.adapters.inspections.scripted_names import ScriptedAddresses
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import address_server
from mqproof.impl.remoting.address_server import AddressServer, AddressServerError
from mqproof.impl.runtime.network import Address, Connection

_WEB: Final = "10.0.9.3"
_ADDRESSES_MAX: Final = 100
_BYTES_MAX: Final = 64 << 10
_TIMEOUT_S: Final = 3.0
_OK: Final = b"HTTP/1.0 200 OK\r\n\r\n"
_ONE: Final = (Address("10.0.0.1", 9876),)
_SOUND: Final = (
    (_OK + b"10.0.0.1:9876", _ONE),
    (_OK + b"10.0.0.1:9876;", _ONE),
    (_OK + b";10.0.0.1:9876;10.0.0.2:1", (*_ONE, Address("10.0.0.2", 1))),
    (b"HTTP/1.1 200\r\nServer: x\r\nContent-Length: 13\r\n\r\n10.0.0.1:9876", _ONE),
    (_OK + b"10.0.0.1:9876".ljust(_BYTES_MAX - len(_OK), b";"), _ONE),
    (_OK + b"10.0.0.1:9876;" * _ADDRESSES_MAX, _ONE * _ADDRESSES_MAX),
)
_WRONG: Final = (
    b"", _OK, _OK + b";;", _OK + b"10.0.0.1", _OK + b"10.0.0.1:x", _OK + b"10.0.0.1:9876\xff",
    _OK[:-2] + b"10.0.0.1:9876", b"10.0.0.1:9876", b"HTTP/2 200 OK\r\n\r\n10.0.0.1:9876",
    b"HTTP/1.0\r\n\r\n10.0.0.1:9876", b"HTTP/1.0 404 No\r\n\r\n10.0.0.1:9876",
    b"HTTP/1.0 500 No\r\n\r\n10.0.0.1:9876", b"HTTP/1.0 2000 OK\r\n\r\n10.0.0.1:9876",
    _OK + b"10.0.0.1:9876;" * (_ADDRESSES_MAX + 1),
    _OK + b"10.0.0.1:9876".ljust(_BYTES_MAX - len(_OK) + 1, b";"),
)  # fmt: skip
_TEXTS: Final = (
    ("http://web/a?b=c", AddressServer(Address("web", 80), "/a?b=c")),
    ("http://web:81", AddressServer(Address("web", 81), "/")),
    ("http://10.0.0.1:8080/rocketmq/nsaddr", AddressServer(Address("10.0.0.1", 8080), "/rocketmq/nsaddr")),
    ("10.0.0.1:9876", _ONE),
    ("10.0.0.1:9876;b:1", (*_ONE, Address("b", 1))),
)
_NO_TEXTS: Final = (
    "https://web/a",
    "http://",
    "http:///a",
    "http://web/\u00e4",
    "http://web/a\n",
    "ftp://web/a",
    "a",
)


async def address_servers(site: Site) -> None:
    site.rule = chapters.NAME_SERVER
    network = site.cluster.internet.machine(HOST)
    server = AddressServer(Address(_WEB, 80), "/x")
    site.compare("the text of a server", f"http://{_WEB}:80/x", str(server))

    async def fetched() -> object:
        try:
            return await server.fetch(network)
        except AddressServerError as error:
            return str(server) in str(error)

    site.compare("whether no server is an error that names it", True, await fetched())
    web = await ScriptedAddresses(site, _WEB).open()
    for answer, expected in _SOUND:
        web.answer = answer
        site.compare(f"the addresses in {answer[-40:]!r}", expected, await fetched())
    for answer in _WRONG:
        web.answer = answer
        site.compare(f"whether {answer[-40:]!r} is an error that names the server", True, await fetched())
    await _late(site)
    for text, found in _TEXTS:
        site.compare(f"what {text!r} names", found, address_server.parse(text))
    for text in _NO_TEXTS:
        try:
            site.report(f"{text!r} names {address_server.parse(text)}, expected an error")
        except ValueError:
            continue


async def _late(site: Site) -> None:
    """A server has 3 s for its answer, until it ends the connection."""
    network, loop = site.cluster.internet.machine(HOST), asyncio.get_running_loop()
    for after_s, is_error in ((_TIMEOUT_S - 0.1, False), (_TIMEOUT_S + 0.1, True)):
        web = _Slow(after_s)
        host = f"10.0.9.{round(after_s * 10)}"
        await site.cluster.internet.machine(host).listen(host, 80, web.accept)
        began_s, failed = loop.time(), False
        try:
            await AddressServer(Address(host, 80), "/").fetch(network)
        except AddressServerError:
            failed = True
        site.compare(f"whether an answer after {after_s} s is an error", is_error, failed)
        took_s = round(loop.time() - began_s, 1)
        site.compare("the time of the request", min(after_s, _TIMEOUT_S), took_s)


class _Slow:
    """A server that answers each connection after a time, in two parts."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s

    def accept(self, connection: Connection) -> "_Slow":
        loop = asyncio.get_running_loop()
        connection.write(_OK)
        loop.call_later(self._after_s, connection.write, b"10.0.0.1:9876")
        loop.call_later(self._after_s, connection.close)
        return self

    def received(self, data: bytes) -> None: ...

    def write_paused(self) -> None: ...

    def write_resumed(self) -> None: ...

    def closed(self) -> None: ...


ADDRESS_SERVERS: Final = Inspection("address servers", address_servers)
