"""Tests what a broker does with a reply: pushes it to its requester, stores it, and answers its sender.

Source: docs/reference/protocol/requests-and-replies.md.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace as replaced

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors.replies import send_reply
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import Heartbeat, ProducerData
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import PushReplyRequest, SendRequest, UnregisterClientRequest
from mqproof.impl.remoting.message import Message, decode_properties, encode_properties
from mqproof.impl.remoting.request_handler import RefusedError, handler
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.files import record
from mqproof.impl.store.results import PutResult, PutStatus
from tests.impl.world import SMALL_STORE, World, play

TOPIC = "DefaultCluster_REPLY_TOPIC"
PROPERTIES = {"CORRELATION_ID": "i", "REPLY_TO_CLIENT": "me", "TTL": "3000", "MSG_TYPE": "reply"}
HEADER = SendRequest(
    producer_group="RG", topic=TOPIC, default_topic="TBW102", default_topic_queue_nums=4, queue_id=0,
    sys_flag=0, born_timestamp=7, flag=3, properties=encode_properties(PROPERTIES),
)  # fmt: skip
CONFIG = BrokerConfig(store_directory="/store", port=0, store=SMALL_STORE)


class Requester:
    """A client that waits for replies on its own connection, and answers each push with `code`."""

    def __init__(self, world: World, client_id: str = "me", code: ResponseCode | None = ResponseCode.SUCCESS):
        self._world, self.id, self._code = world, client_id, code
        self.pushed: list[Command] = []
        handle = handler({RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._push})
        self._client = RemotingClient(world.runtime.remoting, handle)

    async def greet(self, groups: Sequence[str] = ("PG",)) -> "Requester":
        producers = [ProducerData(group) for group in groups]
        body = java_json.write(Heartbeat(self.id, [], producers), standard=True)
        request = new_request(RequestCode.HEART_BEAT, body=body)
        assert (await self._client.invoke(self._world.broker_address, request, 5)).code == 0
        return self

    async def unregister(self, group: str) -> None:
        fields = headers.write(UnregisterClientRequest(self.id, producer_group=group))
        request = new_request(RequestCode.UNREGISTER_CLIENT, fields)
        assert (await self._client.invoke(self._world.broker_address, request, 5)).code == 0

    async def leave(self) -> None:
        await self._client.close()

    def _push(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a handler's signature
        self.pushed.append(request)
        return None if self._code is None else request.answer(self._code, remark="no")


async def reply(world: World, header: SendRequest = HEADER, body: bytes = b"re") -> Command:
    fields = headers.write_send_v2(header)
    return await world.ask_raw(new_request(RequestCode.SEND_REPLY_MESSAGE_V2, fields, body))


def stored(world: World) -> list[bytes]:
    assert world.broker is not None
    return [record.decode(data).message.body for data in world.broker.store.get(TOPIC, 0, 0).records]


def test_a_reply_is_pushed_stored_and_answered_with_its_place() -> None:
    async def scenario(world: World) -> None:
        requester = await Requester(world).greet()
        answer = await reply(world)
        (pushed,) = requester.pushed
        header = headers.read(PushReplyRequest, pushed.fields)
        assert (header.topic, header.producer_group, header.flag, header.born_timestamp) == (
            TOPIC,
            "RG",
            3,
            7,
        )
        assert header.store_host == str(world.broker_address)
        assert header.queue_id == 0
        properties = decode_properties(header.properties or "")
        assert int(properties.pop("PUSH_REPLY_TIME")) == header.store_timestamp
        assert properties == PROPERTIES
        assert pushed.body == b"re"
        assert answer.code == ResponseCode.SUCCESS
        assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("0", "0")
        assert len(answer.fields["msgId"]) == 32
        assert answer.fields["TRACE_ON"] == "true"
        assert stored(world) == [b"re"]

    play(scenario)


def test_the_request_with_long_field_names_works_alike() -> None:
    async def scenario(world: World) -> None:
        requester = await Requester(world).greet()
        command = new_request(RequestCode.SEND_REPLY_MESSAGE, headers.write(HEADER), b"re")
        assert (await world.ask_raw(command)).code == ResponseCode.SUCCESS
        assert len(requester.pushed) == 1

    play(scenario)


def test_without_storing_the_answer_names_no_place() -> None:
    async def scenario(world: World) -> None:
        await Requester(world).greet()
        answer = await reply(world)
        assert (answer.code, answer.fields["msgId"], answer.fields["queueOffset"]) == (0, "0", "0")
        assert stored(world) == []

    play(scenario, config=replace(CONFIG, store_replies=False))


def test_only_the_client_that_is_named_gets_the_reply() -> None:
    async def scenario(world: World) -> None:
        me, other = await Requester(world).greet(), await Requester(world, "other").greet()
        await reply(world)
        assert (len(me.pushed), len(other.pushed)) == (1, 0)

    play(scenario)


def test_a_client_that_reconnected_gets_the_reply_on_its_latest_connection() -> None:
    async def scenario(world: World) -> None:
        old, new = await Requester(world).greet(), await Requester(world).greet()
        await reply(world)
        assert (len(old.pushed), len(new.pushed)) == (0, 1)
        await new.leave()
        await asyncio.sleep(0.1)
        await reply(world)
        assert len(old.pushed) == 1

    play(scenario)


def test_a_client_is_found_until_it_leaves_its_last_producer_group() -> None:
    async def scenario(world: World) -> None:
        requester = await Requester(world).greet(groups=("PG", "Other"))
        await requester.unregister("PG")
        assert (await reply(world)).code == ResponseCode.SUCCESS
        await requester.unregister("Other")
        assert (await reply(world)).code == ResponseCode.SYSTEM_ERROR

    play(scenario)


def test_a_client_that_changes_its_id_is_found_under_the_new_one() -> None:
    async def scenario(world: World) -> None:
        requester = Requester(world, "old")
        await requester.greet()
        requester.id = "me"
        await requester.greet()
        assert (await reply(world)).code == ResponseCode.SUCCESS
        properties = encode_properties({**PROPERTIES, "REPLY_TO_CLIENT": "old"})
        answer = await reply(world, replaced(HEADER, properties=properties))
        assert answer.remark == "client old is not connected"

    play(scenario)


def test_a_reply_to_a_client_that_is_gone_is_stored_and_refused() -> None:
    async def scenario(world: World) -> None:
        requester = await Requester(world).greet()
        await requester.leave()
        await asyncio.sleep(0.1)
        answer = await reply(world)
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "client me is not connected")
        assert stored(world) == [b"re"]

    play(scenario)


@pytest.mark.parametrize(
    ("code", "remark"), [(ResponseCode.SYSTEM_ERROR, "refused the reply: no"), (None, "did not confirm")]
)
def test_an_unconfirmed_reply_is_no_success(code: ResponseCode | None, remark: str) -> None:
    """REPLY-3 ReplyConfirmed."""

    async def scenario(world: World) -> None:
        await Requester(world, code=code).greet()
        began_s = world.loop.time()
        answer = await reply(world)
        assert round(world.loop.time() - began_s, 2) == (10 if code is None else 0)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert remark in (answer.remark or "")

    play(scenario)


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "T"}, ResponseCode.NO_PERMISSION, f"a reply to topic T, {TOPIC} expected"),
        ({"queue_id": 1}, ResponseCode.SYSTEM_ERROR, "queue 1"),
        ({"batch": True}, ResponseCode.MESSAGE_ILLEGAL, "batch"),
        ({"sys_flag": 4}, ResponseCode.MESSAGE_ILLEGAL, "transaction"),
        ({"properties": None}, ResponseCode.SYSTEM_ERROR, "without the property REPLY_TO_CLIENT"),
        (
            {"properties": encode_properties({"REPLY_TO_CLIENT": "me"})},
            ResponseCode.SYSTEM_ERROR,
            "without the property CORRELATION_ID",
        ),
        (
            {"properties": encode_properties({**PROPERTIES, "DELAY": "3"})},
            ResponseCode.MESSAGE_ILLEGAL,
            "with the property DELAY",
        ),
    ],
)
def test_what_is_no_reply_is_refused(changes: dict[str, object], code: ResponseCode, remark: str) -> None:
    async def scenario(world: World) -> None:
        requester = await Requester(world).greet()
        fields = {**{name: getattr(HEADER, name) for name in HEADER.__struct_fields__}, **changes}
        answer = await reply(world, SendRequest(**fields))
        assert answer.code == code
        assert remark in (answer.remark or "")
        assert answer.fields["MSG_REGION"] == "DefaultRegion"  # Java clients require it
        assert requester.pushed == []
        assert stored(world) == []

    play(scenario)


def test_a_body_that_is_too_large_is_refused() -> None:
    async def scenario(world: World) -> None:
        await Requester(world).greet()
        assert (await reply(world, body=bytes(101))).code == ResponseCode.MESSAGE_ILLEGAL

    play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, message_bytes_max=100)))


def test_a_slave_passes_no_replies_on() -> None:
    async def scenario(world: World) -> None:
        assert (await reply(world)).code == ResponseCode.SERVICE_NOT_AVAILABLE

    slave = replace(CONFIG, broker_id=1, replication=ReplicationConfig(role=Role.SLAVE))
    play(scenario, config=slave)


# One reply, with a store that answers as the test says.


class Site:
    """The services of a broker; no client waits for a reply."""

    def __init__(self, status: PutStatus = PutStatus.PUT_OK, *, is_busy: bool = False) -> None:
        self.status, self.is_busy = status, is_busy
        self.kept: list[Message] = []
        self.counted: list[tuple[Any, ...]] = []
        self.is_slave = False
        self.config = replace(CONFIG, permission=6, store=replace(SMALL_STORE, message_bytes_max=10))
        self.clients = SimpleNamespace(producer_channel=lambda _: None)
        self.sends, self.store, self.address = self, self, Address("10.0.0.1", 10911)
        self.statistics = SimpleNamespace(
            put=lambda *what: self.counted.append(what),
            failed_puts=SimpleNamespace(add=lambda count: self.counted.append(("failed", count))),
        )

    @contextmanager
    def admitted(self, size: int) -> Iterator[None]:
        if self.is_busy:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, f"no room for {size}")
        yield

    async def put(self, message: Message) -> PutResult:
        self.kept.append(message)
        return PutResult(self.status, 7, 1000, "id")

    def tracing_fields(self) -> dict[str, str]:
        return {"TRACE_ON": "true"}

    def reply(self, body: bytes = b"re", **changes: Any) -> Command:
        fields = headers.write(replaced(HEADER, **changes))
        request = new_request(RequestCode.SEND_REPLY_MESSAGE, fields, body)
        channel: Any = SimpleNamespace(remote=Address("10.0.0.2", 5))
        answer = run_simulated(send_reply(cast("Any", self), request, channel))
        assert answer is not None
        return answer


@pytest.mark.parametrize(
    ("status", "is_busy", "place", "counted"),
    [
        (PutStatus.PUT_OK, False, ("id", "7"), [(TOPIC, 1, 2)]),
        (PutStatus.FLUSH_DISK_TIMEOUT, False, ("id", "7"), [(TOPIC, 1, 2)]),
        (PutStatus.SERVICE_NOT_AVAILABLE, False, ("0", "0"), [("failed", 1)]),
        (PutStatus.PUT_OK, True, ("0", "0"), []),
    ],
)
def test_the_answer_names_the_place_of_a_reply_only_if_it_is_stored(
    status: PutStatus, is_busy: bool, place: tuple[str, str], counted: list[tuple[Any, ...]]
) -> None:
    site = Site(status, is_busy=is_busy)
    answer = site.reply()
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "client me is not connected")
    assert answer.fields == {
        "msgId": place[0], "queueId": "0", "queueOffset": place[1], "TRACE_ON": "true",
    }  # fmt: skip
    assert (len(site.kept), site.counted) == (0 if is_busy else 1, counted)


@pytest.mark.parametrize(("times", "kept"), [(None, 0), (0, 0), (3, 3)])
def test_a_stored_reply_has_all_its_fields_and_properties_except_whether_to_wait(
    times: int | None, kept: int
) -> None:
    site = Site()
    properties = encode_properties({**PROPERTIES, "WAIT": "false"})
    site.reply(properties=properties, reconsume_times=times, queue_id=-1)
    [message] = site.kept
    assert message == Message(
        topic=TOPIC,
        body=b"re",
        properties=PROPERTIES,
        queue_id=0,
        flag=3,
        sys_flag=0,
        born_timestamp_ms=7,
        born_host=Address("10.0.0.2", 5),
        store_host=site.address,
        reconsume_times=kept,
    )


@pytest.mark.parametrize(
    ("body", "changes", "code"),
    [
        (b"x" * 10, {}, None),
        (b"x" * 11, {}, ResponseCode.MESSAGE_ILLEGAL),
        (b"x", {"queue_id": 0}, None),
        (b"x", {"queue_id": -1}, None),
        (b"x", {"queue_id": 1}, ResponseCode.SYSTEM_ERROR),
        (b"x", {"queue_id": -2}, ResponseCode.SYSTEM_ERROR),
        (b"x", {"sys_flag": 4}, ResponseCode.MESSAGE_ILLEGAL),
        (b"x", {"sys_flag": 8}, ResponseCode.MESSAGE_ILLEGAL),
        (b"x", {"sys_flag": 1}, None),
        (b"x", {"batch": True}, ResponseCode.MESSAGE_ILLEGAL),
    ],
)
def test_a_reply_is_accepted_within_the_limits(
    body: bytes, changes: dict[str, Any], code: ResponseCode | None
) -> None:
    site = Site()
    answer = site.reply(body, **changes)
    assert len(site.kept) == (1 if code is None else 0)
    if code is not None:
        assert answer.code == code


def test_a_broker_that_may_not_be_written_passes_no_replies_on() -> None:
    site = Site()
    site.config = replace(site.config, permission=4)
    assert (site.reply().code, site.kept) == (ResponseCode.NO_PERMISSION, [])
