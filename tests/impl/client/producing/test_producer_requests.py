"""Tests the requests of a producer field by field, its traces and events, and the least values it accepts.

The broker is scripted. Source: docs/reference/protocol/sending.md.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import (
    MessageError,
    MessageQueue,
    NoReplyError,
    NoRouteError,
    ReceivedMessage,
    RefusalError,
    ReplyError,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.producer import (
    Producer,
    ProducerConfig,
    _Ended,
    _outcomes,
    trace_dispatcher,
)
from mqproof.impl.client.producing.queue_choice import LEVELS_5
from mqproof.impl.client.tracing.trace_records import MessageType, Published
from mqproof.impl.remoting.bodies import BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import SendResponse
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.spec.events import Event, Kind

QUEUE = MessageQueue("T", "b", 1)
BROKER = Address("h", 1)


class Remoting:
    """Stands for the connections of a session: answers after `takes_s`, and records each request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Address, float]] = []
        self.requests: list[Command] = []
        self.answer: tuple[int, dict[str, str]] | RemotingError = (
            0, {"msgId": "id", "queueId": "1", "queueOffset": "7"},
        )  # fmt: skip
        self.remark: str | None = None
        self.takes_s = 0.25
        self.connection: object = object()
        self.cancel_takes_s = 0.0

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        self.asked.append((RequestCode(request.code).name, address, round(timeout_s, 6)))
        self.requests.append(request)
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            await asyncio.sleep(self.cancel_takes_s)
            raise
        if isinstance(self.answer, RemotingError):
            raise self.answer
        code, fields = self.answer
        return Command(code, 0, fields=fields, remark=self.remark)

    async def send_oneway(self, address: Address, request: Command) -> None:
        await self.invoke(address, request, 0)

    def is_connected(self, _address: Address) -> bool:
        return True

    def channel(self, _address: Address) -> object:
        return self.connection

    async def close(self) -> None:
        """Does nothing."""


class Traces:
    """Collects trace records."""

    def __init__(self) -> None:
        self.records: list[Published] = []

    def traces(self, topic: str) -> bool:
        return topic == "T"

    def add(self, records: Sequence[Published]) -> None:
        self.records += records


class Site:
    def __init__(self, session: Session, config: ProducerConfig) -> None:
        self.session = session
        self.remoting = Remoting()
        session.remoting = cast(Any, self.remoting)
        session.routes._routes["T"] = TopicRoute(
            [BrokerData({0: str(BROKER)}, "b", "C")], [QueueData("b", 6, 2, 0, 2)]
        )
        self.doubted: list[str] = []
        session.routes.doubt = self.doubted.append  # type: ignore[method-assign,assignment]
        self.events: list[Event] = []
        log = EventLog(self.events.append, "p", session.runtime.clock)
        self.producer = Producer(session, config, log)
        self.traces = Traces()
        self.producer._traces = cast(Any, self.traces)


def play(scenario: Callable[[Site], Awaitable[None]], config: ProducerConfig | None = None) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        session = Session([Address("n", 1)], simulated(loop, SimulatedNetwork()), "me")
        await asyncio.sleep(5)
        async with asyncio.timeout(100):
            await scenario(Site(session, config or ProducerConfig("PG")))

    run_simulated(main(), loop)


def test_a_send_has_all_its_fields_and_the_whole_time() -> None:
    async def scenario(site: Site) -> None:
        message = Message(
            "T", b"x", {"UNIQ_KEY": "m"}, flag=3, sys_flag=4, born_timestamp_ms=9, reconsume_times=2
        )
        sent = await site.producer.send(message, QUEUE)
        assert sent == Sent("SEND_OK", "m", QUEUE, 7, "id", 1)
        assert site.remoting.asked == [("SEND_MESSAGE_V2", BROKER, 3.0)]
        fields = dict(site.remoting.requests[0].fields)
        assert fields == {
            "a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "4", "g": "9", "h": "3",
            "i": fields["i"], "j": "2", "k": "false", "m": "false",
        }  # fmt: skip
        assert "UNIQ_KEY\x01m" in fields["i"]

    play(scenario)


