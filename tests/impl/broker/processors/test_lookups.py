"""Tests a broker's search by key and by id (docs/reference/protocol/pulling.md, "Message queries")."""

import pytest

from mqproof.impl.broker.processors import lookups
from mqproof.impl.client.model import MessageQueue, Sent
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    UNIQUE_KEY_QUERY,
    QueryMessageRequest,
    QueryMessageResponse,
    ViewMessageRequest,
)
from mqproof.impl.remoting.message import KEYS, Message, parse_offset_message_id
from mqproof.impl.store.files import record
from tests.impl.world import World, play

QUEUE = MessageQueue("T", "broker-a", 0)
FOREVER = 1 << 62


async def send(world: World, body: str, keys: str = "") -> Sent:
    outcome = await world.producer.send(Message("T", body.encode(), {KEYS: keys} if keys else {}), QUEUE)
    assert isinstance(outcome, Sent)
    return outcome


async def query(world: World, key: str, count: int = 32, **changes: int) -> Command:
    times = {"begin_timestamp": 0, "end_timestamp": FOREVER, **changes}
    return await world.ask(RequestCode.QUERY_MESSAGE, QueryMessageRequest("T", key, count, **times))


def bodies(answer: Command) -> list[str]:
    data, found = answer.body, []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(record.decode(data[:size]).message.body.decode())
        data = data[size:]
    return found


def test_a_key_finds_its_messages_in_store_order() -> None:
    async def scenario(world: World) -> None:
        for number in range(5):
            await send(world, f"m{number}", "all even" if number % 2 == 0 else "all")
        answer = await query(world, "even")
        assert (answer.code, bodies(answer)) == (ResponseCode.SUCCESS, ["m0", "m2", "m4"])
        assert bodies(await query(world, "all", count=2)) == ["m3", "m4"]
        response = headers.read(QueryMessageResponse, answer.fields)
        assert world.broker is not None
        assert response.index_last_update_phyoffset == world.broker.store.index_end[1]

    play(scenario)


def test_a_unique_key_finds_its_message_whatever_count_is_requested() -> None:
    async def scenario(world: World) -> None:
        sent = await send(world, "a")
        fields = headers.write(QueryMessageRequest("T", sent.message_id, 0, 0, FOREVER))
        request = new_request(RequestCode.QUERY_MESSAGE, {**fields, UNIQUE_KEY_QUERY: "true"})
        assert bodies(await world.ask_raw(request)) == ["a"]

    play(scenario)


@pytest.mark.parametrize(
    ("key", "changes"),
    [("other", {}), ("k", {"begin_timestamp": FOREVER}), ("k", {"end_timestamp": 1}), ("", {})],
)
def test_a_key_without_a_message_is_not_found(key: str, changes: dict[str, int]) -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", "k")
        answer = await query(world, key, **changes)
        assert (answer.code, answer.body) == (ResponseCode.QUERY_NOT_FOUND, b"")

    play(scenario)


def test_an_answer_has_at_most_64_messages_and_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        for number in range(70):
            await send(world, f"m{number}", "k")
        assert bodies(await query(world, "k", count=1000)) == [f"m{number}" for number in range(6, 70)]
        assert bodies(await query(world, "k", count=-1)) == []
        monkeypatch.setattr(lookups, "_BYTES_MAX", 500)
        assert bodies(await query(world, "k")) == ["m68", "m69"]
        monkeypatch.setattr(lookups, "_BYTES_MAX", 1)
        assert bodies(await query(world, "k")) == ["m69"], "one message whatever its size"

    play(scenario)


def test_the_offset_message_id_leads_to_the_message() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a")
        sent = await send(world, "b")
        _, offset = parse_offset_message_id(sent.offset_message_id)
        answer = await world.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(offset))
        assert (answer.code, bodies(answer)) == (ResponseCode.SUCCESS, ["b"])

    play(scenario)


@pytest.mark.parametrize("offset", [-1, 1, 1 << 40])
def test_a_position_where_no_message_begins_is_an_error(offset: int) -> None:
    async def scenario(world: World) -> None:
        await send(world, "a")
        answer = await world.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(offset))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert f"no message begins at {offset}" in (answer.remark or "")

    play(scenario)
