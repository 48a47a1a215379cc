"""How long a pull is held, to the hundredth of a second, and what each answer then has.

See docs/reference/protocol/pulling.md, "Long polling".
"""

import asyncio
import itertools
import math
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER, NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_FOUND, _NOT_FOUND, _RETRY = 0, 19, 20
_CHECK_S: Final = 5.0
_MANY: Final = 200
"""Many more pulls than the broker answers in one turn."""
_HOLDS_MAX: Final = 400


def _put(line: RawClient, offset: int, **more: object) -> Answer:
    fields: dict[str, Any] = {
        "consumerGroup": "g", "topic": "t", "queueId": 0, "queueOffset": offset, "maxMsgNums": 32,
        "sysFlag": 2 | 4, "commitOffset": 0, "suspendTimeoutMillis": 15_000, "subVersion": 0,
        "subscription": "*", "expressionType": "TAG", **more,
    }  # fmt: skip
    return line.put(CODES["PULL_MESSAGE"], {key: written(value) for key, value in fields.items()})


async def _full_hundredth() -> float:
    """Wait until the time is a whole number of hundredths of a second; return it."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(math.ceil(loop.time() * 100 + 1) / 100 - loop.time())
    return loop.time()


async def _held(line: RawClient, offset: int, **more: object) -> tuple[Frame, float]:
    """Pull; return the answer, and after how many seconds it came."""
    loop = asyncio.get_running_loop()
    began_s = await _full_hundredth()
    answer = await _put(line, offset, **more)
    return answer, round(loop.time() - began_s, 4)


def _compare(site: Site, what: str, answer: Frame, code: int, offsets: tuple[int, int, int]) -> None:
    """Compare the code, and the next, first and last offset of an answer."""
    names = ("nextBeginOffset", "minOffset", "maxOffset")
    site.compare(
        what, (code, *map(str, offsets)), (answer.code, *(answer.fields.get(each) for each in names))
    )


async def long_polls(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, "t", 2)
    await make_group(site, "g")
    line = await site.client("one")
    await _times(site, line)
    await _checks(site, line)
    await _while_many_wait(site, line)
    await _ended_twice(site)
    await _short(site, line)
    await _unread(site)
    await _stopping(site, line)


async def _times(site: Site, line: RawClient) -> None:
    """A pull is held as long as it asks, at most 60 s."""
    for asked_ms, seconds in (
        (15_000, 15.0), (60_000, 60.0), (70_000, 60.0), (990, 0.99), (10, 0.01), (0, 0.0), (-5, 0.0),
    ):  # fmt: skip
        answer, took_s = await _held(line, 0, suspendTimeoutMillis=asked_ms)
        site.compare(f"the seconds of a pull that asks for {asked_ms} ms", seconds, took_s)
        _compare(site, "its answer", answer, _NOT_FOUND, (0, 0, 0))
    for flags in (4, 1 | 4):
        answer, took_s = await _held(line, 0, sysFlag=flags)
        site.compare(f"the seconds of a pull with the flags {flags}", 0.0, took_s)


async def _checks(site: Site, line: RawClient) -> None:
    """A pull whose tag does not arrive moves on at the next look of the broker, once in 5 s."""
    loop = asyncio.get_running_loop()
    ended_s = []
    for number in range(3):
        pull = _put(line, number, subscription="wanted", suspendTimeoutMillis=60_000)
        await asyncio.sleep(0.1)
        await send(site, "t", f"{number}", of={"TAGS": "other"})
        _compare(site, "the pull after a look", await pull, _RETRY, (number + 1, 0, number + 1))
        ended_s.append(loop.time())
    pauses = [round(later - earlier, 3) for earlier, later in itertools.pairwise(ended_s)]
    site.compare("the seconds between looks", [_CHECK_S, _CHECK_S], pauses)
    pull = _put(line, 3, subscription="wanted", suspendTimeoutMillis=60_000)
    await asyncio.sleep(0.1)
    began_s = loop.time()
    await send(site, "t", "3", of={"TAGS": "wanted"})
    _compare(site, "the pull for a tag that arrives", await pull, _FOUND, (4, 0, 4))
    site.compare("whether it is answered at once", True, loop.time() - began_s < 0.01)


async def _while_many_wait(site: Site, line: RawClient) -> None:
    """A pull behind the messages that end very many others waits for the next one."""
    pulls = [_put(line, 4, subscription=f"tag{number % 2}") for number in range(_MANY)]
    await asyncio.sleep(0.1)
    sender = await site.client("sender")
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "j": 0,
        "k": False, "m": False,
    }  # fmt: skip
    sent = [
        sender.put(
            CODES["SEND_MESSAGE_V2"],
            {**{key: written(value) for key, value in fields.items()}, "i": f"TAGS\x01tag{number}\x02"},
        )
        for number in range(2)
    ]
    await sent[-1]
    late = _put(await site.client("late"), 6)
    async with asyncio.timeout(1):
        answers = await asyncio.gather(*pulls)
    found = [[each.properties["TAGS"] for each in read_records(answer.body)] for answer in answers]
    site.compare("the pulls that have messages", _MANY, len([each for each in found if each]))
    await asyncio.sleep(0.5)
    site.compare("whether a pull behind them is answered", False, late.done())
    await send(site, "t", "more")
    _compare(site, "the pull behind them", await late, _FOUND, (7, 0, 7))


async def _ended_twice(site: Site) -> None:
    """A pull that ends for two reasons at one moment is answered once, and then not held any longer."""
    loop = asyncio.get_running_loop()
    for reason in ("time", "connection"):
        line, sender = await site.client(f"ends by {reason}"), await site.client("sender")
        end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=1)).fields["offset"])
        began_s = await _full_hundredth()
        pulls = [_put(line, end, queueId=1, suspendTimeoutMillis=500) for _ in range(_HOLDS_MAX)]
        await asyncio.sleep(began_s + 0.5 - loop.time() if reason == "time" else 0.1)
        fields = {
            "a": "p",
            "b": "t",
            "c": "TBW102",
            "d": "4",
            "e": "1",
            "f": "0",
            "g": "0",
            "h": "0",
            "i": "",
        }
        sent = sender.put(CODES["SEND_MESSAGE_V2"], fields)
        if reason == "connection":
            for each in pulls:
                each.cancel()
            line.close()
        await sent
        await asyncio.sleep(0.1)
        site.compare("the pulls that are over", _HOLDS_MAX, sum(each.done() for each in pulls))
        more = await site.client("more")
        end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=1)).fields["offset"])
        pulls = [_put(more, end, queueId=1, suspendTimeoutMillis=500) for _ in range(_HOLDS_MAX + 2)]
        await asyncio.sleep(0.1)
        site.compare("the pulls for which there is no room", 2, sum(each.done() for each in pulls))
        await asyncio.sleep(1)
        site.compare("the pulls that are over", _HOLDS_MAX + 2, sum(each.done() for each in pulls))
        more.close()


async def _short(site: Site, line: RawClient) -> None:
    """Without long polling a pull waits as long as the broker says, whatever it asks for."""
    await site.ask("UPDATE_BROKER_CONFIG", "longPollingEnable=false")
    for short_ms, asked_ms in ((1000, 15_000), (1000, 0), (2500, 1)):
        await site.ask("UPDATE_BROKER_CONFIG", f"shortPollingTimeMills={short_ms}")
        answer, took_s = await _held(line, 7, suspendTimeoutMillis=asked_ms)
        site.compare(f"the seconds of a short poll of {short_ms} ms", short_ms / 1000, took_s)
        _compare(site, "its answer", answer, _NOT_FOUND, (7, 0, 7))
    await site.ask("UPDATE_BROKER_CONFIG", "longPollingEnable=true")


async def _unread(site: Site) -> None:
    """A peer that does not read gets no messages; the answer says where it can continue."""
    line = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    pull = _put(line, 7)
    await asyncio.sleep(0.1)
    line.stop_taking(1)
    await send(site, "t", "unread")
    await asyncio.sleep(0.1)
    line.take_again()
    answer = await pull
    _compare(site, "the pull of a peer that does not read", answer, _NOT_FOUND, (7, 0, 8))
    site.compare("its messages", b"", answer.body)
    line.close()


async def _stopping(site: Site, line: RawClient) -> None:
    """While a broker stops, a pull that finds nothing is answered at once."""
    held = _put(line, 8)
    await asyncio.sleep(0.1)
    for node in NAME_SERVERS:
        site.cluster.internet.cut(site.cluster.links(MASTER, node))
    stop = asyncio.ensure_future(site.cluster.stop(MASTER))
    await asyncio.sleep(0.1)
    site.compare("whether a held pull is answered by a stop", True, held.done())
    late = _put(line, 8)
    await asyncio.sleep(0.1)
    site.compare("whether the broker still stops", False, stop.done())
    site.compare("whether a pull during a stop is answered", True, late.done())
    await stop
    site.cluster.internet.heal()


LONG_POLLS: Final = Inspection(
    "long polls", long_polls, {"holds_max": _HOLDS_MAX, "connection_percent": 100, "address_percent": 100}
)
