"""Tests the times of single sends."""

import asyncio

import pytest

from mqproof.impl.admin import round_trips
from mqproof.impl.admin.round_trips import RoundTrip, average_ms
from mqproof.impl.client.model import ClientError, MessageQueue, Outcome, Refused, Sent
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import PERM_READ, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import SendResponse
from tests.impl.admin.site import Answer, Site, play, refusal

QUEUE = MessageQueue("T", "b-a", 0)
STORED: Answer = (0, headers.write(SendResponse("ID", 0, 7)), b"")
IS_SENT = Sent("SEND_OK", "K", QUEUE, 0, "ID", 1)


def sent(spent_ms: float, outcome: Outcome = IS_SENT) -> RoundTrip:
    return RoundTrip(QUEUE, outcome, spent_ms)


def test_the_queues_of_a_topic_take_turns() -> None:
    async def scenario(site: Site) -> None:
        topic = TopicConfig("T", write_queue_nums=2)
        broker = await site.add_broker("b-a", {RequestCode.SEND_MESSAGE_V2: STORED}, topic)
        found = [each async for each in round_trips.of_topic(site.admin, "T", 3, 10)]
        assert [each.queue.queue_id for each in found] == [0, 1, 0]
        assert all(isinstance(each.outcome, Sent) for each in found)
        assert broker.bodies_of(RequestCode.SEND_MESSAGE_V2) == [b"a" * 10] * 3

    play(scenario)


def test_the_time_of_a_send_is_measured_also_when_it_fails() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a", {RequestCode.SEND_MESSAGE_V2: refusal(ResponseCode.NO_PERMISSION)}, "b-a"
        )
        (one,) = [each async for each in round_trips.of_broker(site.admin, "b-a", 1, 1)]
        assert isinstance(one.outcome, Refused)
        site.network.silence(broker.address)
        before_s = asyncio.get_running_loop().time()
        (late,) = [each async for each in round_trips.of_broker(site.admin, "b-a", 1, 1)]
        assert late.spent_ms == pytest.approx(1000 * (asyncio.get_running_loop().time() - before_s), abs=100)
        assert late.spent_ms > 2000

    play(scenario)


def test_a_topic_without_a_writable_queue_is_an_error() -> None:
    async def scenario(site: Site) -> None:
        await site.add_broker("b-a", {}, TopicConfig("T", perm=PERM_READ))
        with pytest.raises(ClientError, match="T has no writable queue"):
            await anext(round_trips.of_topic(site.admin, "T", 1, 1))

    play(scenario)


def test_the_average_is_that_of_the_stored_messages_without_the_first() -> None:
    refused = sent(9000, Refused("K", "NO_PERMISSION", "no", 1))
    assert average_ms([sent(500), sent(2), refused, sent(4)]) == 3
    assert average_ms([sent(500)]) == 500
    assert average_ms([refused]) is None
    assert average_ms([]) is None
