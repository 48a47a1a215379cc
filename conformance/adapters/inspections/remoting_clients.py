"""Clients of scripted servers: time limits, lost connections, strange answers, and the end.

See docs/reference/protocol/framing.md, "Remoting frame".
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mqproof.conformance.adapters.inspections.accounts import SECRET, signed
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, encode, take
from mqproof.impl.remoting.channel import Channel, Limits, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address, Connection

_HOST: Final = "10.0.1.7"
_SERVER: Final = "10.0.9.21"
_SHORTLY_S: Final = 0.01
_CODE: Final = 4711
_Outcome = tuple[str, str, float]
"""The name and the text of an error, or the code of the answer, and the time in seconds."""


class _Script:
    """A server that keeps what it receives, and answers as the inspection says."""

    def __init__(self, site: Site, port: int, answer: "Callable[[_Peer, Frame], None]") -> None:
        self.answer = answer
        self.peers: list[_Peer] = []
        self.got: list[Frame] = []
        self.address = Address(_SERVER, port)
        self._network = site.cluster.internet.machine(_SERVER)

    async def open(self) -> "_Script":
        await self._network.listen(*self.address, self._accept)
        return self

    def _accept(self, connection: Connection) -> "_Peer":
        self.peers.append(_Peer(self, connection))
        return self.peers[-1]


class _Peer:
    """One connection of a scripted server."""

    def __init__(self, script: _Script, connection: Connection) -> None:
        self.script = script
        self.connection = connection
        self.is_closed = False
        self._buffer = bytearray()

    def reply(self, request: Frame, code: int = 0) -> None:
        self.connection.write(encode(Frame(code, request.opaque, RESPONSE)))

    def received(self, data: bytes) -> None:
        self._buffer += data
        while frame := take(self._buffer):
            self.script.got.append(frame)
            self.script.answer(self, frame)

    def closed(self) -> None:
        self.is_closed = True

    def write_paused(self) -> None: ...

    def write_resumed(self) -> None: ...


def _nothing(_peer: _Peer, _request: Frame) -> None:
    """Never answer."""


def _success(peer: _Peer, request: Frame) -> None:
    peer.reply(request)


def _request() -> Command:
    return new_request(_CODE, {"a": "b"}, b"body")


async def _outcome(work: Coroutine[Any, Any, Command | None]) -> _Outcome:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        answer = await work
    except RemotingError as error:
        return type(error).__name__, str(error), round(loop.time() - began_s, 3)
    return "", str(answer.code) if answer is not None else "", round(loop.time() - began_s, 3)


async def remoting_clients(site: Site) -> None:
    site.rule = chapters.REMOTING_FRAME
    for part in (_timeouts, _connecting, _answers, _from_servers, _closing):
        await part(site)


def _client(site: Site, **more: Any) -> RemotingClient:
    return RemotingClient(site.cluster.internet.machine(_HOST), **more)


async def _timeouts(site: Site) -> None:
    """Each request has a limit of its own; a late answer changes nothing."""
    script, client = await _Script(site, 1, _nothing).open(), _client(site)
    found = await asyncio.gather(
        *(_outcome(client.invoke(script.address, _request(), limit)) for limit in (3.0, 1.0, 2.0, 0.25, 1.0))
    )
    expected = [
        ("RequestTimeoutError", f"no answer from {script.address} within {limit} ms", limit / 1000)
        for limit in (3000, 1000, 2000, 250, 1000)
    ]
    site.compare("the requests without an answer", expected, found)
    for frame in script.got:
        script.peers[0].reply(frame, 7)
    script.answer = _success
    site.compare(
        "a request after late answers",
        ("", "0", 0.0),
        await _outcome(client.invoke(script.address, _request(), 1)),
    )
    site.compare("the connections", 1, len(script.peers))
    site.compare("the requests", [(_CODE, {"a": "b"}, b"body", 0)] * 6, [
        (each.code, dict(each.fields), each.body, each.flag) for each in script.got])  # fmt: skip
    site.compare("the requests with a number of their own", 6, len({each.opaque for each in script.got}))
    script.answer = _nothing
    few = _client(site, limits=Limits(pending_max=2))
    waiting = [asyncio.create_task(_outcome(few.invoke(script.address, _request(), s))) for s in (1, 2)]
    await asyncio.sleep(_SHORTLY_S)
    text = f"2 requests to {script.address} are already unanswered"
    third = await _outcome(few.invoke(script.address, _request(), 5))
    site.compare("a request beyond the limit", ("ConnectError", text, 0.0), third)
    await waiting[0]
    script.answer = _success
    found_then = await _outcome(few.invoke(script.address, _request(), 5))
    site.compare("a request when one is over", ("", "0", 0.0), found_then)
    await waiting[1]
    await client.close()
    await few.close()


async def _connecting(site: Site) -> None:
    """A connection has 3 s, and the time of its request; requests at the same time share it."""
    internet, links = site.cluster.internet, ((_HOST, _SERVER), (_SERVER, _HOST))
    connected: list[Address] = []
    script, client = await _Script(site, 2, _nothing).open(), _client(site, on_connected=connected.append)

    def without(limit_ms: int) -> _Outcome:
        return "ConnectError", f"no connection to {script.address} within {limit_ms} ms", limit_ms / 1000

    internet.cut(links)
    found = await asyncio.gather(
        _outcome(client.invoke(script.address, _request(), 10)),
        _outcome(client.invoke(script.address, _request(), 1)),
        _outcome(client.send_oneway(script.address, _request())),
    )
    site.compare("requests without a connection", [without(3000), without(1000), without(3000)], found)
    asyncio.get_running_loop().call_later(1.5, internet.heal, links)
    found = await asyncio.gather(
        _outcome(client.invoke(script.address, _request(), 2.5)),
        _outcome(client.invoke(script.address, _request(), 1)),
        _outcome(client.invoke(script.address, _request(), 4)),
    )
    late = [
        ("RequestTimeoutError", f"no answer from {script.address} within {left} ms", total)
        for left, total in ((500, 2.5), (2000, 4.0))
    ]
    site.compare("requests with a late connection", [late[0], without(1000), late[1]], found)
    site.compare("the connections", (1, [script.address]), (len(script.peers), connected))
    nowhere = Address(_SERVER, 9)
    text = f"no connection to {nowhere}: no server listens on {nowhere}"
    refused = await _outcome(client.invoke(nowhere, _request(), 5))
    site.compare("a request to no server", ("ConnectError", text, 0.0), refused)
    site.compare(
        "which servers are connected",
        (True, False),
        (client.is_connected(script.address), client.is_connected(nowhere)),
    )
    # All tasks of a program are cancelled, as at Ctrl-C: none of them goes on with an error of the client.
    internet.cut(links)
    other = _client(site)
    before = asyncio.all_tasks()
    task = asyncio.create_task(other.invoke(script.address, _request(), 5))
    await asyncio.sleep(_SHORTLY_S)
    for each in sorted(asyncio.all_tasks() - before, key=lambda each: each is task):
        each.cancel()
    await asyncio.wait([task])
    site.compare("whether a cancelled request is cancelled", True, task.cancelled())
    internet.heal(links)
    await client.close()


async def _answers(site: Site) -> None:
    """Of two answers the first one counts; a frame that is none ends the connection."""
    connected: list[Address] = []

    def twice(peer: _Peer, request: Frame) -> None:
        data = b"".join(
            encode(Frame(code, opaque, RESPONSE))
            for code, opaque in ((5, request.opaque + 1), (6, request.opaque), (7, request.opaque))
        )
        peer.connection.write(data[:9])
        asyncio.get_running_loop().call_soon(peer.connection.write, data[9:])

    script, client = await _Script(site, 3, twice).open(), _client(site, on_connected=connected.append)
    for _ in range(3):
        found = await _outcome(client.invoke(script.address, _request(), 1))
        site.compare("the first of two answers", ("", "6", 0.0), found)
    site.compare("the connections", 1, len(script.peers))
    script.answer = lambda peer, _: peer.connection.write(b"\0\0\0\1x")
    lost = ("ConnectionLostError", f"the connection to {script.address} was lost", 0.0)
    found = await _outcome(client.invoke(script.address, _request(), 1))
    site.compare("the answer that is no frame", lost, found)
    await asyncio.sleep(_SHORTLY_S)
    site.compare("whether its connection is closed", True, script.peers[0].is_closed)
    site.compare("whether the server is connected", False, client.is_connected(script.address))
    script.answer = lambda peer, _: peer.connection.abort()
    found = await _outcome(client.invoke(script.address, _request(), 1))
    site.compare("the end of a connection instead of an answer", lost, found)
    script.answer = _success
    found = await _outcome(client.invoke(script.address, _request(), 1))
    site.compare("the next request", ("", "0", 0.0), found)
    site.compare("the connections at the end", ([script.address] * 3, 3), (connected, len(script.peers)))
    key = "a-key-of-7"
    client.credentials = Credentials(key, SECRET, "token")
    await client.invoke(script.address, _request(), 1)
    await client.send_oneway(script.address, _request())
    await asyncio.sleep(_SHORTLY_S)
    expected = signed({"a": "b"}, b"body", key, SECRET, SecurityToken="token")
    site.compare(
        "the fields of signed requests", [expected] * 2, [dict(each.fields) for each in script.got[-2:]]
    )
    await client.close()


async def _from_servers(site: Site) -> None:
    """A client answers the requests of a server, except those without an answer."""
    seen: list[Command] = []

    def handle(request: Command, _channel: Channel) -> Command:
        seen.append(request)
        return request.answer(ResponseCode.CONSUMER_NOT_ONLINE, {"c": "d"}, b"text", "why")

    for own in (None, handle):
        script = await _Script(site, 5 + bool(own), _nothing).open()
        client = _client(site, handle=own) if own else _client(site)
        await client.send_oneway(script.address, new_request(_CODE, oneway=True))
        await asyncio.sleep(_SHORTLY_S)
        script.peers[0].connection.write(
            encode(Frame(40, 9, ONEWAY, {"x": "y"})) + encode(Frame(307, 8, 0, {"x": "y"}, b"asked"))
        )
        await asyncio.sleep(_SHORTLY_S)
        first, *answers = script.got
        site.compare("the flag of a request without an answer", ONEWAY, first.flag)
        expected = (206, {"c": "d"}, b"text", "why") if own else (
            3, {}, b"", " request type 307 not supported")  # fmt: skip
        found = [
            (each.opaque, each.flag, (each.code, dict(each.fields), each.body, each.remark))
            for each in answers
        ]
        site.compare("the answers of a client", [(8, RESPONSE, expected)], found)
        await client.close()
    site.compare(
        "what the client receives",
        [(40, True, {"x": "y"}, b""), (307, False, {"x": "y"}, b"asked")],
        [(each.code, each.is_oneway, each.fields, each.body) for each in seen],
    )


async def _closing(site: Site) -> None:
    """A client that is closed sends nothing, and its requests fail."""
    internet, links = site.cluster.internet, ((_HOST, _SERVER), (_SERVER, _HOST))
    for number, is_aborted in enumerate((False, True)):
        script, client = await _Script(site, 7 + number, _nothing).open(), _client(site)
        other = Address(_SERVER, 10 + number)
        pending = asyncio.create_task(_outcome(client.invoke(script.address, _request(), 5)))
        await asyncio.sleep(_SHORTLY_S)
        internet.cut(links)
        connecting = asyncio.create_task(_outcome(client.invoke(other, _request(), 5)))
        await asyncio.sleep(1 - _SHORTLY_S)
        internet.heal(links)
        if is_aborted:
            client.abort()
        else:
            await client.close()
        await asyncio.sleep(_SHORTLY_S)
        lost = ("ConnectionLostError", f"the connection to {script.address} was lost", 1.0)
        site.compare("a pending request of a closed client", lost, await pending)
        text = "the client is closed, no connection to "
        expected = ("ConnectError", f"{text}{other}", round(1 - _SHORTLY_S, 3))
        site.compare("a request that waits for its connection", expected, await connecting)
        late = await _outcome(client.invoke(script.address, _request(), 5))
        site.compare("a later request", ("ConnectError", f"{text}{script.address}", 0.0), late)
        site.compare("whether the connection is closed", [True], [each.is_closed for each in script.peers])


REMOTING_CLIENTS: Final = Inspection("clients of scripted servers", remoting_clients)
