"""A server with small limits: its connections, requests in progress, silence to the second, and its end.

See docs/reference/protocol/framing.md, "Remoting frame" and "Shares".
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame, encode
from mqproof.impl.remoting import request_handler
from mqproof.impl.remoting.budget import Budget, ServerBudgets, Shares, server_budgets
from mqproof.impl.remoting.channel import Channel, Limits, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import HeaderError
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.supervision import Supervisor

_OTHER_HOST, _THIRD_HOST = "10.0.1.2", "10.0.1.3"
_AT_ONCE, _LATER, _SLOWLY, _NEVER, _USED = 11, 12, 13, 14, 15
"""Request codes of the server: how it answers. The body of the last one counts."""
_SHORTLY_S: Final = 0.01
_SCAN_S: Final = 10.0
_IDLE_S: Final = 120.0


class _Server:
    """A server whose answers the inspection gives."""

    def __init__(self, site: Site, number: int, limits: Limits, budgets: ServerBudgets | None = None) -> None:
        self.site = site
        self.seen: list[Command] = []
        self.later: list[Later] = []
        self.slow: list[asyncio.Future[None]] = []
        self.ended: dict[str, float] = {}
        """When each connection ended."""
        self.channel: Channel | None = None
        """The connection of the latest request."""
        self._host = f"10.0.9.{number}"
        self.server = RemotingServer(
            site.cluster.internet.machine(self._host), self._handle, limits=limits, budgets=budgets,
            on_closed=self._on_closed, bodies_used={_USED},
        )  # fmt: skip
        self.address = Address(self._host, 1)

    async def start(self) -> "_Server":
        self.address = await self.server.start(self._host, 0)
        return self

    async def client(self, host: str = HOST) -> RawClient:
        return await RawClient(self.address).open(self.site.cluster.internet.machine(host))

    def codes(self) -> list[int]:
        return [each.code for each in self.seen]

    def _on_closed(self, channel: Channel) -> None:
        self.ended[str(channel.remote)] = asyncio.get_running_loop().time()

    def _handle(self, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        self.seen.append(request)
        self.channel = channel
        if request.code in (_LATER, _USED):
            self.later.append(Later())
            return self.later[-1]
        if request.code == _SLOWLY:
            return self._slowly(request)
        return request.answer(ResponseCode.SUCCESS) if request.code == _AT_ONCE else None

    async def _slowly(self, request: Command) -> Reply:
        self.slow.append(asyncio.get_running_loop().create_future())
        await self.slow[-1]
        return request.answer(ResponseCode.SUCCESS)

    def end(self, at: int) -> None:
        """Answer the request of that number among those that are answered later."""
        request = [each for each in self.seen if each.code in (_LATER, _USED)][at]
        self.later[at].set(request.answer(ResponseCode.SUCCESS))


async def remoting_servers(site: Site) -> None:
    site.rule = chapters.REMOTING_FRAME
    await _connections(site)
    await _in_progress(site)
    await _silence(site)
    await _stops(site)
    await _errors(site)


async def _connections(site: Site) -> None:
    """A connection beyond the share of its address, or beyond the total, is closed at once."""
    usual = server_budgets(10_000, 1 << 24)
    few = ServerBudgets(
        Budget("connections", Shares(3, 2, 1)), usual.unanswered, usual.incomplete, usual.unread
    )
    server = await _Server(site, 11, Limits(), few).start()
    lines: list[tuple[RawClient, bool]] = []

    async def opened(host: str, is_allowed: bool) -> RawClient:
        line = await server.client(host)
        answer = line.put(_AT_ONCE, {})
        await asyncio.sleep(_SHORTLY_S)
        lines.append((line, is_allowed))
        site.compare(
            f"whether connection {len(lines)} of {host} is answered", is_allowed,
            answer.done() and answer.exception() is None,
        )  # fmt: skip
        for at, (each, stays) in enumerate(lines):
            site.compare(f"whether connection {at} is closed", not stays, each.is_closed)
        return line

    first = await opened(HOST, True)
    await opened(HOST, True)
    await opened(HOST, False)
    await opened(_OTHER_HOST, True)
    await opened(_OTHER_HOST, False)
    await opened(_THIRD_HOST, False)
    site.compare("the connections that ended", {}, server.ended)
    lines[:] = [(line, is_allowed and line is not first) for line, is_allowed in lines]
    first.close()
    await asyncio.sleep(_SHORTLY_S)
    site.compare("the connections that ended then", [first.address], list(server.ended))
    await opened(_THIRD_HOST, True)
    await opened(HOST, False)
    await server.server.stop()


def _done(answers: list[Answer]) -> list[bool]:
    return [each.done() for each in answers]


async def _in_progress(site: Site) -> None:
    """Beyond the limit of requests in progress, or their bytes, a connection is not read."""
    server = await _Server(site, 12, Limits(unanswered_max=3, unanswered_bytes_max=600)).start()
    line, other = await server.client(), await server.client()
    answers = [line.put(code, {}) for code in (_AT_ONCE, _LATER, _SLOWLY, _LATER, _AT_ONCE, _AT_ONCE)]
    await asyncio.sleep(_SHORTLY_S)
    site.compare("the requests that are read", [_AT_ONCE, _LATER, _SLOWLY, _LATER], server.codes())
    site.compare("the code of another connection", 0, (await other.request(_AT_ONCE, {})).code)
    server.end(1)
    await asyncio.sleep(_SHORTLY_S)
    site.compare("the answers", [True, False, False, True, True, True], _done(answers))
    server.slow[0].set_result(None)
    server.end(0)
    await asyncio.sleep(_SHORTLY_S)
    site.compare("the answers at the end", [True] * 6, _done(answers))
    await _bytes_in_progress(site, server, line)
    await server.server.stop()


async def _bytes_in_progress(site: Site, server: _Server, line: RawClient) -> None:
    """A request with 600 bytes is the last one that is read; a body that is not used does not count."""
    empty = len(encode(Frame(_USED, 101))) - 4
    for size, read in ((599, 2), (600, 1)):
        server.seen.clear()
        server.later.clear()
        line.put(_USED, {}, b"x" * (size - empty))
        for code in (_LATER, _AT_ONCE):
            line.put(code, {})
        await asyncio.sleep(_SHORTLY_S)
        site.compare(f"the requests that are read after one of {size} bytes", read, len(server.seen))
        while server.later and not all(each.is_ended for each in server.later):
            server.end(next(at for at, each in enumerate(server.later) if not each.is_ended))
            await asyncio.sleep(_SHORTLY_S)
        site.compare("the requests that are read then", [_USED, _LATER, _AT_ONCE], server.codes())
    server.seen.clear()
    server.later.clear()
    line.put(_LATER, {}, b"x" * 1000)
    site.compare("the code beside a body that does not count", 0, (await line.request(_AT_ONCE, {})).code)
    # Behind three requests, the whole frame of another one waits for longer than a part of a frame may.
    late = [line.expect(opaque) for opaque in (1001, 1002, 1003)]
    codes = (_LATER, _LATER, _AT_ONCE)
    line.write(
        b"".join(encode(Frame(code, opaque)) for code, opaque in zip(codes, (1001, 1002, 1003), strict=True))
    )
    await asyncio.sleep(_SHORTLY_S)
    for _ in range(15):
        await asyncio.sleep(_SCAN_S)
        if server.channel is not None:
            server.channel.send_oneway(Command(1, 1, 2))
    site.compare("whether a connection that is not read is closed", False, line.is_closed)
    for at in range(3):
        server.end(at)
        await asyncio.sleep(_SHORTLY_S)
    site.compare("the late answers", [True] * 3, _done(late))


async def _silence(site: Site) -> None:
    """Scans every 10 s close what was silent, or had a part of a frame, for more than 120 s."""
    server, loop = await _Server(site, 13, Limits()).start(), asyncio.get_running_loop()
    began_s = loop.time()
    whole = encode(Frame(_NEVER, 7))
    lines: dict[float, RawClient] = {}
    plan: list[tuple[float, float, bytes]] = [(begin, begin, whole) for begin in (9.5, 10.5)]
    """When each connection begins, when it sends something, and what."""
    for begin in (9.4, 10.4):
        plan += [(begin, begin + 7 * at, whole[at : at + 1]) for at in range(20)]
    plan += [(5.0, 5.0, whole[:2])]
    plan += [(5.0, 5.0 + 25 * number, whole[2:] + whole + whole[:2]) for number in range(1, 11)]
    pushed = asyncio.create_task(_pushed(site, 17))
    for begin, second, data in sorted(plan, key=lambda each: each[1]):
        await asyncio.sleep(began_s + second - loop.time())
        if begin not in lines:
            lines[begin] = await server.client()
        lines[begin].write(data)
    await asyncio.sleep(began_s + 300 - loop.time())
    await pushed
    for begin, expected in ((9.5, 130.0), (10.5, 140.0), (9.4, 130.0), (10.4, 140.0), (5.0, None)):
        end_s = server.ended.get(lines[begin].address)
        when_s = None if end_s is None else round(end_s - began_s, 1)
        site.compare(f"when the connection of {begin} s ends", expected, when_s)
    await server.server.stop()


async def _pushed(site: Site, number: int) -> None:
    """The time for a frame begins with its first byte, also if only the server sends on the connection."""
    server = await _Server(site, number, Limits()).start()
    began_s = asyncio.get_running_loop().time()
    line = await server.client()
    await line.request(_AT_ONCE, {})
    await asyncio.sleep(100)
    if server.channel is not None:
        server.channel.send_oneway(Command(1, 1, 2))
    await asyncio.sleep(35.5)
    line.write(b"\0")
    await asyncio.sleep(60)
    line.write(b"\0")
    await asyncio.sleep(80)
    ended_s = server.ended.get(line.address, 0.0)
    site.compare("when a connection with a late part ends", 260.0, round(ended_s - began_s, 1))
    await server.server.stop()


async def _stops(site: Site) -> None:
    """A server that stops finishes requests for a second, and reads no others."""
    loop = asyncio.get_running_loop()
    unused = await _Server(site, 18, Limits()).start()
    site.compare("the duration of a stop without connections", 0.0, await _duration(unused.server.stop()))
    await _Server(site, 19, Limits()).server.stop()  # it never started
    await _scans(site)
    for after_s, drain_s in ((0.9, 1.0), (1.1, 1.0), (0.2, 0.3), (0.4, 0.3), (0.2, None)):
        server = await _Server(site, 15, Limits()).start()
        line, idle = await server.client(), await server.client(_OTHER_HOST)
        answers = [line.put(_LATER, {}), line.put(_SLOWLY, {})]
        await asyncio.sleep(_SHORTLY_S)
        is_answered = drain_s is not None and after_s < drain_s
        if drain_s is None:
            server.server.kill()
        stopping = loop.create_task(_duration(server.server.stop(drain_s))) if drain_s is not None else None
        await asyncio.sleep(after_s / 2)
        late = line.put(_AT_ONCE, {})
        await asyncio.sleep(after_s / 2)
        if is_answered:
            site.compare("whether an idle connection is closed", False, idle.is_closed)
            server.end(0)
            server.slow[0].set_result(None)
        what = f"a stop that waits {drain_s} s for requests of {after_s} s"
        if stopping is not None and drain_s is not None:
            site.compare(f"the duration of {what}", min(after_s, drain_s), round(await stopping, 2))
        await asyncio.sleep(_SHORTLY_S)
        codes = [each.result().code if each.done() and not each.exception() else None for each in answers]
        site.compare(f"the codes after {what}", [0 if is_answered else None] * 2, codes)
        site.compare("whether slow work is cancelled", not is_answered, server.slow[0].cancelled())
        site.compare("the requests that were read", [_LATER, _SLOWLY], server.codes())
        site.compare("whether a late request is answered", False, late.done() and not late.exception())
        site.compare("the connections that are closed", [True, True], [line.is_closed, idle.is_closed])
        try:
            await server.client()
        except OSError:
            continue
        site.report("a server that stopped accepts a connection")


async def _scans(site: Site) -> None:
    """A server looks for idle connections until it stops or is killed."""
    host = "10.0.9.20"
    for is_killed in (False, True):
        supervisor = Supervisor()
        network = site.cluster.internet.machine(host)
        server = RemotingServer(network, request_handler.refuse_everything, supervisor=supervisor)
        address = await server.start(host, 0)
        scan = {"scan for idle connections"}
        site.compare("the tasks of a server", scan, set(supervisor.running))
        line = await RawClient(address).open(site.cluster.internet.machine(HOST))
        answer = await line.request(7, {})
        expected = (3, " request type 7 not supported")
        site.compare("the answer of a server without processors", expected, (answer.code, answer.remark))
        if is_killed:
            server.kill()
        else:
            await server.stop()
        await asyncio.sleep(_SHORTLY_S)
        site.compare("the tasks of a server that ended", set(), set(supervisor.running))
        site.compare("whether its connection is closed", True, line.is_closed)


async def _duration(work: Coroutine[Any, Any, None]) -> float:
    began_s = asyncio.get_running_loop().time()
    await work
    return asyncio.get_running_loop().time() - began_s


async def _errors(site: Site) -> None:
    """Whatever a processor raises becomes the code and the remark of an answer, and the server goes on."""
    errors: dict[int, tuple[Exception, int, str]] = {
        1: (request_handler.RefusedError(ResponseCode.NO_PERMISSION, "why"), 16, "why"),
        2: (HeaderError("which"), 1, "which"),
        3: (BodyError("what"), 1, "what"),
        4: (ValueError("strange"), 1, "ValueError: strange"),
        5: (OSError("disk"), 1, "OSError: disk"),
    }  # fmt: skip

    def processor(error: Exception, is_later: bool) -> Callable[..., Any]:
        async def later(_request: Command, _channel: Channel) -> Reply:
            await asyncio.sleep(_SHORTLY_S)
            raise error

        def at_once(_request: Command, _channel: Channel) -> Reply:
            raise error

        return later if is_later else at_once

    table = {
        code + 100 * is_later: processor(error, bool(is_later))
        for code, (error, _, _) in errors.items()
        for is_later in (0, 1)
    }
    host = "10.0.9.16"
    server = RemotingServer(site.cluster.internet.machine(host), request_handler.handler(table))
    address = await server.start(host, 0)
    line = await RawClient(address).open(site.cluster.internet.machine(HOST))
    for code in table:
        _, expected, remark = errors[code % 100]
        answer = await line.request(code, {})
        site.compare(f"the answer of processor {code}", (expected, remark), (answer.code, answer.remark))
    for code in (6, 0, -1):
        answer = await line.request(code, {})
        remark = f" request type {code} not supported"
        site.compare(f"the answer to {code}", (3, remark), (answer.code, answer.remark))
    await server.stop()


REMOTING_SERVERS: Final = Inspection("servers of requests", remoting_servers)
