"""The address server: a web server that returns the addresses of the name servers, as `host:port;host:port`.

Brokers and clients query it periodically, so name servers can be added or removed without any restart. See
docs/reference/protocol/clients.md, "Address server". This module speaks the small part of HTTP/1.0 that it
needs, over the network interface of the runtime.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mqproof.impl.runtime.network import Address, Network

FETCH_INTERVAL_S: Final = 120.0

_TIMEOUT_S: Final = 3.0
_ANSWER_BYTES_MAX: Final = 64 * 1024
_ADDRESSES_MAX: Final = 100


class AddressServerError(Exception):
    """The address server returned no usable address. The message says which server and why."""


@dataclass(frozen=True, slots=True)
class AddressServer:
    """The address and path of an address server."""

    address: Address
    path: str
    """The path from the slash on, with a query if there is one."""

    def __str__(self) -> str:
        return f"http://{self.address}{self.path}"

    async def fetch(self, network: Network) -> tuple[Address, ...]:
        """Return the current name servers, at least one.

        Raises:
            AddressServerError: no response within 3 s, or none with a valid number of addresses.
        """
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = await self._get(network)
            found = parse_addresses(_text(answer))
        except TimeoutError:
            raise AddressServerError(f"{self}: no answer within {_TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise AddressServerError(f"{self}: {error.strerror or error}") from None
        except ValueError as error:
            raise AddressServerError(f"{self}: {error}") from None
        if not 0 < len(found) <= _ADDRESSES_MAX:
            raise AddressServerError(f"{self}: {len(found)} addresses, 1 to {_ADDRESSES_MAX} expected")
        return found

    async def _get(self, network: Network) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        connection = await network.connect(self.address, lambda _: _Answer(answer))
        try:
            request = f"GET {self.path} HTTP/1.0\r\nHost: {self.address}\r\nConnection: close\r\n\r\n"
            connection.write(request.encode())
            return await answer
        finally:
            connection.close()


NameServers = Sequence[Address] | AddressServer
"""The name servers: either their addresses, or the address server that returns them."""


def parse(text: str) -> tuple[Address, ...] | AddressServer:
    """Parse `HOST:PORT;HOST:PORT`, or the URL of an address server.

    Raises:
        ValueError: the text is neither; the message says what is wrong.
    """
    if "://" not in text:
        return parse_addresses(text)
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or not text.isascii() or not text.isprintable():
        raise ValueError(f"{text!r} is not the URL of an address server, http://HOST/PATH expected")
    query = f"?{parts.query}" if parts.query else ""
    return AddressServer(Address(parts.hostname, parts.port or 80), (parts.path or "/") + query)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse `HOST:PORT`, several separated by `;`. Raises ValueError."""
    return tuple(Address.parse(part) for part in text.split(";") if part.strip())


class _Answer:
    """Receives everything up to the end of the connection."""

    def __init__(self, answer: asyncio.Future[bytes]) -> None:
        self._answer = answer
        self._data = bytearray()

    def received(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > _ANSWER_BYTES_MAX and not self._answer.done():
            self._answer.set_exception(ValueError(f"an answer of more than {_ANSWER_BYTES_MAX} bytes"))

    def closed(self) -> None:
        if not self._answer.done():
            self._answer.set_result(bytes(self._data))

    def write_paused(self) -> None:
        """Do nothing: a request of one line needs no flow control."""

    def write_resumed(self) -> None: ...


def _text(answer: bytes) -> str:
    """Return the body of a successful response. Raises ValueError for any other response."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if not (blank and status[0].startswith(b"HTTP/1.") and len(status) > 1):
        raise ValueError(f"{answer[:40]!r} is not the start of an HTTP response")
    if status[1] != b"200":
        raise ValueError(f"status {status[1].decode(errors='replace')}, 200 expected")
    if not body.isascii():
        raise ValueError("a body that is not ASCII text")
    return body.decode()
