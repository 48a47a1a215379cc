"""Tests the producer: its targets, its retries, and that its outcome never claims more than is known."""

import asyncio
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import (
    MessageError,
    MessageQueue,
    NoRouteError,
    Outcome,
    Refused,
    SendError,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing import producer as producer_module
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import by_hash
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.channel import Channel, RemotingError, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import RouteRequest, SendResponse
from mqproof.impl.remoting.message import DELAY, Message
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.spec.events import Event, Kind
from tests.impl.world import World, play

T = TypeVar("T")

MESSAGE = Message("T", b"body")


class Script:
    """Two brokers with scripted answers to sends, and a name server that knows both.

    An answer is a response code, or None for silence, or "cut" for a broken connection.
    """

    def __init__(self, loop: SimulatedLoop, answers: list[int | str | None]) -> None:
        self.network = SimulatedNetwork()
        self.runtime = simulated(loop, self.network)
        self.answers = answers
        self.attempts: list[str] = []
        self.requests: list[Command] = []
        self.reported: list[Command] = []
        """Heartbeats and good-byes."""
        self.routes_asked: list[str] = []
        self.unknown: set[str] = set()
        """Topics for which the name server has no route."""
        self.remark = "scripted"
        self.delay_s = 0.0
        self.servers: list[RemotingServer] = []
        self.addresses: dict[str, Address] = {}

    async def __aenter__(self) -> "Script":
        for name in ("a", "b"):
            sender = self._sender(name)
            await self._serve(
                name,
                {
                    RequestCode.SEND_MESSAGE_V2: sender,
                    RequestCode.SEND_BATCH_MESSAGE: sender,
                    RequestCode.HEART_BEAT: self._acknowledge,
                    RequestCode.UNREGISTER_CLIENT: self._acknowledge,
                },
            )
        brokers = [BrokerData({0: str(self.addresses[name])}, name, "C") for name in ("a", "b")]
        self.route = TopicRoute(brokers, [QueueData(name, 6, 2, 0, 2) for name in ("a", "b")])
        await self._serve("namesrv", {RequestCode.GET_ROUTEINFO_BY_TOPIC: self._routes})
        self.session = Session([self.addresses["namesrv"]], self.runtime)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.stop()
        for server in self.servers:
            await server.stop()

    async def _serve(self, name: str, processors: dict[int, object]) -> None:
        server = RemotingServer(self.network, handler(processors))  # type: ignore[arg-type]  # of our own making
        self.addresses[name] = await server.start("127.0.0.1", 0)
        self.servers.append(server)

    def _routes(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        topic = headers.read(RouteRequest, request.fields).topic
        self.routes_asked.append(topic)
        if topic in self.unknown:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST)
        return request.answer(0, body=java_json.write(self.route))

    def _acknowledge(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002
        self.reported.append(request)
        return request.answer(0)

    def _cut(self, name: str, channel: Channel) -> None:  # noqa: ARG002  # over sockets, the channel is cut
        self.network.cut(self.addresses[name])

    def _sender(self, name: str) -> object:
        async def answer(request: Command, channel: Channel) -> Reply:
            self.attempts.append(name)
            self.requests.append(request)
            todo = self.answers.pop(0)
            await asyncio.sleep(self.delay_s)
            if isinstance(todo, str):
                self._cut(name, channel)
                return None
            response = headers.write(SendResponse("id1,id2", 0, 7))
            return None if todo is None else request.answer(todo, response, remark=self.remark)

        return answer


def send(
    *answers: int | str | None, config: ProducerConfig | None = None
) -> tuple[Outcome, list[str], list[Event]]:
    """Return the outcome of one send with these answers, the brokers tried, and the events."""
    loop = SimulatedLoop()

    async def main() -> tuple[Outcome, list[str], list[Event]]:
        async with Script(loop, list(answers)) as script:
            reported: list[Event] = []
            events = EventLog(reported.append, "p", script.runtime.clock)
            outcome = await Producer(script.session, config, events).send(MESSAGE)
            return outcome, script.attempts, reported

    return run_simulated(main(), loop)


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION])
def test_a_refusal_by_access_control_is_final_and_has_the_reason_of_the_broker(code: ResponseCode) -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[Outcome, list[str]]:
        async with Script(loop, [code]) as script:
            script.remark = "org.apache.rocketmq.acl.common.AclException: no permission for topic T"
            return await Producer(script.session).send(MESSAGE), script.attempts

    outcome, attempts = run_simulated(main(), loop)
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.attempts, len(attempts)) == ("NO_PERMISSION", 1, 1)
    assert "no permission for topic T" in outcome.remark


