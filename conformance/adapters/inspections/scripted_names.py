"""A scripted name server and a scripted address server, which record each request of a broker."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from mqproof.conformance.adapters.inspections.site import CODES, Site
from mqproof.conformance.wire.frames import RESPONSE, Frame, encode, take
from mqproof.impl.runtime.network import Address, Connection

_PORT: Final = 9876
_WEB_PORT: Final = 80


class _Line:
    """One connection of a broker."""

    def __init__(self, connection: Connection, on_data: Callable[[Connection, bytearray], None]) -> None:
        self._connection, self._on_data, self._buffer = connection, on_data, bytearray()

    def received(self, data: bytes) -> None:
        self._buffer += data
        self._on_data(self._connection, self._buffer)

    def write_paused(self) -> None:
        """Do nothing."""

    def write_resumed(self) -> None:
        """Do nothing."""

    def closed(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class ScriptedNames:
    """A name server on a machine of its own."""

    site: Site
    host: str
    master: str = ""
    """The address of the master that it knows; empty for none."""
    ha_address: str = ""
    """Where that master accepts slaves."""
    is_silent: bool = False
    """Whether it answers nothing."""
    code: int = 0
    """The code of each answer."""
    cluster: bytes | None = None
    """The body of each answer about the cluster; None for the true one."""
    requests: list[tuple[str, Frame]] = field(default_factory=list)
    """The host of each broker with its request, in their order."""

    async def open(self) -> "ScriptedNames":
        network = self.site.cluster.internet.machine(self.host)
        await network.listen(self.host, _PORT, lambda connection: _Line(connection, self._received))
        return self

    def take(self, name: str, host: str) -> list[Frame]:
        """Return the requests of that name of a broker, and forget them."""
        found = [each for of, each in self.requests if (of, each.code) == (host, CODES[name])]
        self.requests = [one for one in self.requests if (one[0], one[1].code) != (host, CODES[name])]
        return found

    def _received(self, connection: Connection, buffer: bytearray) -> None:
        while request := take(buffer):
            self.requests.append((connection.remote.host, request))
            if not self.is_silent:
                fields, body = self._answer(request)
                connection.write(encode(Frame(self.code, request.opaque, RESPONSE, fields, body)))

    def _answer(self, request: Frame) -> tuple[dict[str, str], bytes]:
        if request.code == CODES["REGISTER_BROKER"]:
            fields = {"masterAddr": self.master, "haServerAddr": self.ha_address} if self.master else {}
            return fields, b""
        if request.code == CODES["GET_BROKER_CLUSTER_INFO"] and self.cluster is not None:
            return {}, self.cluster
        if request.code == CODES["GET_BROKER_CLUSTER_INFO"]:
            addresses = {"0": self.master} if self.master else {"1": "10.0.9.99:10911"}
            broker: dict[str, Any] = {"brokerName": "broker-a", "cluster": "c", "brokerAddrs": addresses}
            return {}, json.dumps({"brokerAddrTable": {"broker-a": broker}, "clusterAddrTable": {}}).encode()
        return {}, b""


@dataclass(slots=True)
class ScriptedAddresses:
    """An address server, which answers each request with the same bytes."""

    site: Site
    host: str
    answer: bytes = b""
    requests: list[bytes] = field(default_factory=list)

    async def open(self) -> "ScriptedAddresses":
        network = self.site.cluster.internet.machine(self.host)
        await network.listen(self.host, _WEB_PORT, lambda connection: _Line(connection, self._received))
        return self

    def lists(self, *servers: ScriptedNames, status: str = "200 OK") -> None:
        """Answer with the addresses of these name servers."""
        text = ";".join(str(Address(each.host, _PORT)) for each in servers)
        self.answer = f"HTTP/1.0 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()

    def _received(self, connection: Connection, buffer: bytearray) -> None:
        if buffer.endswith(b"\r\n\r\n"):
            self.requests.append(bytes(buffer))
            buffer.clear()
            connection.write(self.answer)
            connection.close()
