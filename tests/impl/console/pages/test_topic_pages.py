"""Tests the pages of topics: list, route, queues, groups, create, change, send, delete."""

import asyncio

from tests.impl.console.desk import desk


def test_topics_are_filtered_by_kind_and_name() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("Orders", b"m")
            await d.store("Payments", b"m")
            text = await d.get("/topics")
            assert "2 topics Topic Kind Orders normal Payments normal" in text
            assert "1 topic Topic Kind Orders normal" in await d.get("/topics", search="ORD")
            assert "No topic of this kind contains 'x'" in await d.get("/topics", search="x")
            assert "DefaultCluster system" in await d.get("/topics", kind="system")

    asyncio.run(run())


def test_a_topic_shows_its_route_queues_and_groups() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("Orders", *[b"m"] * 5)
            text = await d.get("/topic", name="Orders")
            assert "DefaultCluster broker-a master 127.0.0.1:" in text
            assert "RW (6)" in text
            assert "No group consumes this topic. Start one:" in text
            assert "the name server knows no topic Nope" in (
                await d.get("/topic", name="Nope", status=404)
            ).replace("The", "the")

    asyncio.run(run())


def test_a_topic_is_created_changed_and_deleted() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            values = {"read_queues": 3, "write_queues": 3, "permission": 6}
            await d.post("/topic/save", name="New", cluster="DefaultCluster", **values)
            assert "3 3 RW (6)" in await d.get("/topic", name="New")
            await d.post("/topic/save", name="New", read_queues=5, write_queues=2, permission=4)
            assert "5 2 R- (4)" in await d.get("/topic", name="New")
            assert "the name of the topic, 'New', expected" in await d.post(
                "/topic/delete", status=400, name="New"
            )
            assert "Topic New is deleted." in await d.post("/topic/delete", name="New", confirm="New")
            await d.get("/topic", name="New", status=404)

    asyncio.run(run())


def test_wrong_settings_are_refused_before_any_request() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            for values, text in (
                ({"name": "a b"}, "Name: the name 'a b' has a character other than"),
                ({"name": "T", "read_queues": 0}, "Read_queues is '0', a number from 1 to 1024 expected"),
                ({"name": "T", "permission": 1}, "Permission is '1', one of 6, 4, 2 expected"),
                ({"name": "T", "cluster": "Nope"}, "no master in cluster Nope"),
            ):
                status = 502 if "cluster" in values else 400
                assert text.lower() in (await d.post("/topic/save", status=status, **values)).lower()

    asyncio.run(run())


def test_a_message_is_sent_with_its_tag_and_keys_to_a_topic_that_exists() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("Orders", b"m")
            text = await d.post("/topic/send", name="Orders", body="one\r\ncoffee é", tag="t", keys="k1 k2")
            assert "SEND_OK: " in text
            sent = next(each for each in d.broker.messages("Orders") if each.body != b"m")
            assert (sent.body, sent.tag, sent.keys) == ("one\ncoffee é".encode(), "t", ["k1", "k2"])
            await d.post("/topic/send", status=404, name="Odrers", body="m")
            assert "This message cannot be sent" in await d.post(
                "/topic/send", status=400, name="Orders", body="m", tag="a||b"
            )
            d.broker.fail_next("send", 3, code="NO_PERMISSION", remark="closed")
            assert "The message is not stored: closed" in await d.post("/topic/send", name="Orders", body="m")

    asyncio.run(run())
