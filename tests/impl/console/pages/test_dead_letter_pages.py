"""Tests the dead letters of a group, and that only this group receives them again."""

import asyncio
import re
from collections.abc import Sequence

import pytest

from mqproof.client import ConsumeFrom, PushConsumer, PushConsumerConfig, ReceivedMessage, RetryLater
from mqproof.impl.console.pages import dead_letter_pages
from tests.impl.console.desk import Desk, desk

CONFIG = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


async def fail_all(d: Desk, count: int) -> None:
    """Let a member of the group move every message to its dead letters."""
    async with (
        d.broker.client() as session,
        PushConsumer(session, "mailer", lambda _: RetryLater(delay_level=-1), CONFIG) as consumer,
    ):
        await consumer.subscribe("T")
        await d.broker.expect("%DLQ%mailer", count, within_s=30)


def test_a_dead_letter_is_sent_to_its_group_again_and_to_no_other() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"one", b"two")
            await fail_all(d, 2)
            html = await d.html("/dead-letters", group="mailer")
            assert "2 dead letters" in html
            first = re.findall(r'name="id" value="(\w+)"', html)[0]
            assert "SEND_OK: a copy is in %RETRY%mailer@" in await d.post(
                "/dead-letters/resend", group="mailer", id=first
            )
            received: list[ReceivedMessage] = []
            got_one = asyncio.Event()

            def listener(messages: Sequence[ReceivedMessage]) -> None:
                received.extend(messages)
                got_one.set()

            async with (
                d.broker.client() as session,
                PushConsumer(session, "mailer", listener, CONFIG) as consumer,
            ):
                await consumer.subscribe("T")
                async with asyncio.timeout(30):
                    await got_one.wait()
            (message,) = received
            sent = {each.message_id: each.body for each in d.broker.messages("T")}
            assert (message.topic, message.body) == ("T", sent[message.message_id])
            assert message.reconsume_times == 0
            assert len(d.broker.messages("T")) == 2

    asyncio.run(run())


def test_all_dead_letters_of_a_page_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_pages, "COUNT_MAX", 2)

    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"1", b"2", b"3")
            await fail_all(d, 3)
            html = await d.html("/dead-letters", group="mailer")
            assert "2 dead letters" in html
            assert "Later dead letters" in html
            text = await d.post("/dead-letters/resend-all", group="mailer", count=2)
            assert "2 dead letters sent again" in text
            await d.broker.expect("%RETRY%mailer", 2, within_s=30)

    asyncio.run(run())


def test_a_group_without_dead_letters_and_a_message_that_is_none() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            assert "This group has no dead letter" in await d.get("/dead-letters", group="mailer")
            await d.store("T", b"m")
            (message,) = d.broker.messages("T")
            id_ = message.stored.offset_message_id
            text = await d.post("/dead-letters/resend", status=400, group="mailer", id=id_)
            assert "a dead letter of group mailer expected" in text

    asyncio.run(run())
