"""Tests requests that a broker forwards to consumers: to which of them, how long it waits, and the answers.

Source: docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.broker.processors import consumer_calls
from mqproof.impl.broker.state.clients import ConsumerGroup, Member
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerStatus, MessageQueue
from mqproof.impl.remoting.channel import Channel, ConnectionLostError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import ConsumerRequest, ConsumerStatusRequest
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import offset_message_id
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

CHANNEL: Any = object()
RECORD = b"a record"
HOST = Address("10.0.0.1", 10911)
KEY = ObjectKey(MessageQueue("broker-a", 0, "T"))
STATUS = java_json.write(ConsumerStatus(message_queue_table={KEY: 5}))


class Consumer:
    """A member's channel: it answers with a body, or never if it is None, or with an error."""

    def __init__(self, body: bytes | None = STATUS, error: Exception | None = None) -> None:
        self.body, self.error = body, error
        self.asked: list[tuple[Command, float]] = []

    async def invoke(self, request: Command, timeout_s: float) -> Command:
        self.asked.append((request, timeout_s))
        if self.error is not None:
            raise self.error
        assert self.body is not None
        return request.answer(ResponseCode.SUCCESS, {"not": "returned"}, self.body, remark="mine")


def services(consumers: Mapping[str, tuple[Consumer, int]]) -> Any:
    """Return services with these members of group G, by client id, with their versions."""
    group = ConsumerGroup()
    for client, (consumer, version) in consumers.items():
        group.members[cast("Channel", consumer)] = Member(client, "JAVA", version, 0)
    return SimpleNamespace(
        clients=SimpleNamespace(consumer_group=lambda name: group if name == "G" and consumers else None),
        config=SimpleNamespace(name="broker-a"),
        store=SimpleNamespace(record_at=lambda offset: RECORD if offset == 1000 else None),
    )


def call(processor: Any, given: Any, code: int, header: headers.Header) -> Command:
    async def main() -> Command:
        answer: Command = await processor(given, new_request(code, headers.write(header), b"in"), CHANNEL)
        return answer

    return run_simulated(main(), SimulatedLoop())


