"""Bytes that peers of a server hold: unread answers, incomplete frames, and unanswered requests; and turns.

See docs/reference/protocol/framing.md, "Shares".
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Final

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import Registrant, body_of, topic
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, make_topic, subscription
from mqproof.conformance.hosts.simulated import NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame, Header, encode
from mqproof.impl.runtime.network import Address

_TOTAL: Final = 256 << 20
_FRAME: Final = 16 << 20
_BUSY: Final = 2
_LARGE: Final = 96 << 10
_FREE: Final = 64 << 10
"""The bytes of an incomplete frame that are always allowed."""
_UNIT: Final = 4 << 10
"""Unanswered requests count in multiples of this; so much is always allowed."""
_VALUE: Final = 512 << 10
_OTHER_HOST, _THIRD_HOST = "10.0.1.2", "10.0.1.3"
_OF_CONNECTION, _OF_ADDRESS = 7, 9
_FRAMES, _FRAME_BYTES = 64, 256 << 10
"""After so many frames, or bytes of them, other connections get a turn."""


async def byte_shares(site: Site) -> None:
    """The shares as they are set: 7 % of a connection, 9 % of an address."""
    site.rule = chapters.REMOTING_FRAME
    await _unread(site, _TOTAL * _OF_CONNECTION // 100, _TOTAL * _OF_ADDRESS // 100)
    await _incomplete(site)
    for _ in range(2):
        await _unanswered(site)


async def usual_byte_shares(site: Site) -> None:
    """The shares as they are shipped: 10 % of a connection, 50 % of an address."""
    site.rule = chapters.REMOTING_FRAME
    await _unread(site, _TOTAL // 10, _TOTAL // 2)
    await _turns(site)


async def _line(site: Site, host: str = HOST, to: Address | None = None) -> RawClient:
    return await RawClient(to or site.broker).open(site.cluster.internet.machine(host))


async def _unread(site: Site, connection: int, address: int) -> None:
    """Answers are refused when a connection, an address or all of them leave too many bytes unread."""
    await make_topic(site, "t")
    await make_group(site, "g")
    member = await _line(site)
    await beat(site, "m@1", "g", [subscription("t")], by=member)

    async def asks(host: str, unread: int, body: int, owner: str, used: int, most: int) -> RawClient:
        """Let a peer ask, leave bytes unread, and get an answer with a body; compare a refusal."""
        line = await _line(site, host)
        asked = {"consumerGroup": "g", "clientId": "m@1"}
        answer = line.put(CODES["GET_CONSUMER_RUNNING_INFO"], asked)
        await asyncio.sleep(0.01)
        if unread:
            line.stop_taking(unread)
        member.reply(member.pushed[-1], body=b"x" * body)
        await asyncio.sleep(0.01)
        found = await answer
        what = f"{body} bytes beside {unread} unread ones of {host}"
        site.compare(f"the code of {what}", _BUSY if owner else 0, found.code, found.remark)
        if owner:
            text = f"{used} bytes of unread answers of {owner}, at most {most} allowed"
            site.compare(f"the remark for {what}", text, found.remark)
        return line

    lines: list[RawClient] = []

    async def fill(host: str, size: int) -> None:
        """Leave so many bytes of the address unread, by as few connections as possible."""
        while size:
            part = min(size, connection)
            line = await _line(site, host)
            line.stop_taking(part)
            lines.append(line)
            size -= part

    for more, owner in ((0, ""), (1, "this connection")):
        unread = connection - _LARGE + more
        (await asks(HOST, unread, _LARGE, owner, unread, connection)).close()
    for more, owner in ((0, ""), (1, f"address {HOST}")):
        used = address - _LARGE + more
        await fill(HOST, used)
        (await asks(HOST, 0, _LARGE, owner, used, address)).close()
        (await asks(_OTHER_HOST, 0, _LARGE, "", 0, 0)).close()
        for line in lines:
            line.take_again()
            line.close()
        lines.clear()
        await asyncio.sleep(0.01)
    for more, owner in ((0, ""), (1, "all connections")):
        used, at = _TOTAL - _LARGE + more, 0
        while at * address < used:
            await fill(f"10.0.2.{at + 1}", min(address, used - at * address))
            at += 1
        (await asks(HOST, 0, _LARGE, owner, used, _TOTAL)).close()
        for line in lines:
            line.close()  # what a connection that is gone did not read does not count
        lines.clear()
        await asyncio.sleep(0.01)
    member.close()


async def _incomplete(site: Site) -> None:
    """A connection with more than 64 KiB of a frame is closed when its address has used up its share."""
    most = _TOTAL * _OF_ADDRESS // 100
    begin = struct.pack(">i", _FRAME - 4)

    async def begun(size: int, host: str = HOST) -> RawClient:
        line = await _line(site, host)
        line.write(begin + b"\0" * (size - len(begin)))
        await asyncio.sleep(0.01)
        return line

    for _ in range(2):
        first = await begun(_FRAME - 1)
        second = await begun(most - _FRAME + 1)
        few = await begun(_FREE)
        # The few bytes of the third one are beyond the share, so only the first bytes of others are allowed.
        for line, is_closed in ((first, False), (second, False), (few, False)):
            site.compare("whether a connection with a part of a frame is closed", is_closed, line.is_closed)
        other = await begun(_FRAME - 1, _OTHER_HOST)
        site.compare("whether one of another address is closed", False, other.is_closed)
        for line in (few, second):
            line.write(b"\0")
            await asyncio.sleep(0.01)
            site.compare("whether one more byte closes it", True, line.is_closed)
        third = await begun(most - _FRAME + 2)
        site.compare("whether one byte too many closes it", True, third.is_closed)
        third = await begun(most - _FRAME + 1)
        site.compare("whether the share that is free again is closed", False, third.is_closed)
        for line in (first, other, third):
            line.close()
        await asyncio.sleep(0.01)


def _put(opaque: int, size: int) -> bytes:
    """Return a request to put a pair, whose frame has this size without its length."""
    fields = {"namespace": "n", "key": "k", "value": ""}
    front = len(encode(Frame(CODES["PUT_KV_CONFIG"], opaque, fields=fields, header=Header.BINARY))) - 4
    fields["value"] = "v" * (size - front)
    return encode(Frame(CODES["PUT_KV_CONFIG"], opaque, fields=fields, header=Header.BINARY))


async def _unanswered(site: Site) -> None:
    """Requests that wait for the disk use up the share of their connection, then that of their address."""
    of_connection, of_address = (_TOTAL * each // 100 for each in (_OF_CONNECTION, _OF_ADDRESS))
    fsync = site.cluster.machines[NAME_SERVERS[0]].fsync
    lines = [await _line(site, host, site.name_server) for host in (HOST, HOST, HOST, _OTHER_HOST)]
    waiting: list[asyncio.Future[Frame]] = []
    opaque = 0

    async def send(line: RawClient, *sizes: int) -> list[asyncio.Future[Frame]]:
        nonlocal opaque
        found = []
        for size in sizes:
            opaque += 1
            found.append(line.expect(opaque))
            line.write(_put(opaque, size))
        await asyncio.sleep(0.01)
        return found

    async def refused(line: RawClient, size: int, owner: str, used: int, most: int) -> None:
        (answer,) = await send(line, size)
        if not answer.done():
            site.report(f"{size} more bytes of {owner} are taken, at most {most} are allowed")
            waiting.append(answer)
            return
        text = f"{used} bytes of unanswered requests of {owner}, at most {most} allowed"
        site.compare(
            "the answer beyond a share", (_BUSY, text), (answer.result().code, answer.result().remark)
        )

    fsync.hold()
    whole = of_connection // _UNIT * _UNIT
    waiting += await send(lines[0], *_parts(whole))
    await refused(lines[0], 100, "this connection", whole, of_connection)
    left = (of_address - whole) // _UNIT * _UNIT
    waiting += await send(lines[1], *_parts(left))
    await refused(lines[1], 100, f"address {HOST}", whole + left, of_address)
    waiting += await send(lines[2], _UNIT)  # so much is always allowed
    await refused(lines[2], 100, f"address {HOST}", whole + left + _UNIT, of_address)
    waiting += await send(lines[3], 3 * _UNIT)
    site.compare("the answers while the disk is held", 0, sum(each.done() for each in waiting))
    fsync.release()
    await asyncio.sleep(1)
    codes = [each.result().code if each.done() else None for each in waiting]
    site.compare("the codes of all that waited", [0] * len(codes), codes)
    for line in lines:
        line.close()
    await asyncio.sleep(0.01)


def _parts(size: int) -> Sequence[int]:
    """Return the sizes of requests that have this size together."""
    rest = size % _VALUE
    return [*[_VALUE] * (size // _VALUE), *([rest] if rest else [])]


async def _turns(site: Site) -> None:
    """After 64 frames of a connection, or 256 KiB of them, a request of the other one is handled."""
    names, to = Registrant(site, "a"), site.name_server
    code, asked = CODES["GET_ROUTEINFO_BY_TOPIC"], {"topic": "t"}
    for number, (size, count) in enumerate((
        (100, _FRAMES), (_FRAME_BYTES // 4, 4), (_FRAME_BYTES // 4 - 1, 5), (_FRAME_BYTES // 64, _FRAMES),
        (_FRAME_BYTES, 1), (_FRAME_BYTES // 2, 2), (_FRAME_BYTES // 2 - 1, 3),
    )):  # fmt: skip
        await names.register(body_of([topic("t")], number + 2))
        one, other = await _line(site, to=to), await _line(site, to=to)
        front = len(encode(Frame(code, 100, fields=asked))) - 4
        opaques = range(100, 100 + 2 * count + 2)
        answers = [one.expect(opaque) for opaque in opaques]
        one.write(
            b"".join(
                encode(Frame(code, opaque, fields=asked, body=b"x" * (size - front))) for opaque in opaques
            )
        )
        await other.request(CODES["DELETE_TOPIC_IN_NAMESRV"], asked)
        await asyncio.sleep(0.1)
        before = sum(each.result().code == 0 for each in answers)
        site.compare(f"the frames of {size} bytes before a turn", count, before)
        one.close()
        other.close()


_PERCENT: Final = {"connection_percent": _OF_CONNECTION, "address_percent": _OF_ADDRESS}
BYTE_SHARES: Final = Inspection("shares of bytes", byte_shares, _PERCENT, _PERCENT)
USUAL_BYTE_SHARES: Final = Inspection("usual shares of bytes", usual_byte_shares)
