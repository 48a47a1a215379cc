"""Unique keys of our producers, over months, wraps of the counter and steps of the clock; damaged batches.

See docs/reference/protocol/messages.md, "Message identifiers", and sending.md, "Batches".
"""

import random
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import batch, make_topic, records, send
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import UniqueKeys

_KEY: Final = re.compile(r"[0-9A-F]{32}")
_COUNTER_END: Final = 1 << 16
_DAY_MS: Final = 86_400_000
_ILLEGAL: Final = 13


class _Clock:
    """A clock whose time the inspection sets."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def now_us(self) -> int:
        return self.ms * 1000


async def identifiers(site: Site) -> None:
    site.rule = chapters.MESSAGE_IDS
    _keys(site)
    await _batches(site)


def _keys(site: Site) -> None:
    """Take keys at different times; compare each part of each key."""
    begin = _ms(2026, 2, 1)
    clock = _Clock(begin)
    keys = UniqueKeys(random.Random(7), clock, "10.1.2.3")
    other = UniqueKeys(random.Random(8), clock, "10.1.2.3").take()
    taken: list[str] = []
    counter, elapsed, used = 0, 0, 0
    random_parts: set[str] = set()
    for now_ms, count in (
        (begin, 3), (begin + 1, 2), (begin + 70_000, 1), (begin + 60_000, 2), (begin + 70_001, _COUNTER_END),
        (begin + 70_001, _COUNTER_END + 5), (begin + 70_002, 1), (begin + 28 * _DAY_MS - 1, 2),
    ):  # fmt: skip
        clock.ms = now_ms
        if now_ms - begin > elapsed:
            elapsed, used = now_ms - begin, 0
        for _ in range(count):
            if used == _COUNTER_END:
                elapsed, used = elapsed + 1, 0
            key = keys.take()
            used += 1
            taken.append(key)
            expected = f"0A010203{key[8:20]}{elapsed:08X}{counter:04X}"
            if key != expected or not _KEY.fullmatch(key):
                site.report(
                    f"the unique key at {now_ms - begin} ms of the month is {key}, expected {expected}"
                )
                return
            random_parts.add(key[8:20])
            counter = (counter + 1) % _COUNTER_END
    site.compare("the parts by chance in one month", 1, len(random_parts))
    site.compare("whether another producer has another part", False, other[8:20] in random_parts)
    months = []
    for month in (3, 4):
        clock.ms = _ms(2026, month, 1) + 5
        key = keys.take()
        months.append(key)
        site.compare("the process of a later month", taken[0][:12], key[:12])
        site.compare("the time in a later month", f"{5:08X}", key[20:28])
    site.compare("the parts by chance of months", 3, len({key[12:20] for key in (taken[0], *months)}))
    site.compare("the keys that are equal to others", 0, len(taken) + 2 - len({*taken, *months}))


def _ms(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1000


def _damaged(whole: bytes) -> Iterator[bytes]:
    """Yield batches with a part that is not right, and one that ends in a message."""
    (size,) = struct.unpack_from(">i", whole)
    for wrong in (size - 1, size + 1, 0, -1):
        yield struct.pack(">i", wrong) + whole[4:]
        yield whole + struct.pack(">i", wrong) + whole[4:]
    for end in (1, 3, 4, 19, 20, len(whole) - 1):
        yield whole[:end]
        yield whole + whole[:end]
    no_text = whole[:-1] + b"\xff"
    yield from (no_text, whole + no_text)


async def _batches(site: Site) -> None:
    """A batch of which one message is damaged is refused as a whole."""
    site.rule = chapters.BATCHES
    await make_topic(site, "t")
    whole = batch([(b"body", 7, {"a": "b"})])
    for wrong in _damaged(whole):
        await send(site, "t", wrong, name="SEND_BATCH_MESSAGE", expects=_ILLEGAL)
    await send(site, "t", whole * 2, name="SEND_BATCH_MESSAGE")
    stored = [(each.body, each.flag, each.properties.get("a")) for each in await records(site, "t")]
    site.compare("the stored messages", [(b"body", 7, "b")] * 2, stored)


IDENTIFIERS: Final = Inspection("identifiers", identifiers)
