"""Tests a push consumer in the simulated world: deliveries, offsets, and the owners of queues."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors import all_processors, retries
from mqproof.impl.broker.processors import send as send_module
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.allocation import averagely
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import (
    ClientError,
    MessageQueue,
    ReceivedMessage,
    RefusalError,
    RetryLater,
    Sent,
)
from mqproof.impl.remoting import bodies, java_json
from mqproof.impl.remoting.bodies import ConsumedDirectly, RunningInfo, TopicConfig
from mqproof.impl.remoting.channel import Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import ConsumerRequest, ResetOffsetRequest
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.spec.events import Kind
from tests.impl.client.members import GROUP, Ear, committed, make_topic, member, numbers, send
from tests.impl.world import SMALL_STORE, World, play

FIXED_PORT = BrokerConfig(store_directory="/store", port=10_911, store=SMALL_STORE)


def refuse(monkeypatch: pytest.MonkeyPatch, code: RequestCode, response: ResponseCode) -> None:
    """Replace the answer of brokers to this request."""

    def processor(services: object, request: Command, channel: object) -> Reply:
        raise RefusedError(response, "injected")

    monkeypatch.setitem(all_processors.PROCESSORS, code, processor)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redeliver at once, because the delays of the broker are not tested here."""

    def at_once(services: object, message: Message) -> Message:
        return message

    monkeypatch.setattr(retries, "scheduled_or_refused", at_once)
    monkeypatch.setattr(send_module, "scheduled_or_refused", at_once)


# Consuming.


def test_every_message_is_consumed_once_and_its_offset_is_stored() -> None:
    async def scenario(world: World) -> tuple[list[bytes], dict[int, int | None]]:
        ear = Ear()
        await send(world, numbers(0, 8))
        async with member(world, "c1", ear):
            await send(world, numbers(8, 20))
            await asyncio.sleep(6)
            return ear.bodies(), await committed(world)

    bodies, offsets = play(scenario)
    assert sorted(bodies) == sorted(numbers(0, 20))
    assert offsets == dict.fromkeys(range(4), 5)


def test_a_restarted_group_continues_without_waiting_for_the_periodic_store_of_offsets() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        first, second = Ear(), Ear()
        await send(world, numbers(0, 10))
        async with member(world, "c1", first):
            pass
        await send(world, numbers(10, 14))
        async with member(world, "c2", second):
            pass
        return first.bodies(), second.bodies()

    first, second = play(scenario)
    assert sorted(first) == sorted(numbers(0, 10))
    assert sorted(second) == sorted(numbers(10, 14))


def test_a_topic_that_is_created_later_is_found() -> None:
    async def scenario(world: World) -> list[bytes]:
        ear = Ear()
        async with member(world, "c1", ear):
            await asyncio.sleep(60)
            await send(world, [b"x"])
            await asyncio.sleep(4.5)
            return ear.bodies()

    assert play(scenario) == [b"x"]


def test_only_wanted_tags_are_delivered_compared_as_text_and_the_rest_is_skipped() -> None:
    async def scenario(world: World) -> tuple[list[bytes], int]:
        await make_topic(world)
        ear = Ear()
        async with member(world, "c1", ear, tags=" Aa || C "):
            for tag in ("Aa", "BB", "C", "D", None):  # Aa and BB have the same hash
                await send(world, [tag.encode() if tag else b"none"] * 4, tag)
            await asyncio.sleep(26)
        return ear.bodies(), sum(offset or 0 for offset in (await committed(world)).values())

    bodies, offsets = play(scenario)
    assert Counter(bodies) == {b"Aa": 4, b"C": 4}
    assert offsets == 20


def test_an_unsubscribed_topic_is_no_longer_read() -> None:
    async def scenario(world: World) -> tuple[list[bytes], set[str]]:
        ear = Ear()
        await make_topic(world)
        async with member(world, "c1", ear) as consumer:
            await send(world, numbers(0, 4))
            await asyncio.sleep(1)
            await consumer.unsubscribe("T")
            await asyncio.sleep(1)
            await send(world, numbers(4, 8))
            await asyncio.sleep(21)
            return ear.bodies(), {queue.topic for queue in consumer.owned()}

    bodies, topics = play(scenario)
    assert sorted(bodies) == numbers(0, 4)
    assert topics == {f"%RETRY%{GROUP}"}


def test_a_message_has_all_that_its_producer_gave_it() -> None:
    async def scenario(world: World) -> ReceivedMessage:
        await make_topic(world)
        ear = Ear()
        message = Message("T", b"long " * 2000, {"KEYS": "k1 k2", "TAGS": "A", "mine": "1"})
        async with member(world, "c1", ear):
            outcome = await world.producer.send(message)
            await asyncio.sleep(21)
            (heard,) = ear.heard
            assert heard.message_id == outcome.message_id
            return heard

    heard = play(scenario)
    assert (heard.body, heard.topic, heard.tag, heard.keys) == (b"long " * 2000, "T", "A", ["k1", "k2"])
    assert (heard.properties["mine"], heard.reconsume_times) == ("1", 0)


def test_a_plain_function_can_be_a_listener_and_batches_have_the_configured_size() -> None:
    async def scenario(world: World) -> list[int]:
        sizes: list[int] = []

        def listener(messages: Sequence[ReceivedMessage]) -> None:
            sizes.append(len(messages))

        await send(world, numbers(0, 20))
        async with member(world, "c1", listener, PushConsumerConfig(batch_max=3)):
            return sizes

    assert sorted(play(scenario)) == [2, 2, 2, 2, 3, 3, 3, 3]


def test_no_more_listeners_run_than_configured() -> None:
    async def scenario(world: World) -> tuple[int, int]:
        ear = Ear()
        ear.takes_s = 0.1
        await send(world, numbers(0, 40))
        async with member(world, "c1", ear, PushConsumerConfig(concurrency=3)):
            await asyncio.sleep(1)
        return ear.busy_most, len(ear.heard)

    assert play(scenario) == (3, 40)


