"""Tests the pages of consumer groups: progress, members, settings, resets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mqproof.client import ConsumeFrom, PushConsumer, PushConsumerConfig
from tests.impl.console.desk import Desk, desk


@asynccontextmanager
async def consuming(d: Desk, topic: str, group: str) -> AsyncIterator[None]:
    """Run a member of a group that consumes everything."""
    consumed = asyncio.Event()
    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with (
        d.broker.client() as session,
        PushConsumer(session, group, lambda _: consumed.set(), config) as consumer,
    ):
        await consumer.subscribe(topic, "red || blue")
        async with asyncio.timeout(30):
            await consumed.wait()
        yield


async def until(d: Desk, text: str, path: str, **query: Any) -> str:
    """Load a page until it has a text. Returns what it shows then."""
    async with asyncio.timeout(30):
        while text not in (found := await d.get(path, **query)):
            await asyncio.sleep(0.02)
    return found


def test_a_group_shows_its_progress_members_and_subscriptions() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("T", *[b"m"] * 8, tag="red")
            async with consuming(d, "T", "billing"):
                text = await d.get("/consumers")
                assert "1 group " in text
                assert "billing 1 push clustering" in text
                text = await until(
                    d, "consumer group, push, clustering, 1 member", "/consumer", group="billing"
                )
                for part in ("Progress", "PYTHON", "Subscriptions", "May consume"):
                    assert part in text
                (client,) = {word for word in text.split() if word.startswith("127.0.0.1@")}
                text = await d.get("/client", group="billing", client=client)
                assert "T broker-a 0" in text
                assert "PROP_CLIENT_VERSION" in text
            text = await until(d, "offline", "/consumer", group="billing")
            assert "No member is connected" in text
            assert "billing 0" in await d.get("/consumers")
            await d.get("/client", group="billing", client="nobody", status=404)
            assert "No broker knows group nobody" in await d.get("/consumer", group="nobody", status=404)

    asyncio.run(run())


def test_offsets_are_reset_to_a_time_to_the_begin_and_to_the_end() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", *[b"m"] * 8, tag="red")
            async with consuming(d, "T", "billing"):
                pass
            where: dict[str, Any] = {"topic": "T", "group": "billing"}
            assert "billing continues in 4 queues of T, at offsets 0 to 0" in await d.post(
                "/consumer/reset", **where, target="begin"
            )
            assert "8 messages wait" in await d.get("/consumer", group="billing")
            assert "at offsets 2 to 2" in await d.post("/consumer/reset", **where, target="end")
            assert "at offsets 0 to 0" in await d.post(
                "/consumer/reset", **where, target="time", time="2020-01-01T00:00:00"
            )
            assert "Time is empty, a time expected" in await d.post("/consumer/reset", status=400, **where)
            assert "Target is 'x'" in await d.post("/consumer/reset", status=400, **where, target="x")

    asyncio.run(run())


def test_a_group_is_created_changed_and_deleted() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.post(
                "/consumer/save",
                group="G",
                cluster="DefaultCluster",
                retry_max=3,
                retry_queues=2,
                consume="yes",
            )
            text = await d.get("/consumer", group="G")
            assert "yes no 3 2" in text
            await d.post("/consumer/save", group="G", retry_max=5, retry_queues=1, broadcast="yes")
            assert "no yes 5 1" in await d.get("/consumer", group="G")
            assert "G 0" in await d.get("/consumers")
            assert (
                "no broker has settings" in (await d.post("/consumer/save", status=502, group="Nope")).lower()
            )
            assert "the name of the group, 'G', expected" in await d.post(
                "/consumer/delete", status=400, group="G"
            )
            assert "Group G is deleted." in await d.post("/consumer/delete", group="G", confirm="G")
            await d.get("/consumer", group="G", status=404)

    asyncio.run(run())
