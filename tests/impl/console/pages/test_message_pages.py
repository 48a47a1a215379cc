"""Tests the pages of messages: three ways to find one, its body, its trace, and why it was not consumed."""

import asyncio
import re
from typing import Any

import pytest

from mqproof.impl.console.pages import message_pages
from mqproof.impl.console.pages.message_pages import BODY_BYTES_SHOWN
from tests.impl.console.desk import Desk, desk
from tests.impl.console.pages.test_consumer_pages import consuming


async def address_of(d: Desk, topic: str) -> str:
    """Return the address of the page of a topic's first message."""
    html = await d.html("/messages", topic=topic)
    found = re.search(r'href="(/message\?id=\w+)"', html)
    assert found is not None
    return found[1]


def test_messages_are_found_by_time_by_key_and_by_id() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("T", b"one", keys="order-1")
            await d.store("T", b"two", keys="order-2")
            (one, _) = sorted(d.broker.messages("T"), key=lambda each: each.body)
            text = await d.get("/messages", topic="T")
            assert "2 messages" in text
            assert text.index("one") < text.index("two")
            assert "no message that was stored in this time" in await d.get(
                "/messages", topic="T", end="2020-01-01T00:00"
            )
            assert "1 message " in await d.get("/messages", by="key", topic="T", key="order-1")
            assert "has the key order-3" in await d.get("/messages", by="key", topic="T", key="order-3")
            ways: list[dict[str, Any]] = [
                {"id": one.message_id, "topic": "T"},
                {"id": one.stored.offset_message_id},
            ]
            for query in ways:
                text = await d.get("/message", **query)
                assert one.message_id in text
                assert "one" in text
            await d.get("/message", id="x" * 32, topic="T", status=404)
            assert "is not an offset message id" in await d.get("/message", id="nonsense", status=502)

    asyncio.run(run())


def test_more_messages_than_a_page_has_are_on_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_pages, "COUNT_MAX", 3)

    async def run() -> None:
        async with desk() as d:
            await d.store("T", *[b"%d" % number for number in range(7)])
            html = await d.html("/messages", topic="T")
            assert "3 messages" in html
            assert re.search(r'href="/messages\?topic=T&amp;begin=[^"]+">Later messages', html)

    asyncio.run(run())


def test_a_message_says_which_group_has_not_consumed_it_and_why() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"m", tag="red")
            assert "No group consumes its topic" in await d.get(await address_of(d, "T"))
            async with consuming(d, "T", "billing"):
                where = await address_of(d, "T")
                text = await d.post("/message/consume", id=where.partition("=")[2], group="billing")
                assert "reports CR_SUCCESS" in text
            text = await d.get(where)
            assert "billing NOT_ONLINE No member of the group is connected: start a consumer." in text
            assert "There are no traces" in text

    asyncio.run(run())


def test_a_copy_is_sent_under_the_same_id() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"m")
            where = await address_of(d, "T")
            assert "SEND_OK: a copy is in T@broker-a:" in await d.post(
                "/message/resend", id=where.partition("=")[2]
            )
            one, other = d.broker.messages("T")
            assert (one.message_id, one.body) == (other.message_id, other.body)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"a\n<b>\tc\x00", r"a <b> c\x00"),
        (b"\x00\xffhello", "00000000 00 ff 68 65 6c 6c 6f"),
        (
            "é".encode() * BODY_BYTES_SHOWN,
            f"The first {BODY_BYTES_SHOWN:,} of {2 * BODY_BYTES_SHOWN:,} bytes.",
        ),
    ],
)
def test_any_body_is_shown_and_a_long_one_is_cut(body: bytes, shown: str) -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("T", body)
            assert shown in await d.get(await address_of(d, "T"))

    asyncio.run(run())