@pytest.mark.parametrize(
    "limits",
    [
        PullLimits(messages_max=40, batch=8),
        PullLimits(bytes_max=40),
        PullLimits(span_max=40, batch=8),
        PullLimits(total_bytes_max=40),
    ],
)
def test_pulling_pauses_while_too_much_is_held(limits: PullLimits) -> None:
    async def scenario(world: World) -> tuple[int, int]:
        ear = Ear()
        ear.takes_s = 1000.0
        queue = MessageQueue("T", "broker-a", 0)
        for _ in range(120):
            await world.producer.send(Message("T", b"x"), queue)
        config = PushConsumerConfig(limits=limits, stop_timeout_ms=1)
        async with member(world, "c1", ear, config) as consumer:
            await asyncio.sleep(5)
            stuck = max(len(held) for held in consumer._queues.process_queues())
            return stuck, len(ear.heard)

    held, heard = play(scenario)
    assert 40 <= held <= 40 + 32
    assert heard == 20


# Dividing queues.


def owners(consumers: Sequence[PushConsumer]) -> Counter[MessageQueue]:
    return Counter(queue for consumer in consumers for queue in consumer.owned())


def test_members_are_sorted_as_java_sorts_strings() -> None:
    """The order is by UTF-16. Otherwise, members in two languages would choose the same queue."""
    names = ["c", "\uff61", "a", "\U0001f600"]

    async def scenario(world: World) -> list[list[int]]:
        await make_topic(world)
        async with contextlib.AsyncExitStack() as stack:
            members = [await stack.enter_async_context(member(world, name, Ear())) for name in names]
            await asyncio.sleep(30)
            return [[queue.queue_id for queue in one.owned() if queue.topic == "T"] for one in members]

    assert play(scenario) == [[1], [3], [0], [2]]


def test_deliv_6_one_owner_while_members_join_and_leave() -> None:
    """DELIV-6 OneOwner: each queue has one owner after each change, and every message is consumed once."""

    async def scenario(world: World) -> tuple[list[Counter[MessageQueue]], list[bytes]]:
        seen = []
        ears = [Ear() for _ in range(3)]
        await send(world, numbers(0, 4))
        async with member(world, "c0", ears[0]) as c0:
            seen.append(owners([c0]))
            await asyncio.sleep(5)  # its offsets are stored
            async with member(world, "c1", ears[1]) as c1, member(world, "c2", ears[2]) as c2:
                await send(world, numbers(4, 24))
                await asyncio.sleep(1)
                seen.append(owners([c0, c1, c2]))
            await asyncio.sleep(1)
            seen.append(owners([c0]))
            await send(world, numbers(24, 44))
            await asyncio.sleep(1)
        return seen, [body for ear in ears for body in ear.bodies()]

    seen, bodies = play(scenario)
    topic = {MessageQueue("T", "broker-a", queue_id): 1 for queue_id in range(4)}
    assert seen == [topic | {MessageQueue(f"%RETRY%{GROUP}", "broker-a", 0): 1}] * 3
    assert sorted(bodies) == sorted(numbers(0, 44))


def test_deliv_3_duplicates_explained_a_member_that_dies_leaves_messages_it_had_not_stored() -> None:
    """DELIV-3 DuplicatesExplained: repeated messages were consumed after offsets were last stored."""

    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        await make_topic(world)
        first, second = Ear(), Ear()
        session = Session([world.namesrv_address], world.runtime)
        dying = PushConsumer(session, GROUP, first)
        await dying.start()
        await dying.subscribe("T")
        await send(world, numbers(0, 8))
        await asyncio.sleep(27)
        await send(world, numbers(8, 12))
        await asyncio.sleep(1)
        for task in dying._tasks:
            task.cancel()
        dying._queues.stop()
        await session.remoting.close()  # without unregistering
        async with member(world, "c2", second):
            await send(world, numbers(12, 16))
            await asyncio.sleep(1)
        await dying._consumption.stop(0)
        return first.bodies(), second.bodies()

    first, second = play(scenario)
    assert sorted(first) == sorted(numbers(0, 12))
    assert sorted(second) == sorted(numbers(8, 16))


def test_deliv_5_offset_monotone_results_for_a_reassigned_queue_do_not_count() -> None:
    """DELIV-5 OffsetMonotone: the old owner's listener ends late, and the new owner's offset stays."""

    async def scenario(world: World) -> list[tuple[str, int | None, int | None]]:
        slow, quick = Ear(), Ear()
        slow.takes_s = 9.0
        await send(world, numbers(0, 8))
        async with member(world, "c1", slow), member(world, "c2", quick):
            await asyncio.sleep(30)
        return [
            (event.node, event.queue_id, event.queue_offset)
            for event in world.events
            if event.kind is Kind.OFFSET_COMMIT and event.topic == "T" and event.node == "broker-a"
        ]

    reached: Counter[int] = Counter()
    for _, queue_id, offset in play(scenario):
        assert queue_id is not None
        assert offset is not None
        assert offset >= reached[queue_id]
        reached[queue_id] = offset
    assert reached == dict.fromkeys(range(4), 2)


