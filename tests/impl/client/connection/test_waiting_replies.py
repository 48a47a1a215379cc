"""Tests how a client assigns replies to requests. Source: docs/reference/protocol/requests-and-replies.md."""

import asyncio

from mqproof.impl.client.connection.waiting_replies import WaitingReplies
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import PushReplyRequest
from mqproof.impl.remoting.message import encode_properties
from mqproof.impl.runtime.clock import SystemClock


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
