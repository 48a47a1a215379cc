"""Prepares the servers for a run of cases: topics, messages, offsets, a registered broker.

All names contain a token of the run, so that no other data is touched. The topics and groups remain after the
run; the registered broker disappears with its connection.
"""

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from string import Template
from typing import Final

from mqproof.conformance.wire.frames import Frame, MalformedError, encode
from mqproof.conformance.wire.model import COMMIT_OFFSET, NOT_SUPPORTED, Request, Server
from mqproof.conformance.wire.operations import administration, filter_servers, messages, name_server, offsets
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.runner import kept
from mqproof.conformance.wire.server_connection import (
    Address,
    ClosedError,
    Connection,
    SilentError,
    UnreachableError,
    connected,
)

MESSAGES: Final = 8
"""Number of messages in queue 0 of `$topic`, to which no case sends.

The group `$reader` has consumed three.
"""
_POLL_S: Final = 0.02
_KEEP_S: Final = 20.0
"""The minimum time between two registrations; servers close a connection that is idle for 120 s."""


class FixturesError(Exception):
    """The servers cannot be prepared. The message is one line."""


@dataclass(slots=True)
class Fixtures:
    servers: dict[Server, Address]
    """The servers that are available."""
    names: dict[str, str] = field(default_factory=dict)
    """Template names for every case; each case also gets its own `$case`."""
    _registered: Connection | None = None
    _kept_at: float = 0.0

    def of_case(self, number: int) -> dict[str, str]:
        """Return the names for one case; its group of live clients and its client id are its own."""
        live = f"{self.names['group']}_{number}"
        return {
            **self.names,
            "now": str(int(time.time() * 1000)),
            "live": live,
            "client": f"{live}@1",
            "scratch": f"{self.names['topic']}_scratch",
            "own": f"{self.names['topic']}_own{number}",
            "gone": f"{self.names['topic']}_gone{number}",
            "case": str(number),
        }

    def keep(self) -> None:
        """Register again before the name server forgets the broker.

        If the last connection was closed, a new one is used. A failure is ignored here: the cases that depend
        on the registration report it.
        """
        if self._registered is None or time.monotonic() - self._kept_at < _KEEP_S:
            return
        with suppress(SilentError, ClosedError, MalformedError, UnreachableError, FixturesError):
            try:
                self._register()
            except ClosedError:
                self._registered.close()
                address = self.servers[Server.NAME_SERVER]
                self._registered = Connection(address, self._registered.seconds_max)
                self._register()

    def close(self) -> None:
        if self._registered is not None:
            self._registered.close()

    def _register(self) -> None:
        assert self._registered is not None
        request = valid(name_server.REGISTER, brokerName="$ns_broker", brokerAddr="$ns_address")
        _call(self._registered, request, self.names)
        self._kept_at = time.monotonic()

    def _prepare_name_server(self, seconds_max: float) -> None:
        self._registered = Connection(self.servers[Server.NAME_SERVER], seconds_max)
        self._register()
        kept = valid(name_server.PUT_KV, namespace="$kv_namespace", value="kept")
        _call(self._registered, kept, self.names)

    def _prepare_broker(self, seconds_max: float) -> None:
        with connected(self.servers[Server.BROKER], seconds_max) as connection:
            self._fill_broker(connection)

    def _fill_broker(self, connection: Connection) -> None:
        text = _call(connection, valid(administration.BROKER_CONFIG), self.names).body.decode()
        for name, key in (("broker", "brokerName"), ("cluster", "brokerClusterName")):
            found = re.search(rf"^{key}=(.*)$", text, re.MULTILINE)
            self.names[name] = found[1] if found else ""
        for topic in ("$topic", "$other", "$sink"):
            create = valid(administration.CREATE_TOPIC, topic=topic, readQueueNums="4", writeQueueNums="4")
            _call(connection, create, self.names)
        body = administration.CREATE_GROUP.body
        assert isinstance(body, str)
        for group in ("$group", "$reader"):
            create = valid(administration.CREATE_GROUP, body.replace("$scratch", group))
            _call(connection, create, self.names)
        for number in range(MESSAGES):
            properties = f"UNIQ_KEY\x01${{key}}{number}\x02KEYS\x01$key\x02TAGS\x01TagA\x02"
            sent = _call(connection, valid(messages.SEND_V2, b="$topic", e="0", i=properties), self.names)
            if number == 0:
                self.names["msg_id"] = sent.fields["msgId"]
                self.names["offset"] = kept(sent, COMMIT_OFFSET)
        _call(connection, valid(offsets.UPDATE_OFFSET, consumerGroup="$reader", topic="$topic"), self.names)
        self._prepare_half(connection)

    def _prepare_half(self, connection: Connection) -> None:
        """Send a message that waits for its commit, if the broker has transactions."""
        half = f"TRAN_MSG\x01true\x02PGROUP\x01$producer\x02UNIQ_KEY\x01{self.names['half_key']}\x02"
        request = valid(messages.SEND_V2, f="4", i=half)
        answer = _answer(connection, request, self.names)
        there = answer.code == 0
        self.names["half_offset"] = kept(answer, COMMIT_OFFSET) if there else "0"
        self.names["half_queue_offset"] = answer.fields["queueOffset"] if there else "0"

    def _find_filter_server(self, seconds_max: float) -> None:
        """Find the broker's filter server in the route of the topic `$filtered`, and send its messages."""
        if len(self.servers) < 2:
            return
        with connected(self.servers[Server.BROKER], seconds_max) as connection:
            create = valid(
                administration.CREATE_TOPIC, topic="$filtered", readQueueNums="1", writeQueueNums="1"
            )
            _call(connection, create, self.names)
            found = re.search(
                rf'"filterServerTable":\{{"{re.escape(str(self.servers[Server.BROKER]))}":\["([^"]+)"',
                self._route(seconds_max),
            )
            if found is None:
                return
            self.servers[Server.FILTER_SERVER] = Address.parse(found[1])
            for body in filter_servers.BODIES:
                _call(connection, valid(messages.SEND_V2, body, b="$filtered", e="0"), self.names)

    def _route(self, seconds_max: float) -> str:
        """Return the route of the topic `$filtered`; empty if the broker does not register it in time."""
        end = time.monotonic() + seconds_max
        with connected(self.servers[Server.NAME_SERVER], seconds_max) as connection:
            while time.monotonic() < end:
                answer = _answer(connection, valid(name_server.ROUTE, topic="$filtered"), self.names)
                if answer.code == 0:
                    return answer.body.decode()
                time.sleep(_POLL_S)
        return ""