def test_a_stored_message_is_reported_with_its_status() -> None:
    outcome, attempts, _ = send(0)
    assert isinstance(outcome, Sent)
    assert (outcome.status, outcome.queue_offset, outcome.attempts, len(attempts)) == ("SEND_OK", 7, 1, 1)


@pytest.mark.parametrize(
    ("code", "status"), [(10, "FLUSH_DISK_TIMEOUT"), (11, "SLAVE_NOT_AVAILABLE"), (12, "FLUSH_SLAVE_TIMEOUT")]
)
def test_a_message_stored_with_a_warning_is_not_sent_again(code: int, status: str) -> None:
    outcome, attempts, _ = send(code)
    assert isinstance(outcome, Sent)
    assert (outcome.status, len(attempts)) == (status, 1)


def test_a_retry_goes_to_the_other_broker() -> None:
    outcome, attempts, _ = send(14, 14, 0)
    assert isinstance(outcome, Sent)
    assert outcome.attempts == 3
    assert attempts in (["a", "b", "a"], ["b", "a", "b"])


def test_retries_are_limited_and_the_last_refusal_is_the_outcome() -> None:
    outcome, attempts, _ = send(14, 17, 16)
    assert outcome == Refused(outcome.message_id, "NO_PERMISSION", "scripted", 3)
    assert len(attempts) == 3


def test_a_final_refusal_is_not_retried() -> None:
    outcome, attempts, _ = send(ResponseCode.MESSAGE_ILLEGAL)
    assert isinstance(outcome, Refused)
    assert (outcome.status, len(attempts)) == ("MESSAGE_ILLEGAL", 1)


def test_without_an_answer_the_time_runs_out_and_the_outcome_is_unknown() -> None:
    outcome, attempts, _ = send(None, 0)
    assert isinstance(outcome, Unknown)
    assert len(attempts) == 1


def test_a_send_on_a_lost_connection_is_retried_and_can_succeed() -> None:
    outcome, attempts, _ = send("cut", 0)
    assert isinstance(outcome, Sent)
    assert len(attempts) == 2


def test_a_refusal_after_a_lost_connection_leaves_the_outcome_unknown() -> None:
    outcome, _, _ = send("cut", 13)
    assert isinstance(outcome, Unknown)
    assert outcome.attempts == 2


def test_a_system_error_may_have_stored_the_message() -> None:
    outcome, attempts, _ = send(1, 1, 1)
    assert isinstance(outcome, Unknown)
    assert len(attempts) == 3


@pytest.mark.parametrize("unknown", ["cut", 1])
def test_an_unknown_attempt_is_the_last_one_on_request(unknown: int | str) -> None:
    outcome, attempts, _ = send(14, unknown, 0, config=ProducerConfig(retry_unknown=False))
    assert isinstance(outcome, Unknown)
    assert len(attempts) == 2


def test_every_attempt_and_its_result_are_logged_under_one_message_id() -> None:
    outcome, _, events = send(14, "cut", 0)
    assert [(event.kind, event.attempt, event.status) for event in events] == [
        (Kind.SEND, 1, None),
        (Kind.SEND_FAIL, 1, "SERVICE_NOT_AVAILABLE"),
        (Kind.SEND, 2, None),
        (Kind.SEND_FAIL, 2, "unknown"),
        (Kind.SEND, 3, None),
        (Kind.SEND_ACK, 3, "SEND_OK"),
    ]
    assert {event.msg_id for event in events} == {outcome.message_id}