M = Message("T", b"x")


@pytest.mark.parametrize(
    "call",
    [
        lambda p, **how: p.send(M, **how),
        lambda p, **how: p.send_or_raise(M, **how),
        lambda p, **how: p.send_batch([M, M], **how),
        lambda p, **how: p.request(M, **how),
        lambda p, **how: p.send_oneway(M, **how),
    ],
    ids=["send", "or_raise", "batch", "request", "oneway"],
)
def test_each_send_takes_its_queue_or_its_selector_and_has_the_time_of_the_call(
    call: Callable[..., Awaitable[object]], request: pytest.FixtureRequest
) -> None:
    limit = {} if "oneway" in request.node.name else {"timeout_ms": 70}

    async def scenario(site: Site) -> None:
        site.remoting.takes_s = 0.0
        for how in ({"queue": QUEUE}, {"select": lambda queues: queues[-1]}):
            site.remoting.requests.clear()
            site.remoting.asked.clear()
            with contextlib.suppress(NoReplyError):
                await call(site.producer, **how, **limit)
            sends = {index for index, each in enumerate(site.remoting.requests) if "e" in each.fields}
            assert [site.remoting.requests[index].fields["e"] for index in sends] == ["1"]
            assert [site.remoting.asked[index][2] for index in sends] == [0.07 if limit else 0]

    play(scenario)


def test_each_of_many_messages_has_the_time_of_the_call() -> None:
    async def scenario(site: Site) -> None:
        await site.producer.send_many([M, M], timeout_ms=70)
        await site.producer.send_many([M])
        assert [timeout_s for *_, timeout_s in site.remoting.asked] == [0.07, 0.07, 3.0]

    play(scenario)


def test_a_send_and_its_end_are_events_with_the_parts_of_the_message() -> None:
    async def scenario(site: Site) -> None:
        properties = {"UNIQ_KEY": "m", "KEYS": "k", "TAGS": "A"}
        asked = replace(QUEUE, queue_id=0)  # the broker may choose another one
        await site.producer.send(Message("T", b"x", properties, born_timestamp_ms=9), asked)
        send, ack = site.events
        assert (send.kind, send.queue_offset, send.status, send.tags) == (Kind.SEND, None, None, "A")
        assert (send.queue_id, ack.queue_id) == (0, 1)
        assert (ack.kind, ack.queue_offset, ack.status, ack.tags) == (Kind.SEND_ACK, 7, "SEND_OK", None)
        for event in (send, ack):
            assert (event.msg_id, event.topic, event.group) == ("m", "T", "PG")
            assert (event.client, event.attempt, event.keys, event.born_ts) == ("me", 1, "k", 9000)
            assert event.attrs["broker"] == "b"

    play(scenario)


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, MessageType.NORMAL),
        ({"TRAN_MSG": "true"}, MessageType.HALF),
        ({"DELAY": "3"}, MessageType.DELAYED),
        ({"TRAN_MSG": "true", "DELAY": "3"}, MessageType.DELAYED),
    ],
)
def test_the_trace_of_a_stored_message_is_exact(properties: dict[str, str], kind: MessageType) -> None:
    async def scenario(site: Site) -> None:
        site.remoting.answer = (0, {"msgId": "id", "queueId": "1", "queueOffset": "7", "MSG_REGION": "r"})
        sent_ms = now_ms(site.session.runtime.clock)
        site.remoting.takes_s = 2
        own = {"UNIQ_KEY": "m", "TAGS": "A", "KEYS": "k", **properties}
        await site.producer.send(Message("T", b"abc", own), QUEUE)
        assert site.traces.records == [
            Published(sent_ms, "r", "PG", "T", ("m",), "A", "k", "h:1", 3, 2000, kind, "id", True)
        ]

    play(scenario)


