"""Tests how a client assigns replies to requests. Source: docs/reference/protocol/requests-and-replies.md."""

import asyncio
import zlib

from mqproof.impl.client.connection.waiting_replies import WaitingReplies
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import PushReplyRequest
from mqproof.impl.remoting.message import Message, encode_properties
from mqproof.impl.runtime.clock import SystemClock
from mqproof.impl.runtime.simulated_loop import EPOCH_US, SimulatedClock, run_simulated


def push(replies: WaitingReplies, correlation_id: str, *, born_host: str = "127.0.0.1:5") -> int:
    header = PushReplyRequest(
        producer_group="G", topic="C_REPLY_TOPIC", default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=0, sys_flag=0, born_timestamp=1, flag=0, born_host=born_host, store_host="/127.0.0.1:6",
        store_timestamp=2, properties=encode_properties({"CORRELATION_ID": correlation_id}),
    )  # fmt: skip
    fields = headers.write(header)
    request = new_request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, fields, correlation_id.encode())
    answer = replies.pushed(request, None)  # type: ignore[arg-type]  # not looked at
    assert answer is not None
    return answer.code


def test_a_reply_ends_only_the_request_with_its_correlation_id() -> None:
    async def scenario() -> None:
        replies = WaitingReplies(SystemClock())
        with replies.expecting("a") as first, replies.expecting("b") as second:
            assert push(replies, "b") == ResponseCode.SUCCESS
            assert not first.done()
            message = second.result()
        assert (message.body, message.born_host, message.store_host) == (
            b"b", ("127.0.0.1", 5), ("127.0.0.1", 6),
        )  # fmt: skip
        assert message.reconsume_times == 0  # the header has no number
        assert first.cancelled()

    asyncio.run(scenario())


def test_a_second_late_or_unknown_reply_is_confirmed_and_dropped() -> None:
    async def scenario() -> None:
        replies = WaitingReplies(SystemClock())
        with replies.expecting("a") as reply:
            assert push(replies, "a") == push(replies, "a") == ResponseCode.SUCCESS
            assert reply.done()
        assert push(replies, "a") == push(replies, "unknown") == ResponseCode.SUCCESS

    asyncio.run(scenario())


def test_a_host_that_is_no_address_does_not_lose_the_reply() -> None:
    async def scenario() -> None:
        replies = WaitingReplies(SystemClock())
        with replies.expecting("a") as reply:
            push(replies, "a", born_host="somewhere")
            assert reply.result().born_host == ("0.0.0.0", 0)

    asyncio.run(scenario())


def test_a_reply_has_all_parts_that_the_broker_reports() -> None:
    header = PushReplyRequest(
        producer_group="G", topic="C_REPLY_TOPIC", default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=3, sys_flag=1, born_timestamp=11, flag=7, born_host="127.0.0.1:5", store_host="127.0.0.1:6",
        store_timestamp=12, properties=encode_properties({"CORRELATION_ID": "a"}), reconsume_times=2,
    )  # fmt: skip
    code, fields = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, headers.write(header)

    async def scenario() -> Message:
        replies = WaitingReplies(SimulatedClock(asyncio.get_running_loop()))
        assert bool(replies.are_awaited) is False
        with replies.expecting("a") as reply:
            assert bool(replies.are_awaited) is True
            request = new_request(code, fields, zlib.compress(b"body"))
            replies.pushed(request, None)  # type: ignore[arg-type]  # not looked at
            message = reply.result()
        assert bool(replies.are_awaited) is False
        return message

    message = run_simulated(scenario())
    properties = {"CORRELATION_ID": "a", "ARRIVE_TIME": str(EPOCH_US // 1000)}
    assert message == Message(
        "C_REPLY_TOPIC", b"body", properties, queue_id=3, flag=7, sys_flag=1, reconsume_times=2,
        born_timestamp_ms=11, born_host=("127.0.0.1", 5), store_host=("127.0.0.1", 6),
    )  # fmt: skip


def test_a_reply_without_properties_is_confirmed_and_dropped() -> None:
    header = PushReplyRequest(
        producer_group="G", topic="C_REPLY_TOPIC", default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=0, sys_flag=0, born_timestamp=1, flag=0, born_host="127.0.0.1:5", store_host="127.0.0.1:6",
        store_timestamp=2,
    )  # fmt: skip

    async def scenario() -> None:
        replies = WaitingReplies(SystemClock())
        with replies.expecting("a") as reply:
            request = new_request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, headers.write(header))
            answer = replies.pushed(request, None)  # type: ignore[arg-type]  # not looked at
            assert answer is not None
            assert answer.code == ResponseCode.SUCCESS
            assert not reply.done()

    asyncio.run(scenario())