def scripted(scenario: Callable[[Script], Awaitable[T]], *answers: int | str | None) -> T:
    """Run a scenario with brokers that answer like this."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with Script(loop, list(answers)) as script, asyncio.timeout(3600):
            return await scenario(script)

    return run_simulated(main(), loop)


@pytest.mark.parametrize("code", [1, 2, 14, 16, 17, 204, 205, 1500])
def test_route_5_each_code_of_the_retry_set_is_retried_at_the_other_broker(code: int) -> None:
    """ROUTE-5 RetryAvoidsLastBroker."""
    outcome, attempts, _ = send(code, 0)
    assert isinstance(outcome, Sent)
    assert sorted(attempts) == ["a", "b"]


def test_an_unconfirmed_message_is_retried_on_request_and_the_confirmed_position_is_returned() -> None:
    async def scenario(script: Script) -> tuple[Outcome, list[str]]:
        producer = Producer(script.session, ProducerConfig(retry_unconfirmed=True))
        return await producer.send(MESSAGE), script.attempts

    outcome, attempts = scripted(scenario, 10, 0)
    assert isinstance(outcome, Sent)
    assert (outcome.status, outcome.queue.broker_name) == ("SEND_OK", attempts[1])
    outcome, attempts = scripted(scenario, 10, 14, 13)
    assert isinstance(outcome, Sent)
    assert (outcome.status, outcome.queue.broker_name) == ("FLUSH_DISK_TIMEOUT", attempts[0])


def test_the_timeout_of_a_call_covers_all_its_attempts() -> None:
    async def scenario(script: Script) -> tuple[Outcome, int, float]:
        script.delay_s = 0.2
        began_s = asyncio.get_running_loop().time()
        outcome = await Producer(script.session).send(MESSAGE, timeout_ms=300)
        return outcome, len(script.attempts), asyncio.get_running_loop().time() - began_s

    outcome, attempts, took_s = scripted(scenario, 14, 14, 14)
    assert isinstance(outcome, Unknown)  # the second attempt was not answered in time
    assert attempts == 2
    assert took_s == pytest.approx(0.3, abs=0.01)


def test_a_route_that_does_not_arrive_in_time_is_a_refusal() -> None:
    async def scenario(script: Script) -> tuple[Outcome, float]:
        script.network.silence(script.addresses["namesrv"])
        outcome = await Producer(script.session).send(MESSAGE, timeout_ms=100)
        return outcome, asyncio.get_running_loop().time()

    outcome, now_s = scripted(scenario)
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.attempts) == ("NO_ROUTE", 0)
    assert now_s < 0.2


def test_route_6_a_broker_that_failed_gets_no_more_sends_while_it_is_avoided() -> None:
    """ROUTE-6 FaultyBrokerRested."""

    async def scenario(script: Script) -> tuple[list[str], set[str]]:
        producer = Producer(script.session, ProducerConfig(latency_fault_strategy=True))
        for _ in range(6):
            await producer.send(MESSAGE)
        early = list(script.attempts)
        await asyncio.sleep(10)
        for _ in range(4):
            await producer.send(MESSAGE)
        return early, set(script.attempts[len(early) :])

    early, late = scripted(scenario, 14, *[0] * 10)
    assert early.count(early[0]) == 1
    assert late == {"a", "b"}


def test_route_6_a_broker_that_answered_slowly_gets_no_more_sends_while_it_is_avoided() -> None:
    """ROUTE-6 FaultyBrokerRested."""

    async def scenario(script: Script) -> list[str]:
        producer = Producer(script.session, ProducerConfig(latency_fault_strategy=True))
        script.delay_s = 0.6
        await producer.send(MESSAGE)
        script.delay_s = 0.0
        for _ in range(6):
            await producer.send(MESSAGE)
        return script.attempts

    slow, *others = scripted(scenario, *[0] * 7)
    assert slow not in others


def test_a_selector_chooses_a_writable_queue_and_has_one_attempt() -> None:
    async def scenario(script: Script) -> tuple[set[MessageQueue], Outcome]:
        producer = Producer(script.session)
        places = set()
        for _ in range(5):
            outcome = await producer.send(MESSAGE, select=by_hash("order-5"))
            assert isinstance(outcome, Sent)
            places.add(MessageQueue("T", outcome.queue.broker_name, _sent_to(script)))
        return places, await producer.send(MESSAGE, select=by_hash("order-5"))

    places, refused = scripted(scenario, *[0] * 5, 14, 0)
    four = [MessageQueue("T", broker, queue_id) for broker in "ab" for queue_id in range(2)]
    assert places == {by_hash("order-5")(four)}
    assert places != {four[0]}
    assert isinstance(refused, Refused)


def test_a_refreshed_route_is_used() -> None:
    async def scenario(script: Script) -> list[str]:
        producer = Producer(script.session)
        await producer.send(MESSAGE)
        script.route = TopicRoute(script.route.broker_datas, [QueueData("b", 6, 1, 0, 1)])
        await script.session.routes.refresh("T")
        script.attempts.clear()
        for _ in range(4):
            await producer.send(MESSAGE)
        return script.attempts

    assert scripted(scenario, *[0] * 5) == ["b"] * 4


QUEUE = MessageQueue("T", "a", 0)


async def asks_again(script: Script, call: Callable[[Producer], Awaitable[object]]) -> list[str]:
    """Return the topics whose routes are requested after a call failed, one second after the last request."""
    producer = Producer(script.session, ProducerConfig(retries=0))
    await producer.send(MESSAGE, QUEUE)
    await asyncio.sleep(1)
    script.routes_asked.clear()
    with suppress(RemotingError, NoRouteError):
        await call(producer)
    await asyncio.sleep(1)
    return script.routes_asked


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (ResponseCode.SERVICE_NOT_AVAILABLE, ["T"]),
        (ResponseCode.SYSTEM_ERROR, ["T"]),
        ("cut", ["T"]),
        (ResponseCode.MESSAGE_ILLEGAL, []),
        (ResponseCode.SUCCESS, []),
    ],
)
def test_a_refused_send_requests_the_route_again(answer: int | str, asked: list[str]) -> None:
    """An invalid message says nothing about its broker."""

    async def scenario(script: Script) -> list[str]:
        script.answers += [ResponseCode.SUCCESS, answer]
        return await asks_again(script, lambda producer: producer.send(MESSAGE, QUEUE))

    assert scripted(scenario) == asked


@pytest.mark.parametrize("oneway", [False, True])
@pytest.mark.parametrize("queue", [QUEUE, None])
def test_without_a_master_to_send_to_the_route_is_requested_again(
    oneway: bool, queue: MessageQueue | None
) -> None:
    """The queue is given, or none can be chosen."""

    async def scenario(script: Script) -> list[str]:
        script.answers.append(ResponseCode.SUCCESS)
        slaves = [BrokerData({1: str(script.addresses[name])}, name, "C") for name in ("a", "b")]

        async def call(producer: Producer) -> object:
            script.route = TopicRoute(slaves, script.route.queue_datas)
            await script.session.routes.refresh("T")
            await asyncio.sleep(1)
            script.routes_asked.clear()
            return await (producer.send_oneway(MESSAGE, queue) if oneway else producer.send(MESSAGE, queue))

        return await asks_again(script, call)

    assert scripted(scenario) == ["T"]


def test_for_a_topic_without_a_route_the_route_of_its_template_is_requested_again() -> None:
    async def scenario(script: Script) -> list[str]:
        script.unknown.add("T")
        script.answers += [ResponseCode.SUCCESS, ResponseCode.SERVICE_NOT_AVAILABLE]
        return await asks_again(script, lambda producer: producer.send(MESSAGE, QUEUE))

    assert scripted(scenario) == ["T", "TBW102"]


def test_brokers_receive_heartbeats_every_half_minute_and_an_unregistration_at_the_end() -> None:
    async def scenario(script: Script) -> list[Command]:
        await script.session.start()
        await Producer(script.session, ProducerConfig(group="orders")).send(MESSAGE)
        await asyncio.sleep(100)
        await script.session.stop()
        return script.reported

    reported = scripted(scenario, 0)
    assert [request.code for request in reported] == [
        *[RequestCode.HEART_BEAT] * 2 * 3,
        *[RequestCode.UNREGISTER_CLIENT] * 2,
    ]
    assert all(b'"orders"' in request.body for request in reported[:6])
    assert {request.fields["producerGroup"] for request in reported[6:]} == {"orders"}


def test_a_topic_created_by_a_send_has_the_number_of_queues_that_the_producer_requests() -> None:
    async def scenario(world: World) -> list[Outcome]:
        producer = Producer(world.session, ProducerConfig(default_topic_queues=1))
        return [await producer.send(Message(f"New_{number}", b"x")) for number in range(8)]

    for outcome in play(scenario):
        assert isinstance(outcome, Sent)
        assert (outcome.queue.queue_id, outcome.attempts) == (0, 1)


def _sent_to(script: Script) -> int:
    return headers.read_send_v2(script.requests[-1].fields).queue_id


def test_a_batch_is_one_request_with_an_outcome_for_each_message() -> None:
    async def scenario(script: Script) -> tuple[list[Outcome], Command]:
        reported: list[Event] = []
        events = EventLog(reported.append, "p", script.runtime.clock)
        messages = [Message("T", b"a" * 5000, {"TAGS": "x"}), Message("T", b"b")]
        outcomes = await Producer(script.session, None, events).send_batch(messages)
        assert [(event.kind, event.msg_id, event.queue_offset) for event in reported] == [
            *((Kind.SEND, outcome.message_id, None) for outcome in outcomes),
            *((Kind.SEND_ACK, outcome.message_id, 7 + place) for place, outcome in enumerate(outcomes)),
        ]
        (request,) = script.requests
        return outcomes, request

    outcomes, request = scripted(scenario, 0)
    header = headers.read_send_v2(request.fields)
    assert request.code == RequestCode.SEND_BATCH_MESSAGE
    assert (header.batch, header.sys_flag, header.properties) == (True, 0, "WAIT\x01true")
    first, second = outcomes
    assert isinstance(first, Sent)
    assert isinstance(second, Sent)
    assert (first.offset_message_id, second.offset_message_id) == ("id1", "id2")
    assert (first.queue_offset, second.queue_offset) == (7, 8)
    assert first.message_id != second.message_id
    assert first.message_id.encode() in request.body
    assert b"a" * 5000 in request.body  # not compressed


def test_the_wait_flag_of_a_batch_applies_to_all_its_messages() -> None:
    async def scenario(script: Script) -> Command:
        await Producer(script.session).send_batch(
            [Message("T", body, {"WAIT": "false"}) for body in (b"a", b"b")]
        )
        return script.requests[0]

    assert headers.read_send_v2(scripted(scenario, 0).fields).properties == "WAIT\x01false"


def test_a_batch_that_is_too_long_is_an_error_of_the_caller() -> None:
    async def scenario(script: Script) -> None:
        producer = Producer(script.session, ProducerConfig(body_bytes_max=300))
        with pytest.raises(MessageError, match="the batch has"):
            await producer.send_batch([Message("T", b"x" * 100)] * 3)

    scripted(scenario)


def test_many_messages_are_sent_concurrently_up_to_a_number_with_outcomes_in_their_order() -> None:
    async def scenario(script: Script) -> None:
        script.delay_s = 0.5
        messages = [Message("T", str(number).encode()) for number in range(5)]
        sending = asyncio.ensure_future(Producer(script.session).send_many(messages, outstanding=2))
        await asyncio.sleep(0.25)
        assert [request.body for request in script.requests] == [b"0", b"1"]
        outcomes = await sending
        assert [type(outcome) for outcome in outcomes] == [Sent, Refused, Sent, Sent, Sent]
        properties = {
            request.body: headers.read_send_v2(request.fields).properties or "" for request in script.requests
        }
        for message, outcome in zip(messages, outcomes, strict=True):
            assert outcome.message_id in properties[message.body]

    scripted(scenario, 0, ResponseCode.MESSAGE_ILLEGAL, 0, 0, 0)


def test_at_most_64_messages_are_on_their_way_unless_another_number_is_given() -> None:
    async def scenario(script: Script) -> None:
        script.delay_s = 0.5
        sending = asyncio.ensure_future(Producer(script.session).send_many([MESSAGE] * 66))
        await asyncio.sleep(0.25)
        assert len(script.requests) == 64
        assert len(await sending) == 66

    scripted(scenario, *[0] * 66)


def test_the_brokers_of_a_new_topic_know_the_requester_before_they_get_its_request() -> None:
    async def scenario(script: Script) -> None:
        script.delay_s = 0.5
        asking = asyncio.create_task(Producer(script.session).request(MESSAGE))
        await asyncio.sleep(0.25)
        assert len(script.requests) == 1
        assert [each.code for each in script.reported] == [RequestCode.HEART_BEAT] * 2
        with pytest.raises(SendError):
            await asking

    scripted(scenario, ResponseCode.MESSAGE_ILLEGAL)


def test_a_topic_without_a_route_and_without_a_template_is_not_sent_to() -> None:
    async def scenario(script: Script) -> Outcome:
        script.unknown |= {"T", "TBW102"}
        return await Producer(script.session).send(MESSAGE)

    outcome = scripted(scenario)
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.remark) == ("NO_ROUTE", "no name server knows topic T")


def test_the_queues_of_an_ordered_topic_include_those_of_a_broker_without_a_master() -> None:
    async def scenario(script: Script) -> list[Outcome]:
        slave, master = (
            BrokerData({number: str(script.addresses[name])}, name, "C")
            for number, name in ((1, "a"), (0, "b"))
        )
        script.route = TopicRoute([slave, master], [], order_topic_conf="a:1;b:1")
        producer = Producer(script.session)
        chosen = [await producer.send(MESSAGE, select=lambda queues: queues[0])]
        return chosen + [await producer.send(MESSAGE) for _ in range(2)]

    chosen, *others = scripted(scenario, 0, 0)
    assert chosen == Refused(chosen.message_id, "NO_ROUTE", "broker a has no master", 1)
    assert sorted(each.attempts for each in others if isinstance(each, Sent)) == [1, 2]


def test_the_queues_of_a_route_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []

    def publish_queues(topic: str, _route: TopicRoute) -> list[MessageQueue]:
        listed.append(topic)
        return [QUEUE]

    async def scenario(script: Script) -> None:
        producer = Producer(script.session)
        for _ in range(3):
            await producer.send(MESSAGE)

    monkeypatch.setattr(producer_module, "publish_queues", publish_queues)
    scripted(scenario, 0, 0, 0)
    assert listed == ["T"]


def test_a_body_may_have_4_mib() -> None:
    async def scenario(script: Script) -> None:
        producer = Producer(script.session)
        with pytest.raises(MessageError, match=f"{(4 << 20) + 1} bytes, at most {4 << 20}"):
            await producer.send(Message("T", bytes((4 << 20) + 1)))
        assert isinstance(await producer.send(Message("T", bytes(4 << 20))), Sent)

    scripted(scenario, 0)


def test_an_invalid_message_among_many_is_reported_before_any_is_sent() -> None:
    async def scenario(script: Script) -> None:
        producer = Producer(script.session)
        with pytest.raises(MessageError):
            await producer.send_many([Message("T", b"x"), Message("T", b"")])
        with pytest.raises(ValueError, match="outstanding is 0, at least 1 expected"):
            await producer.send_many([Message("T", b"x")], outstanding=0)
        assert not script.requests
        assert await producer.send_many([]) == []

    scripted(scenario)


def test_long_bodies_are_sent_compressed() -> None:
    async def scenario(script: Script) -> list[Command]:
        producer = Producer(script.session)
        await producer.send(Message("T", b"x" * 4095))
        await producer.send(Message("T", b"x" * 4096))
        return script.requests

    short, long = scripted(scenario, 0, 0)
    assert (headers.read_send_v2(short.fields).sys_flag, len(short.body)) == (0, 4095)
    assert headers.read_send_v2(long.fields).sys_flag == 0x301
    assert zlib.decompress(long.body) == b"x" * 4096


def test_a_message_to_a_retry_topic_has_its_maximum_of_redeliveries() -> None:
    async def scenario(script: Script) -> tuple[int | None, ...]:
        producer = Producer(script.session)
        again = {"MAX_RECONSUME_TIMES": "5"}
        await producer.send(Message("%RETRY%G", b"x", again, reconsume_times=2))
        await producer.send(Message("T", b"x", again))
        read = [headers.read_send_v2(request.fields) for request in script.requests]
        return read[0].reconsume_times, read[0].max_reconsume_times, read[1].max_reconsume_times

    assert scripted(scenario, 0, 0) == (2, 5, None)


def test_queues_are_used_in_turn() -> None:
    loop = SimulatedLoop()

    async def main() -> Counter[str]:
        async with Script(loop, [0] * 40) as script:
            producer = Producer(script.session)
            for _ in range(40):
                await producer.send(MESSAGE)
            return Counter(script.attempts)

    assert run_simulated(main(), loop) == {"a": 20, "b": 20}


def test_a_send_to_a_given_queue_has_one_attempt() -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[Outcome, list[str]]:
        async with Script(loop, [14, 0]) as script:
            outcome = await Producer(script.session).send(MESSAGE, MessageQueue("T", "b", 1))
            return outcome, script.attempts

    outcome, attempts = run_simulated(main(), loop)
    assert isinstance(outcome, Refused)
    assert attempts == ["b"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message("T", b""), "empty"),
        (Message("T", b"x" * 11), "11 bytes, at most 10"),
        (Message("T", b"x", {"a": "\x01"}), "0x01"),
        (Message("T", b"x", {"a": "v" * 32_760}), "at most 32767"),
        (Message("T", b"x", {"a": "\ud800"}), "surrogates not allowed"),
        (Message("\ud800", b"x"), "character other than"),
        (Message("T", "x"), "type str, bytes expected"),  # type: ignore[arg-type]  # what is tested
        (Message("T", b"x", {"a": 7}), "must be texts"),  # type: ignore[dict-item]
        (Message("SELF_TEST_TOPIC", b"x"), "no client may send"),
    ],
)
def test_a_message_that_cannot_be_sent_is_an_error_of_the_caller(message: Message, reason: str) -> None:
    async def scenario(script: Script) -> None:
        producer = Producer(script.session, ProducerConfig(body_bytes_max=10))
        with pytest.raises(MessageError, match=reason):
            await producer.send(message)

    scripted(scenario)


def test_without_a_name_server_the_outcome_is_not_sent() -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[Outcome, str]:
        runtime = simulated(loop, SimulatedNetwork())
        session = Session([Address("127.0.0.1", 1), Address("127.0.0.1", 2)], runtime)
        producer = Producer(session)
        outcome = await producer.send(MESSAGE)
        try:
            await producer.send_oneway(MESSAGE)
        except Exception as error:
            return outcome, type(error).__name__
        return outcome, "nothing raised"

    outcome, error = run_simulated(main(), loop)
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.attempts) == ("NO_ROUTE", 0)
    assert "no server listens" in outcome.remark
    assert error == "ConnectError"


def test_a_topic_that_cannot_be_created_has_no_route() -> None:
    loop = SimulatedLoop()

    async def main() -> Outcome:
        async with Script(loop, []) as script:
            script.route = TopicRoute(script.route.broker_datas, [])
            with pytest.raises(NoRouteError, match="no writable queue"):
                await Producer(script.session).send_oneway(MESSAGE)
            return await Producer(script.session).send(MESSAGE)

    outcome = run_simulated(main(), loop)
    assert isinstance(outcome, Refused)
    assert outcome.status == "NO_ROUTE"


def test_events_of_a_delayed_message_have_no_offset_before_its_delivery() -> None:
    """The broker answers with the position in its queue of waiting messages, which is not in the topic."""

    async def scenario(world: World) -> list[tuple[Kind, bool, int | None]]:
        queue = MessageQueue("T", "broker-a", 0)
        plain = await world.producer.send(Message("T", b"plain"), queue)
        for _ in range(2):
            await world.producer.send(Message("T", b"late", {DELAY: "1"}), queue)
        assert isinstance(plain, Sent)
        await asyncio.sleep(3)
        result = await world.consumer.pull(queue, 0)
        assert [stored.queue_offset for stored in result.messages] == [0, 1, 2]
        return [
            (event.kind, event.msg_id == plain.message_id, event.queue_offset)
            for event in world.events
            if event.node in ("producer", "consumer") and event.queue_id == 0
        ]

    sends = [(Kind.SEND, True, None), (Kind.SEND_ACK, True, 0)]
    sends += 2 * [(Kind.SEND, False, None), (Kind.SEND_ACK, False, None)]
    assert play(scenario) == [
        *sends,
        (Kind.DELIVER, True, 0),
        (Kind.DELIVER, False, 1),
        (Kind.DELIVER, False, 2),
    ]


def test_a_oneway_message_arrives_without_an_answer() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[Kind]]:
        await world.producer.send_oneway(MESSAGE)
        await asyncio.sleep(1)
        found = []
        for queue in await world.consumer.queues("T"):
            found += [stored.message.body for stored in (await world.consumer.pull(queue, 0)).messages]
        return found, [event.kind for event in world.events if event.kind in (Kind.SEND, Kind.SEND_ACK)]

    assert play(scenario) == ([b"body"], [Kind.SEND])


def test_a_broker_that_is_disconnected_meanwhile_loses_no_acknowledged_send() -> None:
    async def scenario(world: World) -> None:
        sends = [asyncio.create_task(world.producer.send(MESSAGE)) for _ in range(50)]
        await asyncio.sleep(0.003)
        world.network.cut(world.broker_address)
        outcomes = await asyncio.gather(*sends)
        stored: Counter[str] = Counter()
        for queue in await world.consumer.queues("T"):
            result = await world.consumer.pull(queue, 0)
            stored.update(message.message_id for message in result.messages)
        for outcome in outcomes:
            if isinstance(outcome, Sent):
                assert stored[outcome.message_id] >= 1
            if isinstance(outcome, Refused):
                assert stored[outcome.message_id] == 0

    play(scenario)


def test_send_or_raise_returns_only_what_is_stored() -> None:
    async def scenario(script: Script) -> None:
        producer = Producer(script.session)
        assert (await producer.send_or_raise(MESSAGE)).status == "SEND_OK"
        with pytest.raises(SendError, match="is not stored: MESSAGE_ILLEGAL: scripted") as refused:
            await producer.send_or_raise(MESSAGE)
        assert isinstance(refused.value.outcome, Refused)
        with pytest.raises(SendError, match="may be stored") as unknown:
            await producer.send_or_raise(MESSAGE, MessageQueue("T", "a", 0), timeout_ms=100)
        assert isinstance(unknown.value.outcome, Unknown)

    loop = SimulatedLoop()

    async def main() -> None:
        async with Script(loop, [0, 13, None]) as script:
            await scenario(script)

    run_simulated(main(), loop)


@pytest.mark.parametrize("answers", [(0,), (13,), (None, None, None)])
def test_an_outcome_has_no_truth_value(answers: tuple[int | None, ...]) -> None:
    outcome, _, _ = send(*answers)
    with pytest.raises(TypeError, match="has no truth value: test isinstance"):
        bool(outcome)


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"group": "a b"}, ValueError, "group 'a b': 1 to 120 letters"),
        ({"group": ""}, ValueError, "group '': 1 to 120 letters"),
        ({"retries": "2"}, TypeError, "retries is '2', a whole number expected"),
        ({"send_timeout_ms": 0}, ValueError, "send_timeout_ms is 0, at least 1 expected"),
        ({"retry_unknown": "no"}, TypeError, "retry_unknown is 'no', a value of the type bool expected"),
        ({"default_topic": "T x"}, ValueError, "the topic 'T x' has a character other than"),
    ],
)
def test_a_producer_cannot_be_created_with_values_that_it_could_not_use(
    settings: dict[str, Any], kind: type[Exception], text: str
) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(kind, match=text):
            Producer(world.session, ProducerConfig(**settings))

    play(scenario)