def test_deliv_5_offset_monotone_a_member_that_reads_again_does_not_undo_commits_made_meanwhile() -> None:
    """DELIV-5 OffsetMonotone: a restarted broker knows some members before the others.

    The others have read on meanwhile. The first member that the broker knows reads all queues until the group
    agrees.
    """

    async def scenario(world: World) -> tuple[int | None, int | None]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        for body in numbers(0, 8):
            await world.producer.send(Message("T", body), queue)
        async with member(world, "c1", ear):
            await asyncio.sleep(6)
            ear.takes_s = 12.0
            for body in numbers(8, 10):
                await world.producer.send(Message("T", body), queue)
            assert world.broker is not None
            assert world.broker.services is not None
            world.broker.services.offsets.commit(GROUP, "T", 0, 10)  # the offset of another member
            await asyncio.sleep(6)
            early = (await committed(world))[0]
        return early, (await committed(world))[0]

    assert play(scenario) == (10, 10)


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("answer", [None, RetryLater()])
def test_deliv_3_a_listeners_result_for_a_reassigned_queue_does_not_count(
    orderly: bool, answer: RetryLater | None
) -> None:
    """DELIV-3 DuplicatesExplained:

    nothing is sent back, logged or committed; the next owner has the message.
    """

    async def scenario(world: World) -> tuple[Counter[Kind], list[int]]:
        ear = Ear()
        ear.takes_s, ear.answer = 4.0, answer
        await send(world, numbers(0, 8))
        config = PushConsumerConfig(orderly=orderly, stop_timeout_ms=10_000)
        async with member(world, "c1", ear, config) as consumer:
            for queue in list(consumer.owned()):
                await consumer.lose(queue)
            await asyncio.sleep(3)
            kinds = Counter(event.kind for event in world.events if event.node == "c1")
            return kinds, [offset or 0 for offset in (await committed(world)).values()]

    kinds, offsets = play(scenario)
    assert kinds[Kind.DELIVER] == (4 if orderly else 8)
    assert not {Kind.CONSUME_OK, Kind.CONSUME_FAIL, Kind.RETRY} & kinds.keys()
    assert offsets == [0, 0, 0, 0]


@pytest.mark.parametrize("orderly", [False, True])
def test_deliv_5_a_queue_reassigned_while_a_message_is_sent_back_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, orderly: bool
) -> None:
    """DELIV-5 OffsetMonotone: an offset kept for a queue of another member would be stored repeatedly."""

    async def scenario(world: World) -> tuple[bool, int | None]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        ear.answer = RetryLater()
        await world.producer.send(Message("T", b"x"), queue)
        config = PushConsumerConfig(orderly=orderly, reconsume_max=0)
        async with member(world, "c1", ear, config) as consumer:
            assert len(ear.heard) == 1
            await consumer.lose(queue)
            await asyncio.sleep(5)
            return given_back, consumer._offsets.get(queue)

    given_back = False

    async def slowly(calls: GroupRequests, *message: object) -> None:
        nonlocal given_back
        await asyncio.sleep(4)
        given_back = True

    monkeypatch.setattr(GroupRequests, "send_back", slowly)
    assert play(scenario) == (True, None)


def test_a_strategy_that_fails_is_tried_again() -> None:
    async def scenario(world: World) -> int:
        failures = [RuntimeError("injected")] * 2

        def strategy(queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:
            if failures:
                raise failures.pop()
            return averagely(queues, ids, own)

        await make_topic(world)
        async with member(world, "c1", Ear(), PushConsumerConfig(strategy=strategy)) as consumer:
            await asyncio.sleep(3)
            return len(consumer.owned())

    assert play(scenario) == 5


def test_a_heartbeat_is_sent_as_soon_as_a_lost_connection_is_replaced() -> None:
    async def scenario(world: World) -> tuple[list[str], list[str]]:
        assert world.broker is not None
        await make_topic(world)
        clients = world.broker._clients
        async with member(world, "c1", Ear()), member(world, "c2", Ear()):
            world.network.cut(world.broker_address)
            await asyncio.sleep(1)
            gone = clients.consumer_ids(GROUP)
            await asyncio.sleep(5)  # sooner than the next rebalance
            return gone, clients.consumer_ids(GROUP)

    gone, known = play(scenario)
    assert gone == []
    assert sorted(known) == ["127.0.0.1@c1", "127.0.0.1@c2"]


def test_a_restarted_broker_is_read_again() -> None:
    async def scenario(world: World) -> list[bytes]:
        ear = Ear()
        await send(world, numbers(0, 4))
        async with member(world, "c1", ear):
            await world.stop_broker()
            await asyncio.sleep(60)
            await world.start_broker()
            await asyncio.sleep(32)
            await send(world, numbers(4, 8))
            await asyncio.sleep(5)
        return ear.bodies()

    assert sorted(play(scenario, config=FIXED_PORT)) == numbers(0, 8)


# The first offset.


@pytest.mark.parametrize("response", [ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR])
def test_deliv_1_a_member_that_cannot_fetch_its_offset_skips_no_message(
    monkeypatch: pytest.MonkeyPatch, response: ResponseCode
) -> None:
    """DELIV-1 NoAckedLost: only an answer of the broker counts as "no offset" (GroupShipped)."""

    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        ear = Ear()
        await send(world, numbers(0, 8))
        async with member(world, "c1", ear) as consumer:
            early = ear.bodies()
            assert list(consumer.owned()) == []
            monkeypatch.undo()
            await world.stop_broker()
            await world.start_broker()  # the processors are bound at the start
            await asyncio.sleep(60)
        return early, ear.bodies()

    refuse(monkeypatch, RequestCode.QUERY_CONSUMER_OFFSET, response)
    early, late = play(scenario, config=FIXED_PORT)
    assert early == []
    assert sorted(late) == numbers(0, 8)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (PushConsumerConfig(consume_from=ConsumeFrom.LAST_OFFSET), [b"new"]),
        (PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET), [b"hour", b"quarter", b"minute", b"new"]),
        (PushConsumerConfig(consume_from=ConsumeFrom.TIMESTAMP), [b"quarter", b"minute", b"new"]),
        (
            PushConsumerConfig(consume_from=ConsumeFrom.TIMESTAMP, consume_from_ms=0),
            [b"hour", b"quarter", b"minute", b"new"],
        ),
    ],
)
def test_a_new_group_starts_at_the_configured_position(
    monkeypatch: pytest.MonkeyPatch, config: PushConsumerConfig, expected: list[bytes]
) -> None:
    async def scenario(world: World) -> list[bytes]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        await world.producer.send(Message("T", b"hour"), queue)
        await asyncio.sleep(2700)
        await world.producer.send(Message("T", b"quarter"), queue)
        await asyncio.sleep(900)
        await world.producer.send(Message("T", b"minute"), queue)
        await asyncio.sleep(60)
        async with member(world, "c1", ear, config):
            await world.producer.send(Message("T", b"new"), queue)
            await asyncio.sleep(1)
        return ear.bodies()

    # A real broker answers this way when the queue's first messages have expired.
    refuse(monkeypatch, RequestCode.QUERY_CONSUMER_OFFSET, ResponseCode.QUERY_NOT_FOUND)
    assert play(scenario) == expected