@pytest.mark.parametrize(
    ("code", "fields", "ok"),
    [
        (10, {}, [False]),
        (0, {"TRACE_ON": "true"}, [True]),
        (0, {"TRACE_ON": "false"}, []),
        (16, {}, []),
    ],
)
def test_only_what_is_stored_is_traced_unless_the_broker_has_tracing_off(
    code: int, fields: dict[str, str], ok: list[bool]
) -> None:
    async def scenario(site: Site) -> None:
        site.remoting.answer = (code, {"msgId": "id", "queueId": "1", "queueOffset": "7", **fields})
        await site.producer.send_batch([Message("T", b"a", {"TAGS": "A"}), Message("T", b"b")], QUEUE)
        assert [record.ok for record in site.traces.records] == ok
        assert [(len(each.message_ids), each.tag, each.keys) for each in site.traces.records] == [
            (2, None, None)
        ] * len(ok)

    play(scenario)


def test_a_stored_message_whose_place_is_not_in_the_answer_has_an_unknown_outcome() -> None:
    async def scenario(site: Site) -> None:
        site.remoting.answer = (0, {"msgId": "id"})
        outcome = await site.producer.send(Message("T", b"x", {"UNIQ_KEY": "m"}), QUEUE)
        assert isinstance(outcome, Unknown)
        assert (outcome.message_id, outcome.attempts) == ("m", 1)
        assert outcome.remark.startswith("SEND_OK, but ")

    play(scenario)


def test_a_topic_that_must_not_be_traced_is_not() -> None:
    async def scenario(site: Site) -> None:
        site.session.routes._routes["U"] = site.session.routes._routes["T"]
        for topic in ("U", "T"):
            await site.producer.send(Message(topic, b"x"))
        assert [record.topic for record in site.traces.records] == ["T"]

    play(scenario)


def handle_at(broker: str) -> str:
    return RecallHandle("T", broker, 1, "m").encode()


def test_a_recall_has_its_fields_and_a_refusal_its_reason() -> None:
    handle = handle_at("b")

    async def scenario(site: Site) -> None:
        await site.producer.recall("T", handle)
        await site.producer.recall("T", handle, timeout_ms=70)
        assert site.remoting.asked == [("RECALL_MESSAGE", BROKER, 3.0), ("RECALL_MESSAGE", BROKER, 0.07)]
        fields = site.remoting.requests[0].fields
        assert (fields["topic"], fields["recallHandle"], fields["producerGroup"]) == ("T", handle, "PG")
        site.remoting.answer = (ResponseCode.NO_PERMISSION, {})
        with pytest.raises(
            RefusalError, match="the recall of a message in T failed: NO_PERMISSION: no remark"
        ) as error:
            await site.producer.recall("T", handle)
        assert error.value.code == ResponseCode.NO_PERMISSION
        with pytest.raises(MessageError):
            await site.producer.recall("T", "nonsense")
        with pytest.raises(NoRouteError, match="broker gone has no master"):
            await site.producer.recall("T", handle_at("gone"))
        assert site.doubted == ["T"]

    play(scenario)


def test_a_message_of_a_topic_without_writable_queues_can_be_recalled() -> None:
    async def scenario(site: Site) -> None:
        brokers = site.session.routes._routes["T"].broker_datas
        site.session.routes._routes["T"] = TopicRoute(brokers, [QueueData("b", 4, 2, 0, 2)])
        await site.producer.recall("T", handle_at("b"))
        assert [name for name, *_ in site.remoting.asked] == ["RECALL_MESSAGE"]

    play(scenario)


