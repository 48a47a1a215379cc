"""Tests the diagnosis on the page of a message: the cause for each group, its evidence, and the next step."""

import asyncio

import pytest

from mqproof.impl.client.model import ClientError
from mqproof.impl.console.pages import message_diagnosis
from mqproof.impl.diagnosis import causes
from tests.impl.console.desk import desk
from tests.impl.console.pages.test_consumer_pages import consuming
from tests.impl.console.pages.test_message_pages import address_of


def test_each_group_has_a_cause_and_a_next_step() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("T", b"m", tag="red")
            async with consuming(d, "T", "billing"):
                pass
            text = await d.get(await address_of(d, "T"))
            assert "billing passed" in text.partition("What happened to it?")[2]
            await d.store("T", b"later", tag="red")
            (later,) = (each for each in d.broker.messages("T") if each.body == b"later")
            text = await d.get("/message", id=later.stored.offset_message_id)
            shown = text.partition("What happened to it?")[2]
            assert "billing no_members" in shown
            assert causes.NO_MEMBERS.next_step in shown
            assert "mqproof diagnose" in shown

    asyncio.run(run())


def test_a_message_without_a_diagnosis_is_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        raise ClientError("no broker answers")

    monkeypatch.setattr(message_diagnosis, "answers", failing)

    async def run() -> None:
        async with desk() as d:
            await d.store("T", b"the body")
            text = await d.get(await address_of(d, "T"))
            assert "There is no diagnosis: no broker answers" in text
            assert "the body" in text

    asyncio.run(run())


@pytest.mark.parametrize("cause", [each for each in vars(causes).values() if isinstance(each, causes.Cause)])
def test_only_a_delivered_message_is_shown_as_good(cause: causes.Cause) -> None:
    tone = message_diagnosis._tone(cause.state, needs_action=cause.needs_action)
    assert (tone == "good") == (cause.state is causes.State.DELIVERED)
    assert tone in ("good", "warn", "bad")