def test_an_offset_beyond_the_end_is_corrected_and_reported() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[tuple[int | None, str | None]]]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        for body in numbers(0, 4):
            await world.producer.send(Message("T", body), queue)
        async with member(world, "c1", ear) as consumer:
            await consumer._offsets.reset(queue, 99)
        async with member(world, "c1", ear):
            await world.producer.send(Message("T", b"new"), queue)
            await asyncio.sleep(6)
        reported = [
            (event.queue_offset, event.attrs.get("reset"))
            for event in world.events
            if event.kind is Kind.OFFSET_COMMIT and event.node == "c1" and event.queue_id == 0
            if event.topic == "T"
        ]
        return ear.bodies(), reported[-3:]

    bodies, reported = play(scenario)
    assert bodies == [*numbers(0, 4), b"new"]
    assert reported == [(4, "true"), (5, None), (5, None)]


def test_a_group_that_an_operator_resets_reports_the_reset() -> None:
    async def scenario(world: World) -> tuple[list[bytes], dict[int, int | None]]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        for body in numbers(0, 4):
            await world.producer.send(Message("T", body), queue)
        async with member(world, "c1", ear) as consumer:
            consumer.reset_offsets("T", {queue: 2, MessageQueue("U", "broker-a", 0): 1})
            await asyncio.sleep(1)
            assert consumer.progress("T")[queue] == 4
        return ear.bodies(), await committed(world)

    bodies, offsets = play(scenario)
    assert bodies == numbers(0, 4) + numbers(2, 4)
    assert offsets[0] == 4


@pytest.mark.parametrize("orderly", [False, True])
def test_a_reset_by_time_reaches_the_member_and_messages_are_redelivered(orderly: bool) -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        ear = Ear()
        await send(world, numbers(0, 8))
        await asyncio.sleep(60)
        now_ms = world.runtime.clock.now_us() // 1000
        await send(world, numbers(8, 12))
        async with member(world, "c1", ear, PushConsumerConfig(orderly=orderly)):
            await asyncio.sleep(6)  # offsets are stored
            early = ear.bodies()
            request = ResetOffsetRequest("T", GROUP, now_ms, True)
            answer = await world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, request)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            await asyncio.sleep(2)
            return early, ear.bodies()[len(early) :]

    early, again = play(scenario)
    assert sorted(early) == sorted(numbers(0, 12))
    assert sorted(again) == sorted(numbers(8, 12))


# Failures.


def test_deliv_7_retry_then_dead_letter(at_once: None) -> None:
    """DELIV-7 RetryThenDeadLetter:

    it is retried up to the limit and becomes a dead letter; others continue.
    """

    async def scenario(world: World) -> tuple[list[tuple[int, str]], list[bytes], dict[int, int | None]]:
        await make_topic(world)
        came, good = [], []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            (message,) = messages
            if message.body != b"bad":
                good.append(message.body)
                return None
            came.append((message.reconsume_times, message.topic))
            return RetryLater()

        async with member(world, "c1", listener, PushConsumerConfig(reconsume_max=2)):
            await send(world, [b"bad", *numbers(0, 7)])
            await asyncio.sleep(100)
            dead = await world.consumer.pull(MessageQueue(f"%DLQ%{GROUP}", "broker-a", 0), 0)
            assert [stored.message.body for stored in dead.messages] == [b"bad"]
            return came, good, await committed(world)

    came, good, offsets = play(scenario)
    assert came == [(0, "T"), (1, "T"), (2, "T")]
    assert sorted(good) == numbers(0, 7)
    assert offsets == dict.fromkeys(range(4), 2)


def test_deliv_7_the_delay_of_retries_increases() -> None:
    """DELIV-7 RetryThenDeadLetter: after 10 s, 30 s and 1 min."""

    async def scenario(world: World) -> list[float]:
        loop, came_s = asyncio.get_running_loop(), []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater:
            came_s.append(loop.time())
            return RetryLater()

        async with member(world, "c1", listener):
            await send(world, [b"bad"])
            await asyncio.sleep(110)
        return came_s

    came_s = play(scenario)
    waits_s = [later - earlier for earlier, later in pairwise(came_s)]
    assert [round(wait_s) for wait_s in waits_s] == [10, 30, 60]


def test_a_listener_that_raises_or_returns_an_invalid_value_has_not_consumed() -> None:
    async def scenario(world: World) -> Counter[Kind]:
        await make_topic(world)

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            if messages[0].body == b"1":
                raise RuntimeError("injected")
            return True  # type: ignore[return-value]  # the mistake that is tested

        async with member(world, "c1", listener):
            await send(world, numbers(1, 3))
            await asyncio.sleep(5)
        return Counter(event.kind for event in world.events if event.node == "c1")

    kinds = play(scenario)
    assert kinds[Kind.CONSUME_FAIL] == kinds[Kind.RETRY] == 2
    assert kinds[Kind.CONSUME_OK] == 0


def test_the_consumed_part_of_a_batch_is_not_repeated(at_once: None) -> None:
    async def scenario(world: World) -> list[list[bytes]]:
        calls: list[list[bytes]] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            calls.append([message.body for message in messages])
            return RetryLater(delay_level=1, done=2) if len(messages) == 4 else None

        queue = MessageQueue("T", "broker-a", 0)
        for body in numbers(0, 4):
            await world.producer.send(Message("T", body), queue)
        async with member(world, "c1", listener, PushConsumerConfig(batch_max=4)):
            await asyncio.sleep(10)
        return calls

    first, *later = play(scenario)
    assert first == numbers(0, 4)
    assert sorted(body for call in later for body in call) == numbers(2, 4)


