"""Tests the requests that brokers send to a client, and its answers."""

import asyncio
import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from mqproof.impl.client.connection.inbound_requests import processors
from mqproof.impl.client.connection.waiting_replies import WaitingReplies
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumedDirectly,
    ConsumerStatus,
    HeldQueue,
    QueueOffsets,
    RunningInfo,
)
from mqproof.impl.remoting.bodies import MessageQueue as NamedQueue
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    CheckTransactionRequest,
    ConsumerGroupRequest,
    ConsumerRequest,
    ConsumerStatusRequest,
    ResetOffsetRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.runtime.clock import SystemClock
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.files import record

QUEUE = MessageQueue("T", "b", 3)
KEY = ObjectKey(NamedQueue("b", 3, "T"))


class FakeMember:
    has_listener = True

    def __init__(self) -> None:
        self.reported: list[object] = []

    def members_changed(self) -> None:
        self.reported.append("members")

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        self.reported.append((topic, dict(offsets)))

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        return {QUEUE: 7} if topic == "T" else {}

    def running_info(self) -> RunningInfo:
        return RunningInfo({KEY: HeldQueue(3)})

    async def consume_directly(self, message: StoredMessage, broker_name: str) -> ConsumedDirectly | None:
        self.reported.append((message.message.body, broker_name))
        return ConsumedDirectly(spent_time_mills=5) if self.has_listener else None


def ask(members: dict[str, FakeMember], code: int, header: headers.Header, body: bytes = b"") -> Command:
    async def answer() -> Command:
        handle = handler(processors(members, {}, WaitingReplies(SystemClock())))
        reply = handle(new_request(code, headers.write(header), body), None)  # type: ignore[arg-type]  # not looked at
        found = await reply if inspect.isawaitable(reply) else reply
        assert isinstance(found, Command)
        return found

    return asyncio.run(answer())


def test_a_change_of_one_group_makes_all_members_rebalance() -> None:
    members = {"G": FakeMember(), "H": FakeMember()}
    ask(members, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ConsumerGroupRequest("G"))
    assert [member.reported for member in members.values()] == [["members"], ["members"]]


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":{{"brokerName":"b","queueId":3,"topic":"T"}:42}}',
        java_json.write(QueueOffsets({KEY: 42}), standard=True),
    ],
)
def test_a_reset_in_either_format_reaches_the_member_of_the_group(body: bytes) -> None:
    members = {"G": FakeMember(), "H": FakeMember()}
    answer = ask(
        members, RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ResetOffsetRequest("T", "G", 0, True), body
    )
    assert answer.code == ResponseCode.SUCCESS
    assert members["G"].reported == [("T", {QUEUE: 42})]
    assert members["H"].reported == []


def test_a_member_reports_its_progress() -> None:
    header = ConsumerStatusRequest("T", "G")
    answer = ask({"G": FakeMember()}, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
    assert java_json.read(ConsumerStatus, answer.body).message_queue_table == {KEY: 7}


def test_requests_for_an_unknown_group_are_refused() -> None:
    header = ConsumerStatusRequest("T", "G")
    answer = ask({}, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "this client has no consumer of group G",
    )


def test_a_member_reports_its_running_information() -> None:
    answer = ask({"G": FakeMember()}, RequestCode.GET_CONSUMER_RUNNING_INFO, ConsumerRequest("G", "c"))
    assert java_json.read(RunningInfo, answer.body).mq_table == {KEY: HeldQueue(3)}


def stored_message(body: bytes) -> bytes:
    draft = record.encode(Message("T", body))
    record.place(draft, 0, 0, 1)
    return bytes(draft)


def test_a_message_is_consumed_on_request() -> None:
    member = FakeMember()
    header = ConsumerRequest("G", "c", broker_name="b")
    answer = ask({"G": member}, RequestCode.CONSUME_MESSAGE_DIRECTLY, header, stored_message(b"x"))
    assert java_json.read(ConsumedDirectly, answer.body) == ConsumedDirectly(spent_time_mills=5)
    assert member.reported == [(b"x", "b")]


@pytest.mark.parametrize(
    ("body", "has_listener", "remark"),
    [
        (b"", True, "not one message"),
        (b"x" * 100, True, "not one message"),
        (stored_message(b"x") * 2, True, "not one message"),
        (stored_message(b"x"), False, "polls"),
    ],
)
def test_a_message_that_cannot_be_consumed_on_request_is_refused(
    body: bytes, has_listener: bool, remark: str
) -> None:
    member = FakeMember()
    member.has_listener = has_listener
    answer = ask({"G": member}, RequestCode.CONSUME_MESSAGE_DIRECTLY, ConsumerRequest("G", "c"), body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert remark in (answer.remark or "")


@pytest.mark.parametrize("body", [b"", b'{"offsetTable":{"x":1}}', b'{"offsetTable":{{"topic":1}:1}}'])
def test_an_invalid_body_resets_nothing(body: bytes) -> None:
    member = FakeMember()
    header = ResetOffsetRequest("T", "G", 0, True)
    answer = ask({"G": member}, RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert member.reported == []


@pytest.mark.parametrize(("group", "asked"), [("P", 1), ("unknown", 0), (None, 0)])
def test_a_check_reaches_the_producer_of_the_group_and_has_no_answer(group: str | None, asked: int) -> None:
    seen: list[tuple[object, ...]] = []

    def checked(*arguments: object) -> None:
        seen.append(arguments)

    draft = record.encode(Message("T", b"x", {"PGROUP": group} if group else {}))
    record.place(draft, 0, 0, 1)
    header = CheckTransactionRequest(tran_state_table_offset=7, commit_log_offset=8, msg_id="m")

    async def main() -> object:
        handlers = processors({}, {"P": checked}, WaitingReplies(SystemClock()))
        request = new_request(RequestCode.CHECK_TRANSACTION_STATE, headers.write(header), bytes(draft))
        channel = cast(Channel, SimpleNamespace(remote=Address("b", 1)))
        reply = handlers[RequestCode.CHECK_TRANSACTION_STATE](request, channel)
        assert inspect.isawaitable(reply)
        return await reply

    assert asyncio.run(main()) is None
    assert len(seen) == asked
    for broker, given, message in seen:
        assert (broker, given) == (Address("b", 1), header)
        assert isinstance(message, StoredMessage)
        assert message.message.body == b"x"


def test_each_kind_of_request_names_its_unknown_group() -> None:
    requests: list[tuple[RequestCode, headers.Header, bytes]] = [
        (RequestCode.GET_CONSUMER_RUNNING_INFO, ConsumerRequest("G", "c"), b""),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, ConsumerRequest("G", "c"), stored_message(b"x")),
        (
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
            ResetOffsetRequest("T", "G", 0, True),
            java_json.write(QueueOffsets({KEY: 42})),
        ),
    ]
    for code, header, body in requests:
        answer = ask({"H": FakeMember()}, code, header, body)
        assert (answer.code, answer.remark) == (
            ResponseCode.SYSTEM_ERROR,
            "this client has no consumer of group G",
        )


def test_a_message_without_a_broker_name_is_consumed_on_request_too() -> None:
    member = FakeMember()
    ask({"G": member}, RequestCode.CONSUME_MESSAGE_DIRECTLY, ConsumerRequest("G", "c"), stored_message(b"x"))
    assert member.reported == [(b"x", "")]