@contextmanager
def fixtures(addresses: list[Address], seconds_max: float) -> Iterator[Fixtures]:
    """Prepare the servers; each address may be a name server's or a broker's.

    A single name server's broker is discovered.

    Raises:
        UnreachableError, FixturesError.
    """
    made = Fixtures(_servers(addresses, seconds_max))
    token = secrets.token_hex(4)
    number = int(token[:4], 16)
    made.names.update(
        topic=f"wire_{token}",
        other=f"wire_{token}_other",
        sink=f"wire_{token}_sink",
        group=f"wire_group_{token}",
        reader=f"wire_reader_{token}",
        producer=f"wire_producer_{token}",
        key=f"wire-key-{token}-",
        now=str(int(time.time() * 1000)),
        scratch=f"wire_{token}_scratch",
        half_key=f"wire-half-{token}",
        filtered=f"wire_{token}_filtered",
        filter_address=f"127.2.{number >> 8}.{number & 255}:1",
        reply_properties="CORRELATION_ID\x01wire\x02REPLY_TO_CLIENT\x01absent\x02TTL\x013000\x02MSG_TYPE\x01reply\x02",
        broker="",
        cluster="",
        ns_cluster=f"wire_cluster_{token}",
        ns_broker=f"wire_broker_{token}",
        ns_address=f"127.1.{number >> 8}.{number & 255}:1",
        ns_topic=f"wire_ns_{token}",
        kv_namespace=f"wire_{token}",
    )
    prepare = {Server.NAME_SERVER: made._prepare_name_server, Server.BROKER: made._prepare_broker}
    try:
        for server, address in made.servers.items():
            try:
                prepare[server](seconds_max)
            except (SilentError, ClosedError, MalformedError, FixturesError) as error:
                raise FixturesError(f"{server} {address}: {error}") from None
        made._find_filter_server(seconds_max)
        yield made
    finally:
        made.close()


def _servers(addresses: list[Address], seconds_max: float) -> dict[Server, Address]:
    found: dict[Server, Address] = {}
    for address in addresses:
        with connected(address, seconds_max) as connection:
            try:
                route = _answer(connection, valid(name_server.ROUTE, topic="wire_absent"), {})
                is_broker = route.code == NOT_SUPPORTED
                found[Server.BROKER if is_broker else Server.NAME_SERVER] = address
                if not is_broker and len(addresses) == 1:
                    info = _answer(connection, valid(name_server.CLUSTER_INFO), {})
                    # Broker ids may be bare or quoted; 0 is a master.
                    if match := re.search(rb'[{,]"?0"?:"([^"]+)"', info.body):
                        found[Server.BROKER] = Address.parse(match[1].decode())
            except (SilentError, ClosedError, MalformedError, ValueError) as error:
                raise FixturesError(f"{address}: {error}") from None
    return found


def _call(connection: Connection, request: Request, names: dict[str, str]) -> Frame:
    """Return the answer, which must be a success.

    Raises FixturesError, and the errors of `Connection.answer`.
    """
    answer = _answer(connection, request, names)
    if answer.code != 0:
        raise FixturesError(f"request {request.code} was answered with code {answer.code}: {answer.remark}")
    return answer


def _answer(connection: Connection, request: Request, names: dict[str, str]) -> Frame:
    opaque = 1
    fields = {name: Template(value).substitute(names) for name, value in request.fields.items()}
    body = request.body
    data = body if isinstance(body, bytes) else Template(body).substitute(names).encode()
    connection.write(encode(Frame(request.code, opaque, fields=fields, body=data)))
    return connection.answer(opaque)
