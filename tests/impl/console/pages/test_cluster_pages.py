"""Tests the pages of the cluster and of a broker."""

import asyncio

from tests.impl.console.desk import desk


def test_brokers_are_listed_with_their_state() -> None:
    async def run() -> None:
        async with desk() as d:
            text = await d.get("/cluster")
            assert "1 master and 0 slaves in 1 cluster" in text
            assert "DefaultCluster broker-a master 127.0.0.1:" in text
            assert "V4_9_8" in text

    asyncio.run(run())


def test_a_broker_shows_its_state_replication_and_configuration() -> None:
    async def run() -> None:
        async with desk() as d:
            text = await d.get("/broker", name="broker-a", id=0)
            for part in (
                "Broker broker-a",
                "master of cluster DefaultCluster",
                "Messages in/s",
                "Replication",
            ):
                assert part in text
            assert "putMessageEntireTimeMax" in text
            assert "flushDiskType ASYNC_FLUSH" in text

    asyncio.run(run())


def test_an_unknown_broker_is_named() -> None:
    async def run() -> None:
        async with desk() as d:
            text = await d.get("/broker", name="b", id=3, status=502)
            assert "The name server knows no broker b with id 3." in text

    asyncio.run(run())
