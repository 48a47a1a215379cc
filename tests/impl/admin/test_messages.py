"""Tests finding and reading messages.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import pytest

from mqproof.impl.admin import messages
from mqproof.impl.client.model import ClientError, RefusalError
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumedDirectly, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    ConsumerRequest,
    OffsetResponse,
    PullRequest,
    PullResponse,
    QueryMessageRequest,
)
from mqproof.impl.remoting.message import KEYS, TAGS, UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.store.files import record
from tests.impl.admin.site import Answer, Site, play, refusal


def stored(
    key: str, *, offset: int = 0, time_ms: int = 1000, host: tuple[str, int] = ("10.0.0.1", 1)
) -> bytes:
    """Return a record as brokers send it."""
    properties = {KEYS: f"{key} more", UNIQUE_KEY: f"U{key}", TAGS: "a"}
    message = Message("T", key.encode(), properties, store_host=host)
    data = record.encode(message)
    record.place(data, queue_offset=offset, commit_offset=offset * 1000, store_timestamp_ms=time_ms)
    return bytes(data)


def bodies(found: list[StoredMessage]) -> list[str]:
    return [each.message.body.decode() for each in found]


def found(*records: bytes) -> Answer:
    return (0, {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"}, b"".join(records))


def test_a_message_is_found_at_the_position_that_its_id_names() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.VIEW_MESSAGE_BY_ID: found(stored("k"))})
        (example,) = messages._records_of(stored("k", offset=3, host=broker.address))
        assert bodies([await messages.by_offset_id(site.admin, example.offset_message_id)]) == ["k"]
        assert broker.fields_of(RequestCode.VIEW_MESSAGE_BY_ID) == [{"offset": "3000"}]

    play(scenario)


def test_an_invalid_id_and_a_position_without_a_message_are_errors() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.VIEW_MESSAGE_BY_ID: found()})
        (example,) = messages._records_of(stored("k", host=broker.address))
        for text in ("zz", "00", ""):
            with pytest.raises(ClientError, match="is not an offset message id"):
                await messages.by_offset_id(site.admin, text)
        with pytest.raises(ClientError, match="0 messages"):
            await messages.by_offset_id(site.admin, example.offset_message_id)
        broker.answers[RequestCode.VIEW_MESSAGE_BY_ID] = refusal(ResponseCode.SYSTEM_ERROR)
        with pytest.raises(RefusalError):
            await messages.by_offset_id(site.admin, example.offset_message_id)

    play(scenario)


def test_messages_of_a_key_come_from_all_brokers_oldest_first_without_hash_collisions() -> None:
    async def scenario(site: Site) -> None:
        code = RequestCode.QUERY_MESSAGE
        late = await site.add_broker("b-a", {code: found(stored("k", time_ms=9), stored("other", time_ms=1))})
        await site.add_broker("b-b", {code: found(stored("k", time_ms=5))})
        await site.add_broker("b-c", {code: refusal(ResponseCode.QUERY_NOT_FOUND)})
        got = await messages.by_key(site.admin, "T", "k", begin_ms=1, end_ms=10)
        assert [each.store_timestamp_ms for each in got] == [5, 9]
        (fields,) = late.fields_of(code)
        assert fields.pop("_UNIQUE_KEY_QUERY") == "false"
        assert headers.read(QueryMessageRequest, fields) == QueryMessageRequest("T", "k", 64, 1, 10)
        assert await messages.by_key(site.admin, "T", "absent") == []

    play(scenario)


def test_no_more_messages_of_a_key_are_returned_than_requested() -> None:
    async def scenario(site: Site) -> None:
        for name, time_ms in (("b-a", 20), ("b-b", 10)):
            await site.add_broker(name, {RequestCode.QUERY_MESSAGE: found(stored("k", time_ms=time_ms))})
        (only,) = await messages.by_key(site.admin, "T", "k", count_max=1)
        assert only.store_timestamp_ms == 10

    play(scenario)


def test_a_unique_key_matches_only_unique_keys() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.QUERY_MESSAGE: found(stored("k"))})
        assert bodies(await messages.by_key(site.admin, "T", "Uk", kind=messages.KeyKind.UNIQUE)) == ["k"]
        assert await messages.by_key(site.admin, "T", "k", kind=messages.KeyKind.UNIQUE) == []
        assert broker.fields_of(RequestCode.QUERY_MESSAGE)[0]["_UNIQUE_KEY_QUERY"] == "true"

    play(scenario)


def test_a_member_of_a_group_consumes_a_message_on_demand() -> None:
    async def scenario(site: Site) -> None:
        done = ConsumedDirectly(consume_result="CR_LATER", remark="not now", spent_time_mills=7)
        answer: Answer = (0, {}, java_json.write(done))
        broker = await site.add_broker("b-a", {RequestCode.CONSUME_MESSAGE_DIRECTLY: answer})
        assert await messages.consume_directly(site.admin, broker.address, "G", "c1", "ID") == done
        (fields,) = broker.fields_of(RequestCode.CONSUME_MESSAGE_DIRECTLY)
        assert headers.read(ConsumerRequest, fields) == ConsumerRequest("G", "c1", msg_id="ID")

    play(scenario)


def test_tags_are_requested_by_kind_and_match_only_tags() -> None:
    async def scenario(site: Site) -> None:
        answers = {RequestCode.QUERY_MESSAGE: found(stored("k"))}
        broker = await site.add_broker(
            "b-a", answers, "T", "C"
        )  # the topic that is named after the cluster is requested too
        kind = messages.KeyKind.TAG
        assert bodies(await messages.by_key(site.admin, "T", "a", kind=kind)) == ["k"]
        assert await messages.by_key(site.admin, "nowhere", "k", kind=kind, cluster="C") == []
        assert [fields["indexType"] for fields in broker.fields_of(RequestCode.QUERY_MESSAGE)] == ["T", "T"]

    play(scenario)


def offset(value: int) -> Answer:
    return (0, headers.write(OffsetResponse(value)), b"")


def test_a_topic_is_read_queue_by_queue_within_a_time_range() -> None:
    pulled = PullResponse(0, 3, 0, 3)
    batch = b"".join(stored(f"m{at}", offset=at, time_ms=at * 10) for at in range(3))

    async def read(site: Site, begin_ms: int | None = None, end_ms: int | None = None) -> list[str]:
        found = messages.read(site.admin, "T", begin_ms=begin_ms, end_ms=end_ms)
        return [each.message.body.decode() async for _, each in found]

    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.GET_MIN_OFFSET: offset(0),
                RequestCode.GET_MAX_OFFSET: offset(3),
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offset(1),
                RequestCode.PULL_MESSAGE: (0, headers.write(pulled), batch),
            },
            TopicConfig("T", read_queue_nums=1),
        )
        assert await read(site) == ["m0", "m1", "m2"]
        assert await read(site, begin_ms=10, end_ms=15) == ["m1"]
        first, second = (
            headers.read(PullRequest, fields) for fields in broker.fields_of(RequestCode.PULL_MESSAGE)
        )
        assert (first.queue_offset, second.queue_offset) == (0, 1)
        # A search finds any message of its millisecond, so it is for the millisecond before.
        assert broker.fields_of(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)[0]["timestamp"] == "9"
        leads_nowhere = PullResponse(0, 0, 0, 3)
        broker.answers[RequestCode.PULL_MESSAGE] = (0, headers.write(leads_nowhere), batch)
        assert await read(site) == ["m0", "m1", "m2"]  # and the loop ends
        broker.answers[RequestCode.GET_MAX_OFFSET] = offset(2)
        assert await read(site) == ["m0", "m1"]  # the third message was stored later

    play(scenario)


def test_a_queue_is_read_from_an_offset_by_a_group() -> None:
    batch = b"".join(stored(f"m{at}", offset=at) for at in (2, 3))

    async def scenario(site: Site) -> None:
        answers = {
            RequestCode.GET_MIN_OFFSET: offset(1),
            RequestCode.GET_MAX_OFFSET: offset(4),
            RequestCode.PULL_MESSAGE: (0, headers.write(PullResponse(0, 4, 1, 4)), batch),
        }
        broker = await site.add_broker("b-a", answers, TopicConfig("T", read_queue_nums=1))
        for first, begun_at in ((2, 2), (0, 1)):
            found = messages.read(site.admin, "T", first_offset=first, group="G")
            assert [each.queue_offset async for _, each in found] == [2, 3]
            pulled = headers.read(PullRequest, broker.fields_of(RequestCode.PULL_MESSAGE)[-1])
            assert (pulled.consumer_group, pulled.queue_offset) == ("G", begun_at)
        assert broker.fields_of(RequestCode.UPDATE_CONSUMER_OFFSET) == []

    play(scenario)
