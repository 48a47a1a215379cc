"""Connections: parts of frames, silence, peers that do not read, shares used up exactly, and a stop.

See docs/reference/protocol/framing.md, "Remoting frame".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    make_group,
    make_topic,
    records,
    send,
    subscription,
)
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame, encode
from mqproof.impl.store.config import FlushMode

_IDLE_S: Final = 120.0
_SCAN_S: Final = 10.0
_BUSY, _NOT_FOUND = 2, 19
_HELD: Final = 1500
_SHARE: Final = 1000
_OTHER_HOST: Final = "10.0.1.2"
_SHARE_BYTES: Final = (256 << 20) // 10
"""The share of one connection of the unread bytes of answers."""
_SMALL, _LARGE = 64 << 10, 96 << 10
"""The largest answer that is always sent, and a larger one."""


async def channels(site: Site) -> None:
    site.rule = chapters.REMOTING_FRAME
    await make_topic(site, "t")
    await make_group(site, "g")
    await _parts(site)
    await _silence(site)
    await _unread(site)
    await _held_pulls(site)
    await _stop(site)


async def _line(site: Site, host: str = HOST) -> RawClient:
    return await RawClient(site.broker).open(site.cluster.internet.machine(host))


async def _parts(site: Site) -> None:
    """The rest of a frame may come until the connection counts as idle, and no later."""
    data = encode(Frame(CODES["GET_MAX_OFFSET"], 7, fields={"topic": "t", "queueId": "0"}))
    for pause_s, is_answered in ((_SCAN_S + 1, True), (_IDLE_S - 1, True), (_IDLE_S + _SCAN_S + 1, False)):
        line = await _line(site)
        answer = line.put(CODES["GET_MIN_OFFSET"], {"topic": "t", "queueId": "0"})
        await answer
        line.write(data[:9])
        for _ in range(5):  # more parts do not help
            await asyncio.sleep(pause_s / 6)
            line.write(data[9 + _ : 10 + _])
        await asyncio.sleep(pause_s / 6)
        site.compare(f"whether it is closed after {pause_s} s", not is_answered, line.is_closed)
        if is_answered:
            waiting = line.expect(7)
            line.write(data[14:])
            await asyncio.sleep(0.1)
            site.compare(f"whether the frame is answered after {pause_s} s", True, waiting.done())


async def _silence(site: Site) -> None:
    """A connection ends when nothing was sent or received on it for the idle time."""
    for held_s in (0, 60):
        line = await _line(site)
        began = site.now_ms
        await _pull(line, held_s * 1000)
        site.compare(
            "how long the pull was held", True, held_s * 1000 <= site.now_ms - began < 6000 + held_s * 1000
        )
        await asyncio.sleep(_IDLE_S - 1)
        site.compare(f"whether it is open {_IDLE_S - 1} s after the answer", False, line.is_closed)
        await asyncio.sleep(_SCAN_S + 2)
        site.compare("whether it is open later", True, line.is_closed)


def _pull(line: RawClient, wait_ms: int = 0, offset: int = 0) -> "asyncio.Future[Frame]":
    fields: dict[str, Any] = {
        "consumerGroup": "g", "topic": "t", "queueId": 0, "queueOffset": offset, "maxMsgNums": 32,
        "sysFlag": 6 if wait_ms else 4, "commitOffset": 0, "suspendTimeoutMillis": wait_ms, "subVersion": 0,
        "subscription": "*", "expressionType": "TAG",
    }  # fmt: skip
    return line.put(CODES["PULL_MESSAGE"], {key: written(value) for key, value in fields.items()})


async def _unread(site: Site) -> None:
    """A peer that does not read gets no large answers, and none of its requests is read, until it reads."""
    member = await _line(site)
    await beat(site, "m@1", "g", [subscription("t")], by=member)
    asked = {"consumerGroup": "g", "clientId": "m@1"}
    offsets = {"topic": "t", "queueId": "0"}
    for unsent, size, is_refused in (
        (0, _LARGE, False), (_SHARE_BYTES - _LARGE, _LARGE, False), (_SHARE_BYTES - _LARGE + 1, _LARGE, True),
        (_SHARE_BYTES + 1, _SMALL, False), (_SHARE_BYTES + 1, _SMALL + 1, True),
    ):  # fmt: skip
        line = await _line(site)
        answer = line.put(CODES["GET_CONSUMER_RUNNING_INFO"], asked)
        await asyncio.sleep(0.1)
        line.stop_taking(unsent)
        later = line.put(CODES["GET_MAX_OFFSET"], offsets)
        member.reply(member.pushed[-1], body=b"x" * size)
        await asyncio.sleep(0.1)
        site.compare("whether a request is read", False, later.done())
        site.compare(
            f"the code of {size} bytes with {unsent} unread", _BUSY if is_refused else 0, (await answer).code
        )
        line.take_again()
        site.compare("the code of the next request", 0, (await later).code)
        again = line.put(CODES["GET_CONSUMER_RUNNING_INFO"], asked)
        await asyncio.sleep(0.1)
        member.reply(member.pushed[-1], body=b"x" * size)
        site.compare("the code when everything is read", 0, (await again).code)
        line.close()
    held = _pull(line := await _line(site), 20_000, 0)
    await asyncio.sleep(0.1)
    line.stop_taking(1)
    await send(site, "t")
    await asyncio.sleep(1)
    code = held.result().code if held.done() else None
    site.compare("the code of a held pull of a peer that does not read", _NOT_FOUND, code)
    member.close()
    line.close()


async def _held_pulls(site: Site) -> None:
    """A connection and an address have shares of the held pulls, and all have a limit."""
    end = len(await records(site, "t", 0))
    lines = [await _line(site) for number in range(2)]
    lines += [await _line(site, _OTHER_HOST)]
    refused: list[asyncio.Future[Frame]] = []
    held = [_pull(lines[0], 20_000, end) for _ in range(_SHARE)]
    await asyncio.sleep(0.1)
    refused += [_pull(lines[0], 20_000, end), _pull(lines[1], 20_000, end)]
    held += [_pull(lines[2], 20_000, end) for _ in range(_HELD - _SHARE)]
    await asyncio.sleep(0.1)
    refused.append(_pull(lines[2], 20_000, end))
    await asyncio.sleep(0.1)
    site.compare("the pulls that are answered", 0, sum(each.done() for each in held))
    texts = [(each.result().remark or "") if each.done() else "" for each in refused]
    for text, owner in zip(texts, ("this connection", f"address {HOST}", "all connections"), strict=True):
        most = _HELD if owner == "all connections" else _SHARE
        expected = f"{most} held pulls of {owner}, at most {most} allowed"
        site.compare(f"the refusal for {owner}", True, expected in text, text)
    await send(site, "t")
    await asyncio.sleep(0.5)
    site.compare("the codes of held pulls", {0}, {each.result().code for each in held if each.done()})
    site.compare("the answered pulls", len(held), sum(each.done() for each in held))
    again = [_pull(lines[0], 2000, end + 1) for _ in range(2)]
    await asyncio.sleep(0.1)
    site.compare("whether two pulls are held again", [False, False], [each.done() for each in again])


async def _stop(site: Site) -> None:
    """While a broker stops, it finishes the requests in progress, and takes no others."""
    before = len(await records(site, "t"))
    machine, line = site.cluster.machines[MASTER], await _line(site)
    fields = {
        "a": "p", "b": "t", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0", "i": "",
        "j": "0", "k": "false", "m": "false",
    }  # fmt: skip
    machine.fsync.hold()
    first = line.put(CODES["SEND_MESSAGE_V2"], fields, b"first")
    await asyncio.sleep(0.2)
    stopping = asyncio.get_running_loop().create_task(site.cluster.stop(MASTER))
    await asyncio.sleep(0.2)
    late = line.put(CODES["SEND_MESSAGE_V2"], fields, b"late")
    await asyncio.sleep(0.2)
    machine.fsync.release()
    await stopping
    code = first.result().code if first.done() and not first.exception() else None
    site.compare("the code of the send in progress", 0, code)
    site.compare("whether a late send is answered", False, late.done() and not late.exception())
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    found = [each.body for each in await records(site, "t", before)]
    site.compare("the messages after the stop", [b"first"], found)
    try:
        await site.ask("GET_BROKER_CONFIG", by=line, expects=None)
    except TargetError:
        return
    site.report("a connection outlives the stop of its server")


CHANNELS: Final = Inspection("channels", channels, {"holds_max": _HELD}, flush=FlushMode.SYNC_FLUSH)
