"""Tests the page of producers."""

import asyncio

from mqproof.client import Producer, ProducerConfig, new_message
from tests.impl.console.desk import desk


def test_connected_producers_are_listed_and_found_by_group_and_topic() -> None:
    async def run() -> None:
        async with desk() as d:
            assert "No producer is connected" in await d.get("/producers")
            await Producer(d.session, ProducerConfig(group="shop")).send_or_raise(new_message("T", b"m"))
            await d.session.heartbeat()
            assert f"shop {d.session.client_id}" in await d.get("/producers")
            assert d.session.client_id in await d.get("/producers", group="shop", topic="T")
            text = await d.get("/producers", group="other", topic="T")
            assert "No producer of group other is connected to a broker of topic T." in text

    asyncio.run(run())