@pytest.mark.parametrize(("timeout_ms", "limit_s"), [(None, 3.0), (70, 0.07)])
def test_the_route_for_a_recall_must_arrive_within_its_time(timeout_ms: int | None, limit_s: float) -> None:
    async def scenario(site: Site) -> None:
        site.remoting.takes_s = 10
        site.session.name_servers._client = cast(Any, site.remoting)
        begun_s = asyncio.get_running_loop().time()
        with pytest.raises(NoRouteError, match="the route of Other was not received in time"):
            await site.producer.recall("Other", handle_at("b"), timeout_ms=timeout_ms)
        assert asyncio.get_running_loop().time() - begun_s == pytest.approx(limit_s)

    play(scenario)


def test_a_request_chooses_its_queue_once() -> None:
    chosen = []

    def select(queues: Sequence[MessageQueue]) -> MessageQueue:
        chosen.append(queues[-1])
        return queues[-1]

    async def scenario(site: Site) -> None:
        with pytest.raises(NoReplyError):
            await site.producer.request(Message("T", b"q"), select=select, timeout_ms=1000)
        assert chosen == [QUEUE]

    play(scenario)


def test_a_oneway_send_is_an_event_and_a_failure_doubts_the_route() -> None:
    async def scenario(site: Site) -> None:
        key = await site.producer.send_oneway(Message("T", b"x", {"UNIQ_KEY": "m"}), QUEUE)
        assert (key, site.remoting.requests[0].is_oneway) == ("m", True)
        assert [(event.kind, event.attempt) for event in site.events] == [(Kind.SEND, 1)]
        site.remoting.answer = RemotingError("lost")
        with pytest.raises(RemotingError, match="lost"):
            await site.producer.send_oneway(Message("T", b"x"), QUEUE)
        assert site.doubted == ["T"]
        with pytest.raises(NoRouteError, match="broker gone has no master"):
            await site.producer.send_oneway(Message("T", b"x"), MessageQueue("T", "gone", 0))
        assert site.doubted == ["T", "T"]

    play(scenario)


REQUEST = ReceivedMessage(
    StoredMessage(
        Message("T", b"q", {"CLUSTER": "C", "CORRELATION_ID": "7", "REPLY_TO_CLIENT": "you"}), 0, 0, 0, 0, 0
    ),
    QUEUE,
    0,
)


def test_a_reply_goes_to_the_broker_of_its_request_and_a_failure_says_why() -> None:
    async def scenario(site: Site) -> None:
        await site.producer.reply(REQUEST, b"a")
        await site.producer.reply(REQUEST, b"a", timeout_ms=70)
        with pytest.raises(MessageError, match="must be texts"):
            await site.producer.reply(REQUEST, b"a", properties={"a": 1})  # type: ignore[dict-item]
        name = "SEND_REPLY_MESSAGE_V2"
        assert site.remoting.asked == [(name, BROKER, 3.0), (name, BROKER, 0.07)]
        fields = site.remoting.requests[0].fields
        assert (fields["b"], fields["e"]) == ("C_REPLY_TOPIC", "0")
        site.remoting.answer = (ResponseCode.SYSTEM_ERROR, {})
        with pytest.raises(ReplyError, match="SYSTEM_ERROR: no remark"):
            await site.producer.reply(REQUEST, b"a")
        site.remoting.answer = RemotingError("lost")
        with pytest.raises(ReplyError, match="it is unknown whether the requester received the reply: lost"):
            await site.producer.reply(REQUEST, b"a")
        with pytest.raises(ReplyError, match="broker gone has no master"):
            await site.producer.reply(replace(REQUEST, queue=MessageQueue("T", "gone", 0)), b"a")

    play(scenario)


