"""Tests the page of operations: name servers, and changes of brokers."""

import asyncio

from tests.impl.console.desk import desk


def test_name_servers_and_the_consoles_own_settings_are_shown() -> None:
    async def run() -> None:
        async with desk() as d:
            text = await d.get("/operations")
            assert f"{d.broker.name_server} answers" in text
            assert "Changes not allowed (--allow-changes)" in text
            assert "not needed: the brokers check no accounts" in text

    asyncio.run(run())


def test_a_broker_loses_and_gets_its_write_permission() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"m")
            assert "Producers no longer send to broker-a" in await d.post(
                "/operations/permit", broker="broker-a", change="wipe"
            )
            assert "R- (4)" in await d.get("/topic", name="T")
            assert "Producers again send to broker-a" in await d.post(
                "/operations/permit", broker="broker-a", change="add"
            )
            assert "RW (6)" in await d.get("/topic", name="T")

    asyncio.run(run())


def test_a_broker_is_cleaned_up_and_gets_another_setting() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            html = await d.html("/operations")
            broker = html.partition('<option value="127.0.0.1:')[2].partition('"')[0]
            broker = f"127.0.0.1:{broker}"
            for what in ("queues", "log", "topics"):
                assert f"{broker} deletes" in await d.post("/operations/clean", broker=broker, what=what)
            text = await d.post("/operations/setting", broker=broker, key="fileReservedTime", value="48")
            assert "fileReservedTime is '48' now." in text
            assert "fileReservedTime 48" in await d.get("/broker", name="broker-a")
            await d.post("/operations/setting", status=403, broker=broker, key="listenPort", value="1")

    asyncio.run(run())


def test_the_console_connects_to_no_address_that_the_name_server_does_not_know() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            text = await d.post("/operations/clean", status=502, broker="127.0.0.1:1", what="log")
            assert "The name server knows no broker at 127.0.0.1:1." in text
            assert "Broker: 'x' is not an address" in await d.post(
                "/operations/clean", status=400, broker="x"
            )

    asyncio.run(run())
