"""How many messages and bytes one answer to a pull or a query has, to the byte.

See docs/reference/protocol/pulling.md, "Pull requests" and "Message queries".
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import batch, make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import STORE
from mqproof.conformance.wire import chapters

_PULL_BYTES: Final = 256 << 10
_QUERY_BYTES: Final = 8 << 20
_TAGGED: Final[Mapping[str, str]] = {"TAGS": "a", "KEYS": "k", "x": "5"}
_SELECTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"subscription": "*"}, {"subscription": "a"}, {"subscription": "a || b"},
    {"subscription": "x > 4", "expressionType": "SQL92"},
)  # fmt: skip


async def _overhead(site: Site) -> int:
    """Return the bytes of a record beside its body."""
    await make_topic(site, "probe")
    await send(site, "probe", b"", of=_TAGGED)
    (record,) = read_records((await pull(site, "probe")).body)
    return len(record.raw) - len("probe")


async def _fill(site: Site, topic: str, sizes: tuple[int, ...], around: int) -> None:
    """Send messages whose records have these sizes."""
    await make_topic(site, topic)
    for size in sizes:
        await send(site, topic, b"x" * (size - around - len(topic)), of=_TAGGED)


async def answer_limits(site: Site) -> None:
    """Pull and query messages that together have the limit, one byte more, and one byte less."""
    site.rule = chapters.PULL_REQUESTS
    await make_group(site, "g")
    around = await _overhead(site)
    quarter = _PULL_BYTES // 4
    for number, (sizes, counts) in enumerate((
        ((quarter,) * 5, (4, 1)), ((quarter, quarter, quarter, quarter + 1, 200), (3, 2)),
        ((quarter, quarter, quarter, quarter - 1, 200), (4, 1)), ((_PULL_BYTES + 1, 200), (1, 1)),
        ((_PULL_BYTES, 200, 200), (1, 2)), ((200, _PULL_BYTES - 200, 200), (2, 1)),
        ((200, _PULL_BYTES - 199, 200), (1, 1, 1)), ((200,) * 35, (32, 3)),
    )):  # fmt: skip
        await _fill(site, f"t{number}", sizes, around)
        for selection in _SELECTIONS:
            await _pulled(site, f"t{number}", counts, selection)
    for most, counts in ((1, (1, 1)), (31, (31, 4)), (32, (32, 3)), (33, (32, 3)), (1000, (32, 3))):
        for selection in _SELECTIONS:
            await _pulled(site, "t7", counts, {**selection, "maxMsgNums": most})
    await _queried(site, around)


async def _pulled(site: Site, topic: str, counts: tuple[int, ...], selection: dict[str, Any]) -> None:
    offset = 0
    for count in counts:
        answer = await pull(site, topic, offset, expects=None, **selection)
        found = [each.queue_offset for each in read_records(answer.body)] if not answer.code else []
        site.compare(f"the messages of {topic} from {offset} with {selection}",
                     list(range(offset, offset + count)), found)  # fmt: skip
        offset += count
        site.compare("the next offset", str(offset), answer.fields.get("nextBeginOffset"))


async def _queried(site: Site, around: int) -> None:
    """A query returns the newest messages, up to its number, 64, and 8 MiB."""
    site.rule = chapters.MESSAGE_QUERIES
    size = _QUERY_BYTES // 4
    await _fill(site, "q", (size,) * 5, around)
    await _fill(site, "r", (size, size, size, size + 1), around)
    await _fill(site, "s", (200, size * 2), around)
    await make_topic(site, "many")
    for _ in range(7):
        await send(site, "many", batch([(b"m", 0, {"KEYS": "k"})] * 10), name="SEND_BATCH_MESSAGE")
    for topic, most, expected in (
        ("q", 64, [1, 2, 3, 4]), ("q", 2, [3, 4]), ("r", 64, [1, 2, 3]), ("s", 64, [0, 1]),
        ("many", 64, list(range(6, 70))), ("many", 65, list(range(6, 70))), ("many", 63, list(range(7, 70))),
        ("many", 1, [69]),
    ):  # fmt: skip
        answer = await site.ask(
            "QUERY_MESSAGE", topic=topic, key="k", maxNum=most, beginTimestamp=0, endTimestamp=1 << 60
        )
        found = [each.queue_offset for each in read_records(answer.body)]
        site.compare(f"the messages of a query for {most} of {topic}", expected, found)


ANSWER_LIMITS: Final = Inspection(
    "answer limits", answer_limits,
    {"store": replace(STORE, commit_log_segment_bytes=1 << 26), "property_filter": True},
)  # fmt: skip