@pytest.mark.parametrize(("timeout_ms", "limit_s"), [(None, 3.0), (700, 0.7)])
def test_the_send_of_a_request_has_the_time_that_is_left(timeout_ms: int | None, limit_s: float) -> None:
    async def scenario(site: Site) -> None:
        begun_s = asyncio.get_running_loop().time()
        with pytest.raises(NoReplyError, match=f"within {round(limit_s * 1000)} ms; message m is stored"):
            await site.producer.request(Message("T", b"q", {"UNIQ_KEY": "m"}), QUEUE, timeout_ms=timeout_ms)
        assert asyncio.get_running_loop().time() - begun_s == pytest.approx(limit_s)
        # The heartbeat before the send took a quarter of a second.
        assert site.remoting.asked[:2] == [
            ("HEART_BEAT", BROKER, 3.0), ("SEND_MESSAGE_V2", BROKER, round(limit_s - 0.25, 6)),
        ]  # fmt: skip
        (send,) = [
            request for request in site.remoting.requests if request.code == RequestCode.SEND_MESSAGE_V2
        ]
        assert f"TTL\x01{round(limit_s * 1000)}" in send.fields["i"]
        assert "REPLY_TO_CLIENT\x01me" in send.fields["i"]

    play(scenario)


@pytest.mark.parametrize("takes_s", [0.25, 10])
def test_a_request_ends_at_its_time_limit_whether_it_is_sent_by_then_or_not(takes_s: float) -> None:
    async def scenario(site: Site) -> None:
        site.remoting.takes_s = takes_s
        begun_s = asyncio.get_running_loop().time()
        with pytest.raises(NoReplyError):
            await site.producer.request(M, QUEUE, timeout_ms=700)
        assert asyncio.get_running_loop().time() - begun_s == pytest.approx(0.7)

    play(scenario)


def test_a_reply_that_arrives_before_the_answer_to_its_send_is_returned() -> None:
    async def scenario(site: Site) -> None:
        site.remoting.takes_s = 1
        asking = asyncio.create_task(site.producer.request(M, QUEUE))
        await asyncio.sleep(1.5)  # the send is on its way
        (correlation_id,) = site.session.replies._waiting
        site.session.replies.give(correlation_id, M)
        assert await asking is M
        assert site.remoting.asked[-1][0] == "SEND_MESSAGE_V2"

    play(scenario)


def test_while_a_request_waits_a_new_connection_gets_a_heartbeat_within_a_second() -> None:
    async def scenario(site: Site) -> None:
        site.remoting.takes_s = 0
        asking = asyncio.create_task(site.producer.request(M, QUEUE))
        await asyncio.sleep(0.5)
        assert [name for name, *_ in site.remoting.asked] == ["HEART_BEAT", "SEND_MESSAGE_V2"]
        site.remoting.connection = object()
        await asyncio.sleep(0.4)
        assert len(site.remoting.asked) == 2
        await asyncio.sleep(0.2)
        assert [name for name, *_ in site.remoting.asked[2:]] == ["HEART_BEAT"]
        await asyncio.gather(asking, return_exceptions=True)
        assert site.session._greeter is not None
        await site.session._greeter

    play(scenario)


def test_a_connection_that_the_send_of_a_request_opened_gets_a_heartbeat_at_once() -> None:
    async def scenario(site: Site) -> None:
        asking = asyncio.create_task(site.producer.request(M, QUEUE, timeout_ms=900))
        await asyncio.sleep(0.3)  # the send is on its way
        site.remoting.connection = object()
        await asyncio.gather(asking, return_exceptions=True)
        names = [name for name, *_ in site.remoting.asked]
        assert names == ["HEART_BEAT", "SEND_MESSAGE_V2", "HEART_BEAT"]
        assert site.session._greeter is not None
        await site.session._greeter

    play(scenario)


def test_a_cancelled_request_ends_its_send_and_waits_for_its_end() -> None:
    async def scenario(site: Site) -> None:
        site.remoting.takes_s, site.remoting.cancel_takes_s = 1, 0.125
        asking = asyncio.create_task(site.producer.request(Message("T", b"q"), QUEUE))
        await asyncio.sleep(1.5)  # the send is on its way
        asking.cancel()
        begun_s = asyncio.get_running_loop().time()
        await asyncio.gather(asking, return_exceptions=True)
        assert asyncio.get_running_loop().time() == begun_s + 0.125
        assert not [task for task in asyncio.all_tasks() if "_send_request" in repr(task)]
        for task in (site.session._greeter, *site.session._greetings):
            if task is not None:
                task.cancel()
        await asyncio.sleep(0.2)
        assert len(asyncio.all_tasks()) == 1

    play(scenario)