def test_a_request_for_the_state_of_a_consumer_goes_to_that_consumer_only() -> None:
    asked, other = Consumer(), Consumer()
    header = ConsumerRequest("G", "c1", jstack_enable=True)
    given = services({"c1": (asked, 62), "c2": (other, 409)})
    answer = call(consumer_calls.running_info, given, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert (answer.code, answer.body, answer.remark, answer.fields) == (0, STATUS, "mine", {})
    [(request, timeout_s)] = asked.asked
    assert (request.code, request.body, timeout_s) == (RequestCode.GET_CONSUMER_RUNNING_INFO, b"", 10.0)
    assert headers.read(ConsumerRequest, request.fields) == header
    assert other.asked == []


def test_a_message_to_consume_is_sent_with_its_record_and_the_name_of_the_broker() -> None:
    consumer = Consumer()
    header = ConsumerRequest("G", "c1", msg_id=offset_message_id(HOST, 1000))
    given = services({"c1": (consumer, 62)})
    call(consumer_calls.consume_directly, given, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
    [(request, _)] = consumer.asked
    assert (request.body, request.fields["brokerName"]) == (RECORD, "broker-a")
    assert headers.read(ConsumerRequest, request.fields).msg_id == header.msg_id


@pytest.mark.parametrize(
    ("header", "version", "remark"),
    [
        (ConsumerRequest("G", "c2"), 62, "consumer c2 of group G is not connected"),
        (ConsumerRequest("G"), 62, "consumer None of group G is not connected"),
        (ConsumerRequest("H", "c1"), 62, "consumer c1 of group H is not connected"),
        (ConsumerRequest("G", "c1"), 61, "consumer c1 is too old for this request"),
    ],
)
def test_a_consumer_that_cannot_be_asked_is_named(header: ConsumerRequest, version: int, remark: str) -> None:
    given = services({"c1": (Consumer(), version)})
    with pytest.raises(RefusedError) as refused:
        call(consumer_calls.running_info, given, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert (refused.value.code, refused.value.remark) == (ResponseCode.SYSTEM_ERROR, remark)


@pytest.mark.parametrize(
    ("message_id", "remark"),
    [
        (offset_message_id(HOST, 1001), f"there is no message {offset_message_id(HOST, 1001)}"),
        (None, "message id"),
        ("zz", "non-hexadecimal number"),
    ],
)
def test_a_message_that_does_not_exist_is_refused(message_id: str | None, remark: str) -> None:
    consumer = Consumer()
    header = ConsumerRequest("G", "c1", msg_id=message_id)
    given = services({"c1": (consumer, 62)})
    with pytest.raises(RefusedError, match=remark) as refused:
        call(consumer_calls.consume_directly, given, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
    assert (refused.value.code, consumer.asked) == (ResponseCode.SYSTEM_ERROR, [])


def test_a_consumer_that_does_not_answer_is_an_error() -> None:
    given = services({"c1": (Consumer(error=ConnectionLostError("the connection was lost")), 62)})
    with pytest.raises(RefusedError) as refused:
        call(
            consumer_calls.running_info,
            given,
            RequestCode.GET_CONSUMER_RUNNING_INFO,
            ConsumerRequest("G", "c1"),
        )
    assert refused.value.code == ResponseCode.CONSUME_MSG_TIMEOUT
    assert refused.value.remark == "consumer c1 did not answer: the connection was lost"


# The status of several consumers.


def status(given: Any, client: str | None = None) -> ConsumerStatus:
    header = ConsumerStatusRequest("T", "G", client)
    code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
    return java_json.read(ConsumerStatus, call(consumer_calls.consumer_status, given, code, header).body)


@pytest.mark.parametrize(("client", "asked"), [(None, ["c1", "c2"]), ("", ["c1", "c2"]), ("c2", ["c2"])])
def test_the_status_of_one_or_all_consumers_is_returned_by_client(
    client: str | None, asked: list[str]
) -> None:
    consumers = {"c1": (Consumer(), 28), "c2": (Consumer(), 409), "old": (Consumer(), 27)}
    assert status(services(consumers), client).consumer_table == {one: {KEY: 5} for one in asked}
    for name, (consumer, _) in consumers.items():
        requests = [(one.code, one.fields.get("topic"), timeout_s) for one, timeout_s in consumer.asked]
        expected = [(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, "T", 5.0)]
        assert requests == (expected if name in asked else [])


def test_consumers_without_a_valid_answer_are_left_out() -> None:
    consumers = {
        "lost": (Consumer(error=ConnectionLostError("lost")), 409),
        "invalid": (Consumer(b"{"), 409),
        "c1": (Consumer(), 409),
    }
    assert list(status(services(consumers)).consumer_table) == ["c1"]


def test_a_group_without_consumers_that_know_the_request_is_an_error() -> None:
    for given in (services({}), services({"old": (Consumer(), 27)})):
        with pytest.raises(RefusedError, match="no such consumer of group G") as refused:
            status(given)
        assert refused.value.code == ResponseCode.CONSUMER_NOT_ONLINE


def test_consumers_are_asked_at_the_same_time() -> None:
    class Slow(Consumer):
        async def invoke(self, request: Command, timeout_s: float) -> Command:
            await asyncio.sleep(3)
            return await super().invoke(request, timeout_s)

    async def main() -> float:
        given = services({"c1": (Slow(), 409), "c2": (Slow(), 409)})
        fields = headers.write(ConsumerStatusRequest("T", "G"))
        request = new_request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
        await consumer_calls.consumer_status(given, request, CHANNEL)
        return asyncio.get_running_loop().time()

    assert run_simulated(main(), SimulatedLoop()) == 3