def test_deliv_7_a_message_that_cannot_be_sent_back_is_sent_to_the_retry_topic(
    monkeypatch: pytest.MonkeyPatch, at_once: None
) -> None:
    """DELIV-7 RetryThenDeadLetter: a copy with the same id and the original body."""

    async def scenario(world: World) -> list[tuple[str, int, int]]:
        await make_topic(world)
        ear = Ear()
        ear.answer = RetryLater(delay_level=1)
        async with member(world, "c1", ear, PushConsumerConfig(reconsume_max=2)):
            await world.producer.send(Message("T", b"x" * 5000))
            await asyncio.sleep(30)
        return [(m.message_id, m.reconsume_times, len(m.body)) for m in ear.heard]

    refuse(monkeypatch, RequestCode.CONSUMER_SEND_MSG_BACK, ResponseCode.SYSTEM_ERROR)
    heard = play(scenario)
    assert [(times, size) for _, times, size in heard] == [(0, 5000), (1, 5000), (2, 5000)]
    assert len({message_id for message_id, _, _ in heard}) == 1


def test_deliv_7_a_message_that_no_broker_accepts_is_consumed_again_here_and_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DELIV-7 RetryThenDeadLetter: the member keeps it until a broker has stored it."""

    async def scenario(world: World) -> tuple[list[int], dict[int, int | None]]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        ear.answer = RetryLater()
        await make_topic(world)
        async with member(world, "c1", ear) as consumer:
            inner = consumer._consumption._redelivery
            assert inner is not None

            async def no_copy(message: Message) -> None:
                return None

            monkeypatch.setattr(inner._producer, "send", no_copy)
            await world.producer.send(Message("T", b"x"), queue)
            await asyncio.sleep(12)
            offsets = await committed(world)
            ear.answer = None
            await asyncio.sleep(6)
            return [message.reconsume_times for message in ear.heard], {
                **offsets,
                9: (await committed(world))[0],
            }

    refuse(monkeypatch, RequestCode.CONSUMER_SEND_MSG_BACK, ResponseCode.SYSTEM_ERROR)
    times, offsets = play(scenario)
    assert times == [0, 1, 2, 3]  # every 5 s
    assert (offsets[0], offsets[9]) == (0, 1)


def test_a_message_whose_listener_hangs_is_sent_back_and_a_late_result_changes_nothing(
    at_once: None,
) -> None:
    async def scenario(world: World) -> tuple[list[int], dict[int, int | None]]:
        came: list[int] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            came.append(messages[0].reconsume_times)
            if len(came) > 1:
                return None
            await asyncio.sleep(25)
            return RetryLater()

        await world.producer.send(Message("T", b"x"), MessageQueue("T", "broker-a", 0))
        async with member(world, "c1", listener, PushConsumerConfig(consume_timeout_ms=10_000)):
            await asyncio.sleep(15)
            assert came == [0]  # checked after 10 s, when it was not late yet
            await asyncio.sleep(6)
            assert came == [0, 1]  # while the first listener still runs
            await asyncio.sleep(29)
            return came, await committed(world)

    came, offsets = play(scenario)
    assert came == [0, 1]  # the late result sent nothing back
    assert offsets[0] == 1


# Broadcast.


BROADCAST = PushConsumerConfig(
    message_model=MessageModel.BROADCASTING,
    consume_from=ConsumeFrom.FIRST_OFFSET,
    offsets_directory="/offsets",
)


def test_deliv_11_broadcast_to_all() -> None:
    """DELIV-11 BroadcastToAll: every member gets every message, and after a restart the ones it missed."""

    async def scenario(world: World) -> list[list[bytes]]:
        ears = [Ear() for _ in range(3)]
        await send(world, numbers(0, 4))
        async with member(world, "c1", ears[0], BROADCAST):
            async with member(world, "c2", ears[1], BROADCAST):
                await send(world, numbers(4, 8))
                await asyncio.sleep(1)
            await send(world, numbers(8, 12))
        async with member(world, "c2", ears[2], BROADCAST):
            await asyncio.sleep(1)
        return [sorted(ear.bodies(), key=int) for ear in ears]

    assert play(scenario) == [numbers(0, 12), numbers(0, 8), numbers(8, 12)]


LATER = replace(BROADCAST, consume_from=ConsumeFrom.LAST_OFFSET)


def test_a_broadcast_member_at_the_end_gets_all_messages_of_a_topic_that_is_created_later() -> None:
    async def scenario(world: World) -> list[bytes]:
        ear = Ear()
        async with member(world, "c1", ear, LATER):
            await send(world, numbers(0, 8))  # creates the topic
            await asyncio.sleep(30)
        return sorted(ear.bodies(), key=int)

    assert play(scenario) == numbers(0, 8)


def test_a_broadcast_member_at_the_end_gets_all_messages_of_a_queue_that_is_created_later() -> None:
    async def scenario(world: World) -> list[bytes]:
        await send(world, numbers(0, 4))
        await asyncio.sleep(120)
        ear = Ear()
        async with member(world, "c1", ear, LATER):
            assert world.broker is not None
            new = Message("T", b"8", queue_id=4)
            stored = await world.broker.store.put(new)  # the route is requested again only later
            assert stored.queue_offset == 0
            services = world.broker.services
            assert services is not None
            await services.topics.put(TopicConfig("T", read_queue_nums=5, write_queue_nums=5))
            await asyncio.sleep(100)
        return ear.bodies()

    assert play(scenario) == [b"8"]


def test_a_broadcast_member_that_is_killed_at_once_gets_what_was_sent_while_it_was_away() -> None:
    """It stores where it begins before it reads, not 5 s later with its progress."""

    async def scenario(world: World) -> list[bytes]:
        await send(world, numbers(0, 4))
        await asyncio.sleep(120)
        async with member(world, "c1", Ear(), LATER) as killed:
            await asyncio.sleep(1)
            killed._offsets.save = never  # type: ignore[method-assign]  # its process ends without a stop
        await send(world, numbers(4, 8))
        await asyncio.sleep(120)
        ear = Ear()
        async with member(world, "c1", ear, LATER):
            await asyncio.sleep(30)
        return sorted(ear.bodies(), key=int)

    async def never() -> None:
        pass

    assert play(scenario) == numbers(4, 8)


def test_a_failed_broadcast_message_is_not_redelivered() -> None:
    async def scenario(world: World) -> tuple[int, Counter[Kind]]:
        await make_topic(world)
        ear = Ear()
        ear.answer = RetryLater()
        async with member(world, "c1", ear, BROADCAST) as consumer:
            assert {queue.topic for queue in consumer.owned()} == {"T"}  # and no retry topic
            await send(world, numbers(0, 4))
            await asyncio.sleep(100)
        return len(ear.heard), Counter(event.kind for event in world.events if event.node == "c1")

    heard, kinds = play(scenario)
    assert heard == 4
    assert kinds[Kind.CONSUME_FAIL] == 4
    assert kinds[Kind.RETRY] == 0


def test_a_configuration_that_cannot_work_is_refused_before_the_start() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ValueError, match="offsets_directory"):
            PushConsumer(world.session, "G", Ear(), replace(BROADCAST, offsets_directory=None))
        with pytest.raises(ValueError, match="group 'a b'"):
            PushConsumer(world.session, "a b", Ear())

    play(scenario)


# Stopping.


def test_a_stop_waits_for_listeners_stores_their_offsets_and_unregisters() -> None:
    async def scenario(world: World) -> tuple[Counter[int], int, float, list[str]]:
        await make_topic(world)
        ear = Ear()
        ear.takes_s = 2.0
        async with Session([world.namesrv_address], world.runtime) as session:
            consumer = PushConsumer(session, GROUP, ear, PushConsumerConfig(concurrency=2))
            await consumer.start()
            await consumer.subscribe("T")
            await send(world, numbers(0, 8))
            await asyncio.sleep(21)
            began = len(ear.heard)
            assert 0 < began < 8 or ear.busy.total() == 0
            await send(world, numbers(8, 16))
            await asyncio.sleep(1)
            began_s = asyncio.get_running_loop().time()
            await consumer.stop()
            assert GROUP not in session._members
            took_s = asyncio.get_running_loop().time() - began_s
            offsets = await committed(world)
            assert world.broker is not None
            ids = world.broker._clients.consumer_ids(GROUP)
            return (
                Counter(m.queue.queue_id for m in ear.heard),
                sum(n or 0 for n in offsets.values()),
                took_s,
                ids,
            )

    heard, stored, took_s, ids = play(scenario)
    assert stored == heard.total()
    assert took_s < 2.5
    assert ids == []


def test_a_stop_waits_for_a_hanging_listener_only_for_its_timeout_and_does_not_commit() -> None:
    async def scenario(world: World) -> tuple[float, dict[int, int | None]]:
        ear, queue = Ear(), MessageQueue("T", "broker-a", 0)
        ear.takes_s = 1000.0
        outcome = await world.producer.send(Message("T", b"x"), queue)
        assert isinstance(outcome, Sent)
        async with member(world, "c1", ear, PushConsumerConfig(stop_timeout_ms=3000)):
            began_s = asyncio.get_running_loop().time()
        return asyncio.get_running_loop().time() - began_s, await committed(world)

    took_s, offsets = play(scenario)
    assert took_s == pytest.approx(3, abs=0.5)
    assert offsets[0] == 0


# Requests of administrators through the broker.


@pytest.mark.parametrize("orderly", [False, True])
def test_a_member_reports_the_queues_it_reads_and_the_messages_it_holds_and_consumes(orderly: bool) -> None:
    async def scenario(world: World) -> RunningInfo:
        ear = Ear()
        ear.takes_s = 30.0
        async with member(world, "c1", ear, PushConsumerConfig(orderly=orderly, concurrency=1)):
            await send(world, numbers(0, 8))
            await asyncio.sleep(12)
            header = ConsumerRequest(GROUP, "127.0.0.1@c1")
            answer = await world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
            assert answer.code == ResponseCode.SUCCESS
            return java_json.read(RunningInfo, answer.body)

    info = play(scenario)
    queues = {key.as_a(bodies.MessageQueue): held for key, held in info.mq_table.items()}
    read = {queue.queue_id: held for queue, held in queues.items() if queue.topic == "T"}
    assert sorted(read) == [0, 1, 2, 3]
    assert [(held.cached_msg_count, held.cached_msg_max_offset) for held in read.values()] == [(2, 1)] * 4
    assert all(held.last_pull_timestamp > 0 for held in read.values())
    assert sum(held.last_consume_timestamp > 0 for held in read.values()) == 1  # one call at a time
    assert {held.locked for held in read.values()} == {orderly}
    assert sum(held.transaction_msg_count for held in read.values()) == orderly
    assert info.properties["PROP_CONSUMEORDERLY"] == str(orderly).lower()
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert {one.topic for one in info.subscription_set} == {"T", f"%RETRY%{GROUP}"}
    assert info.status_table["T"].pull_tps > 0


def test_a_message_consumed_on_request_has_no_other_effect() -> None:
    async def scenario(world: World) -> list[ConsumedDirectly]:
        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            heard.extend(messages)
            if messages[0].body == b"broken":
                raise ValueError("no such order")
            return RetryLater() if messages[0].body == b"later" else None

        heard: list[ReceivedMessage] = []
        outcomes = [
            await world.producer.send(Message("Other", body))
            for body in (b"fine" * 2000, b"later", b"broken")
        ]
        results = []
        await make_topic(world)
        async with member(world, "c1", listener):
            for outcome in outcomes:
                assert isinstance(outcome, Sent)
                header = ConsumerRequest(GROUP, "127.0.0.1@c1", msg_id=outcome.offset_message_id)
                answer = await world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
                assert answer.code == ResponseCode.SUCCESS
                results.append(java_json.read(ConsumedDirectly, answer.body))
            await asyncio.sleep(60)
        assert [(one.body, one.queue.broker_name) for one in heard] == [
            (b"fine" * 2000, "broker-a"),  # it was sent compressed
            (b"later", "broker-a"),
            (b"broken", "broker-a"),
        ]
        return results

    fine, later, broken = play(scenario)
    assert (fine.consume_result, fine.order, fine.remark) == ("CR_SUCCESS", False, None)
    assert later.consume_result == "CR_LATER"
    assert (broken.consume_result, broken.remark) == ("CR_THROW_EXCEPTION", "ValueError: no such order")


# Errors of the caller.


def test_a_second_consumer_of_the_group_on_one_session_is_refused() -> None:
    async def scenario(world: World) -> tuple[list[bytes], str]:
        await make_topic(world)
        ear = Ear()
        async with Session([world.namesrv_address], world.runtime) as session:
            async with PushConsumer(session, GROUP, ear) as first:
                await first.subscribe("T")
                second: PushConsumer | LitePullConsumer
                for second in (PushConsumer(session, GROUP, ear), LitePullConsumer(session, GROUP)):
                    with pytest.raises(ClientError, match="already has a consumer with client id") as refusal:
                        await second.start()
                await asyncio.sleep(2)
                await send(world, numbers(0, 8))
                await asyncio.sleep(2)
            async with PushConsumer(session, GROUP, ear):
                pass  # the group is free again
        return ear.bodies(), str(refusal.value)

    bodies, text = play(scenario)
    assert sorted(bodies) == numbers(0, 8)
    assert f"group {GROUP}" in text


def test_a_stopped_consumer_that_is_started_again_does_not_take_the_group() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with Session([world.namesrv_address], world.runtime) as session:
            old: PushConsumer | LitePullConsumer
            for old in (PushConsumer(session, GROUP, Ear()), LitePullConsumer(session, GROUP)):
                async with old:
                    pass
                with pytest.raises(ClientError, match="is stopped, and can be started only once"):
                    await old.start()
                async with PushConsumer(session, GROUP, Ear()):
                    pass  # the group is free

    play(scenario)


def test_a_pull_consumer_of_the_same_group_and_session_does_not_change_the_subscription() -> None:
    async def scenario(world: World) -> list[str]:
        await make_topic(world)
        ear = Ear()
        session = Session([world.namesrv_address], world.runtime)
        async with session, PushConsumer(session, GROUP, ear) as consumer:
            await consumer.subscribe("T")
            await asyncio.sleep(2)
            PullConsumer(session, GROUP)
            await session.heartbeat()
            assert world.broker is not None
            assert world.broker.services is not None
            group = world.broker.services.clients.consumer_group(GROUP)
            assert group is not None
            return sorted(group.subscriptions)

    assert play(scenario) == [f"%RETRY%{GROUP}", "T"]


def test_a_consumer_cannot_be_created_with_values_that_it_could_not_use() -> None:
    async def scenario(world: World) -> None:
        def create(listener: object, **settings: object) -> None:
            PushConsumer(world.session, GROUP, listener, PushConsumerConfig(**settings))  # type: ignore[arg-type]  # what is tested

        with pytest.raises(TypeError, match="listener is None, a function expected"):
            create(None)
        with pytest.raises(TypeError, match="consume_from_ms is '2026-01-01', milliseconds since 1970"):
            create(Ear(), consume_from_ms="2026-01-01")
        with pytest.raises(ValueError, match="concurrency is 0, at least 1 expected"):
            create(Ear(), concurrency=0)
        # A text is not an enumeration's value: "CLUSTERING" would be a broadcast consumer.
        with pytest.raises(
            TypeError, match="message_model is 'CLUSTERING', a value of the type MessageModel"
        ):
            create(Ear(), message_model="CLUSTERING")
        with pytest.raises(TypeError, match="consume_from is 'first', a value of the type ConsumeFrom"):
            create(Ear(), consume_from="first")
        with pytest.raises(ValueError, match="consume_from_ms needs consume_from="):
            create(Ear(), consume_from_ms=1)
        for wrong in ({"orderly": "yes"}, {"limits": 5}, {"strategy": None}, {"queue_listener": 5}):
            with pytest.raises(TypeError, match=next(iter(wrong))):
                create(Ear(), **wrong)
        with pytest.raises(TypeError, match="offset_store is 5, an object with the method load expected"):
            create(Ear(), offset_store=5)
        with pytest.raises(ValueError, match="the topic 'T x' has a character other than"):
            await PushConsumer(world.session, GROUP, Ear()).subscribe("T x")
        consumer = PushConsumer(world.session, GROUP, Ear())
        with pytest.raises(ClientError, match=f"push consumer of group {GROUP} is not started"):
            await consumer.stop()

    play(scenario)


def test_a_consumer_that_brokers_refuse_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with member(world, "c1", Ear()) as consumer:
            queues = {queue for queue in consumer.owned() if queue.topic == "T"}
            assert len(queues) == 4
            await asyncio.sleep(45)

    refuse(monkeypatch, RequestCode.PULL_MESSAGE, ResponseCode.NO_PERMISSION)
    play(scenario)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len([text for text in warnings if "T@broker-a:0: NO_PERMISSION: injected" in text]) == 1

    async def refused(world: World) -> None:
        await make_topic(world)
        async with member(world, "c1", Ear()):
            await asyncio.sleep(45)

    caplog.clear()
    refuse(monkeypatch, RequestCode.HEART_BEAT, ResponseCode.NO_PERMISSION)
    play(refused)
    refusals = [text for text in caplog.messages if "refuses the heartbeats: NO_PERMISSION: injected" in text]
    assert len(refusals) == 1


# SQL92.


def test_a_consumer_receives_what_its_expression_selects() -> None:
    async def scenario(world: World) -> list[bytes]:
        await make_topic(world)
        ear = Ear()
        async with member(world, "c1", ear, tags=MessageSelector.sql("price BETWEEN 5 AND 9")):
            for price in range(12):
                await world.producer.send(Message("T", b"%d" % price, {"price": str(price)}))
            await asyncio.sleep(3)
        return ear.bodies()

    found = play(scenario, config=replace(FIXED_PORT, property_filter=True))
    assert sorted(found) == [b"5", b"6", b"7", b"8", b"9"]


def test_an_expression_that_the_broker_refuses_is_an_error_of_subscribe_and_of_start() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        wanted = MessageSelector.sql("price > 5")
        async with member(world, "c1", Ear()) as consumer:
            with pytest.raises(RefusalError, match="its enablePropertyFilter is false"):
                await consumer.subscribe("T", wanted)
            await send(world, numbers(0, 4))
            await asyncio.sleep(2)
        late = PushConsumer(world.session, "H", Ear())
        await late.subscribe("T", wanted)
        with pytest.raises(RefusalError, match="its enablePropertyFilter is false"):
            await late.start()
        with pytest.raises(ValueError, match="use MessageSelector"):
            await late.subscribe("T", "price > 5")

    play(scenario)


# Control while it runs.


def test_a_suspended_consumer_keeps_its_queues_and_receives_later_messages_after_resume() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[MessageQueue], list[bytes]]:
        await make_topic(world)
        ear = Ear()
        config = PushConsumerConfig(limits=PullLimits(hold_ms=500))
        async with member(world, "c1", ear, config) as consumer:
            await send(world, numbers(0, 4))
            await asyncio.sleep(1)
            consumer.suspend()
            await asyncio.sleep(1)  # the pulls in progress end
            await send(world, numbers(4, 8))
            await asyncio.sleep(30)
            suspended, queues = ear.bodies(), consumer.queues()
            consumer.resume()
            await asyncio.sleep(2)
            return suspended, queues, ear.bodies()

    suspended, queues, resumed = play(scenario)
    assert sorted(suspended) == numbers(0, 4)
    assert queues == [MessageQueue("T", "broker-a", queue_id) for queue_id in range(4)]
    assert sorted(resumed) == numbers(0, 8)


def test_the_queue_listener_learns_the_queues_that_the_member_reads() -> None:
    async def scenario(world: World) -> list[tuple[str, int]]:
        await make_topic(world)
        seen: list[tuple[str, int]] = []

        def changed(topic: str, queues: Sequence[MessageQueue]) -> None:
            seen.append((topic, len(queues)))
            raise RuntimeError("injected")

        config = PushConsumerConfig(queue_listener=changed)
        async with member(world, "c1", Ear(), config):
            async with member(world, "c2", Ear()):
                await asyncio.sleep(3)
            await asyncio.sleep(3)
        return seen

    assert play(scenario) == [("T", 4), ("T", 2), ("T", 4)]


@pytest.mark.parametrize("orderly", [False, True])
def test_the_concurrency_can_change_while_the_consumer_runs(orderly: bool) -> None:
    async def scenario(world: World) -> list[int]:
        await make_topic(world)
        ear = Ear()
        ear.takes_s = 1.0
        most = []
        config = PushConsumerConfig(concurrency=2, orderly=orderly)
        async with member(world, "c1", ear, config) as consumer:
            for concurrency in (2, 4, 1):
                await consumer.set_concurrency(concurrency)
                await asyncio.sleep(3)
                ear.busy_most = 0
                await send(world, numbers(0, 8))
                await asyncio.sleep(12)
                most.append(ear.busy_most)
            assert consumer.running_info().properties["PROP_THREADPOOL_CORE_SIZE"] == "1"
            with pytest.raises(ValueError, match="concurrency is 0"):
                await consumer.set_concurrency(0)
        assert len(ear.heard) == 24
        return most

    assert play(scenario) == [2, 4, 1]


def test_a_message_has_the_offsets_of_its_queue_so_that_a_backlog_can_be_skipped() -> None:
    async def scenario(world: World) -> list[bytes]:
        queue = MessageQueue("T", "broker-a", 0)
        for body in numbers(0, 10):
            await world.producer.send(Message("T", body), queue)
        consumed = []

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                assert message.min_offset == 0
                if message.max_offset - message.queue_offset <= 3:
                    consumed.append(message.body)

        async with member(world, "c1", listener):
            await asyncio.sleep(1)
        return consumed

    assert sorted(play(scenario)) == numbers(7, 10)


class MemoryOffsets:
    """An application's own offset store."""

    def __init__(self) -> None:
        self.table: dict[MessageQueue, int] = {}

    async def load(self, queue: MessageQueue) -> int | None:
        return self.table.get(queue)

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:  # noqa: ARG002  # an OffsetStore's signature
        self.table.update(offsets)

    async def release(self, queue: MessageQueue, offset: int) -> None:
        self.table[queue] = offset


def test_the_offsets_are_in_the_store_of_the_application() -> None:
    async def scenario(world: World) -> tuple[list[bytes], dict[int, int | None], dict[str, int]]:
        await make_topic(world)
        store = MemoryOffsets()
        ear = Ear()
        config = PushConsumerConfig(offset_store=store)
        for start in (0, 8):
            async with member(world, f"c{start}", ear, config):
                await send(world, numbers(start, start + 8))
                await asyncio.sleep(2)
        topic_offsets = {str(queue): offset for queue, offset in store.table.items() if queue.topic == "T"}
        return ear.bodies(), await committed(world), topic_offsets

    bodies, at_broker, stored = play(scenario)
    assert sorted(bodies) == sorted(numbers(0, 16))
    assert set(at_broker.values()) == {0}  # what a broker says of a queue without a committed offset
    assert stored == {f"T@broker-a:{queue_id}": 4 for queue_id in range(4)}