RESPONSE = SendResponse("i1,i2", 1, 7)


def test_the_outcome_of_a_batch_has_an_id_and_an_offset_for_each_message() -> None:
    payload = cast(
        Any, SimpleNamespace(messages=[Message("T", b"x", {"UNIQ_KEY": f"m{each}"}) for each in range(3)])
    )
    ends = [_Ended("FLUSH_DISK_TIMEOUT", 1, "", True, QUEUE, RESPONSE), _Ended("NO_ROUTE", 2, "gone")]
    assert [
        (each.status, each.message_id, each.queue_offset, each.offset_message_id, each.attempts)
        for each in _outcomes(payload, ends)
        if isinstance(each, Sent)
    ] == [
        ("FLUSH_DISK_TIMEOUT", "m0", 7, "i1", 2),
        ("FLUSH_DISK_TIMEOUT", "m1", 8, "i2", 2),
        ("FLUSH_DISK_TIMEOUT", "m2", 9, "", 2),
    ]


def test_a_topic_that_a_send_creates_has_at_most_the_requested_number_of_queues() -> None:
    async def scenario(site: Site) -> None:
        template = TopicRoute([], [QueueData("a", 6, 8, 1, 9), QueueData("b", 7, 3, 0, 2)])
        assert site.producer._as_if_created(template).queue_datas == [
            QueueData("a", 6, 4, 1, 4), QueueData("b", 7, 3, 0, 3),
        ]  # fmt: skip

    play(scenario)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("send_timeout_ms", 1), ("retries", 0), ("body_bytes_max", 1), ("compress_from_bytes", 0),
        ("default_topic_queues", 1),
    ],
)  # fmt: skip
def test_the_least_value_of_each_number_is_accepted(name: str, least: int) -> None:
    async def scenario(site: Site) -> None:
        with pytest.raises(ValueError, match=f"{name} is {least - 1}, at least {least} expected"):
            Producer(site.session, ProducerConfig(**cast(Any, {name: least - 1})))

    play(scenario, ProducerConfig(**cast(Any, {name: least})))


def test_traces_have_a_producer_group_of_their_own_and_a_topic_that_is_allowed() -> None:
    async def scenario(site: Site) -> None:
        assert trace_dispatcher(site.session, "G-PRODUCE", None) is None
        dispatcher = trace_dispatcher(site.session, "G-PRODUCE", "Traces")
        assert dispatcher is not None
        assert dispatcher.topic == "Traces"
        assert site.session._at_stop == [dispatcher.stop]
        assert "_INNER_TRACE_PRODUCER-G-PRODUCE-1" in site.session._producers
        with pytest.raises(MessageError, match="the topic 'a b'"):
            trace_dispatcher(site.session, "G-PRODUCE", "a b")

    play(scenario)


@pytest.mark.parametrize("topic", [None, "Traces"])
def test_sends_are_traced_only_with_a_topic_for_them(topic: str | None) -> None:
    async def scenario(site: Site) -> None:
        traces = Producer(site.session, ProducerConfig("PG", trace_topic=topic))._traces
        assert (traces and traces.topic) == topic
        groups = set(site.session._producers)
        assert groups == {"PG"} | (set() if topic is None else {"_INNER_TRACE_PRODUCER-PG-PRODUCE-1"})

    play(scenario)


@pytest.mark.parametrize(("strategy", "levels"), [(False, None), (True, LEVELS_5)])
def test_slow_brokers_are_avoided_only_with_the_strategy(strategy: bool, levels: object) -> None:
    async def scenario(site: Site) -> None:
        assert site.producer._choice._levels is levels

    play(scenario, ProducerConfig(latency_fault_strategy=strategy))
