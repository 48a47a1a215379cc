"""Many held pulls: which of them a message ends, which their time, and how many may be held.

See docs/reference/protocol/pulling.md, "Pull requests".
"""

import asyncio
from collections import Counter
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.wire import chapters

_HOLDS_MAX: Final = 40
_HOLD_S: Final = 15
_NOT_FOUND, _RETRY, _BUSY = 19, 20, 2


def _put(line: RawClient, queue: int, tag: str, offset: int = 0) -> Answer:
    fields: dict[str, Any] = {
        "consumerGroup": "g", "topic": "t", "queueId": queue, "queueOffset": offset, "maxMsgNums": 32,
        "sysFlag": 2 | 4, "commitOffset": 0, "suspendTimeoutMillis": _HOLD_S * 1000, "subVersion": 0,
        "subscription": tag, "expressionType": "TAG",
    }  # fmt: skip
    return line.put(CODES["PULL_MESSAGE"], {key: written(value) for key, value in fields.items()})


def _done(pulls: list[Answer]) -> Counter[tuple[int, int]]:
    """Count the answers that have arrived, by code and number of messages."""
    answers = [each.result() for each in pulls if each.done()]
    return Counter((each.code, len(list(read_records(each.body)))) for each in answers)


async def _room(site: Site, count: int) -> None:
    """Check that this many further pulls can be held, and end them by a message."""
    line = await site.client("further")
    end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=2)).fields["offset"])
    pulls = [_put(line, 2, "*", end) for _ in range(count + 1)]
    await asyncio.sleep(0.1)
    site.compare(f"the pulls beyond {count} further ones", {(_BUSY, 0): 1}, _done(pulls))
    await send(site, "t", "further", 2)
    await asyncio.sleep(0.1)
    expected = {(_BUSY, 0): 1, (0, 1): count} if count else {(_BUSY, 0): 1}
    site.compare("the further pulls after a message", expected, _done(pulls))


async def many_pulls(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, "t", 3)
    await make_group(site, "g")
    line, other = await site.client("one"), await site.client("other")
    with_a, with_b, far, beside = [
        [_put(line, queue, tag, offset) for _ in range(10)]
        for queue, tag, offset in ((0, "a", 0), (0, "b", 0), (0, "*", 0), (1, "*", 0))
    ]
    await asyncio.sleep(1)
    await _room(site, 0)
    await send(site, "t", "1", of={"TAGS": "a"})
    await asyncio.sleep(0.1)
    for what, pulls, expected in (
        ("with the tag", with_a, {(0, 1): 10}), ("with another tag", with_b, {}),
        ("with all tags", far, {(0, 1): 10}), ("of another queue", beside, {}),
    ):  # fmt: skip
        site.compare(f"the pulls {what} after a message", expected, _done(pulls))
    await _room(site, 20)
    await asyncio.sleep(_HOLD_S - 2)
    site.compare("the pulls with another tag after a check", {(_RETRY, 0): 10}, _done(with_b))
    site.compare("the pulls of another queue before their time", {}, _done(beside))
    await asyncio.sleep(1)
    site.compare("the pulls of another queue after their time", {(_NOT_FOUND, 0): 10}, _done(beside))
    await _room(site, _HOLDS_MAX)
    await _dropped(site, line, other)
    await _busy(site, other)


async def _dropped(site: Site, line: RawClient, other: RawClient) -> None:
    """The pulls of a connection that ends are held no longer."""
    lost = [_put(line, 1, "*") for _ in range(30)]
    kept = [_put(other, 1, "*") for _ in range(10)]
    await asyncio.sleep(0.5)
    await _room(site, 0)
    line.close()
    await asyncio.sleep(0.5)
    await _room(site, 30)
    await send(site, "t", "2", 1)
    await asyncio.sleep(0.1)
    site.compare("the pulls of another connection", {(0, 1): 10}, _done(kept))
    for each in lost:
        each.cancel()


async def _busy(site: Site, other: RawClient) -> None:
    """Messages that follow each other at once end each pull once, in any number of them."""
    for round_ in range(5):
        end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=2)).fields["offset"])
        pulls = [_put(other, 2, "*", end) for _ in range(_HOLDS_MAX)]
        await asyncio.sleep(0.05)
        for number in range(3):
            await send(site, "t", f"{round_} {number}", 2)
        await asyncio.sleep(0.1)
        codes = [(await each).code for each in pulls]
        site.compare("the codes of pulls while messages arrive", {0}, set(codes))
    await _room(site, _HOLDS_MAX)


MANY_PULLS: Final = Inspection("many held pulls", many_pulls, {"holds_max": _HOLDS_MAX})
