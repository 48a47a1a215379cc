"""Incidents with a known cause, in real brokers and clients. Each takes a number that varies its details.

They play at our broker; those of AT_ANY_BROKER also at Apache's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from mqproof.client import (
    CheckListener,
    MessageModel,
    MessageQueue,
    MessageSelector,
    ProducerConfig,
    PullLimits,
    ReceivedMessage,
    Refused,
    RetryLater,
    TransactionProducer,
    TransactionState,
    Unknown,
    new_message,
)
from mqproof.impl.admin.groups import reset_offsets, update_group
from mqproof.impl.admin.topics import delete_topic
from mqproof.impl.remoting.bodies import SubscriptionGroup
from mqproof.impl.remoting.codes import RequestCode
from tests.impl.diagnosis.scene import EmbeddedScene, Listener, Scene, accept, embedded_scene, fail

CLUSTER: Final = "DefaultCluster"
OWN_TOPIC: Final = "the scene's"


@dataclass(frozen=True, slots=True)
class Injected:
    """What was done to a message, and with which evidence it must be recognised."""

    cause: str
    message_id: str | None = None
    of_group: bool = True
    """Whether the question names the group."""
    logs: bool = True
    cluster: bool = True
    topic: str | None = OWN_TOPIC
    """The topic that the question names."""


Incident = Callable[[Any, int], Awaitable[Injected]]
"""Takes a Scene, or an EmbeddedScene, and a number."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to go wrong, or well."""

    inject: Incident
    properties: dict[str, str] = field(default_factory=dict)
    before: Incident | None = None
    """What happened in an earlier broker, whose store is gone and whose logs remain."""


# --- delivered


async def consumed(scene: Scene, number: int) -> Injected:
    await scene.create(queues=1 + number % 4)
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer()
    await scene.clock.advance(seconds=20)
    return Injected("consumed", sent[-1].message_id, cluster=number % 2 == 0)


async def consumed_says_the_trace(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    consumer = await scene.consumer(logged=False, trace="RMQ_SYS_TRACE_TOPIC")
    await scene.clock.advance(seconds=40)
    await consumer.stop()  # which sends the last traces
    await scene.clock.advance(seconds=20)
    return Injected("consumed", sent[-1].message_id, logs=False)


def _fails(times: int) -> Listener:
    left = [times]

    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        left[0] -= 1
        return RetryLater(delay_level=1) if left[0] >= 0 else None

    return listener


async def consumed_after_retries(scene: Scene, number: int) -> Injected:
    await scene.create()
    (sent,) = await scene.send(await scene.producer())
    await scene.consumer(_fails(1 + number % 3))
    await scene.clock.advance(minutes=3)
    return Injected("consumed", sent.message_id, logs=number % 2 == 0)


async def polled(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 2 + number)
    poller = await scene.poller()
    await poller.subscribe(scene.topic)
    await scene.clock.advance(seconds=20)
    while await poller.poll(100):
        pass
    await poller.commit()
    return Injected("consumed", sent[number % 2].message_id)


# --- delayed


async def lagging(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 40 + number)
    await scene.consumer(scene.hang, limits=PullLimits(batch=4, messages_max=4, hold_ms=1000))
    await scene.clock.advance(seconds=20)
    return Injected("lagging", sent[-1].message_id, logs=number % 2 == 0)


async def in_consumption(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer(scene.hang)
    await scene.clock.advance(seconds=20)
    return Injected("in_consumption", sent[0].message_id, logs=number % 2 == 0)


async def in_consumption_says_the_log(scene: Scene, number: int) -> Injected:
    return replace(await in_consumption(scene, number), logs=True, cluster=False)


async def stuck(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 2 + number)
    await scene.consumer(scene.hang)
    await scene.clock.advance(minutes=3 + number)
    return Injected("consumer_stuck", sent[-1].message_id, logs=number % 2 == 0)


async def without_members(scene: Scene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer()
    await scene.send(producer)
    consumer = await scene.consumer()
    await scene.clock.advance(seconds=20)
    await consumer.stop()
    sent = await scene.send(producer, 1 + number)
    return Injected("no_members", sent[-1].message_id, logs=number % 2 == 0)


async def not_subscribed(scene: Scene, number: int) -> Injected:
    await scene.create()
    other = f"Other-{scene.topic}"
    await scene.create(other)
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer(topic=other)
    await scene.clock.advance(seconds=20)
    return Injected("not_subscribed", sent[-1].message_id, logs=number % 2 == 0)


def _none(queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:
    return [queue for queue in queues if queue.topic.startswith("%")]


async def without_owner(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer(strategy=_none)
    await scene.clock.advance(seconds=20)
    return Injected("queue_without_owner", sent[-1].message_id, logs=number % 2 == 0)


async def disabled_group(scene: Scene, number: int) -> Injected:
    await scene.create()
    disabled = SubscriptionGroup(group_name=scene.group, consume_enable=False)
    await update_group(scene.admin, await scene.admin.masters(CLUSTER), disabled)
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer()
    await scene.clock.advance(seconds=20)
    return Injected("group_disabled", sent[-1].message_id, logs=number % 2 == 0)


async def unreadable_topic(scene: Scene, number: int) -> Injected:
    await scene.create(perm=2)
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer()
    await scene.clock.advance(seconds=20)
    return Injected("topic_not_readable", sent[-1].message_id, logs=number % 2 == 0)


async def waiting_for_retry(scene: Scene, number: int) -> Injected:
    await scene.create()
    (sent,) = await scene.send(await scene.producer())
    await scene.consumer(fail)
    await scene.clock.advance(seconds=20 + 20 * number)
    return Injected("waiting_for_retry", sent.message_id, logs=number % 2 == 0)


# --- not due


async def waiting_for_its_level(scene: Scene, number: int) -> Injected:
    await scene.create()
    (sent,) = await scene.send(await scene.producer(), delay_level=10 + number % 9)
    await scene.consumer()
    await scene.clock.advance(seconds=20)
    return Injected("waiting_for_its_time", sent.message_id, logs=number % 2 == 0)


async def waiting_for_its_time(scene: Scene, number: int) -> Injected:
    await scene.create()
    message = new_message(scene.topic, b"tea", delay=600 + 60 * number)
    sent = await (await scene.producer()).send_or_raise(message)
    return Injected("waiting_for_its_time", sent.message_id, of_group=False, logs=number % 2 == 0)


async def _transaction(scene: Scene, end: TransactionState, check: CheckListener | None = None) -> str:
    await scene.create()

    async def unknown(*_: object) -> TransactionState:
        return TransactionState.UNKNOWN

    async def local(*_: object) -> TransactionState:
        return end

    producer = TransactionProducer(
        await scene.session(), check or unknown, ProducerConfig(group="shop"), scene.events("producer")
    )
    outcome = await producer.send(new_message(scene.topic, b"coffee"), local)
    await scene.clock.advance(seconds=20)
    await producer.stop()
    return outcome.sent.message_id


async def open_transaction(scene: Scene, number: int) -> Injected:
    message_id = await _transaction(scene, TransactionState.UNKNOWN)
    return Injected("transaction_open", message_id, of_group=False, logs=number % 2 == 0)


async def rolled_back(scene: Scene, number: int) -> Injected:
    message_id = await _transaction(scene, TransactionState.ROLLBACK)
    return Injected("rolled_back", message_id, of_group=False, logs=number % 2 == 0)


async def committed_and_consumed(scene: Scene, number: int) -> Injected:
    message_id = await _transaction(scene, TransactionState.COMMIT)
    await scene.consumer()
    await scene.clock.advance(seconds=20 + number)
    return Injected("consumed", message_id)


async def discarded(scene: Scene, number: int) -> Injected:
    message_id = await _transaction(scene, TransactionState.UNKNOWN)
    await scene.clock.advance(minutes=3 + number)
    return Injected("transaction_discarded", message_id, of_group=False, logs=number % 2 == 0)


async def recalled(scene: Scene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer()
    sent = await producer.send_or_raise(new_message(scene.topic, b"tea", delay=600 + 60 * number))
    assert sent.recall_handle is not None
    await producer.recall(scene.topic, sent.recall_handle)
    return Injected("recalled", sent.message_id, of_group=False, logs=number % 2 == 0)


# --- filtered


async def filtered_by_tag(scene: Scene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer()
    tags = (None, "tea", "milk", "TEA")[number % 4]
    sent = await scene.send(producer, tag=tags)
    await scene.consumer(tags="coffee || cocoa")
    await scene.clock.advance(seconds=20)
    return Injected("filtered_by_subscription", sent[0].message_id, logs=number % 2 == 0)


async def filtered_by_sql(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), properties={"price": str(number)})
    await scene.consumer(tags=MessageSelector.sql("price > 100"))
    await scene.clock.advance(seconds=20)
    return Injected("filtered_by_subscription", sent[0].message_id, logs=number % 2 == 0)


async def different_subscriptions(scene: Scene, number: int) -> Injected:
    await scene.create(queues=2)
    await scene.consumer(tags="tea", client_id="one")
    await scene.consumer(tags="coffee", client_id="two")
    await scene.clock.advance(seconds=40)
    sent = await scene.send(await scene.producer(), 2 + number, tag="tea")
    await scene.clock.advance(seconds=40)
    dropped = [each.message_id for each in sent if each.queue.queue_id != 0]
    return Injected("subscriptions_differ", dropped[-1], logs=False)


# --- skipped


async def reset_over(scene: Scene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer()
    await scene.send(producer)
    consumer = await scene.consumer()
    await scene.clock.advance(seconds=20)
    await consumer.stop()
    await scene.clock.advance(seconds=40)  # the broker has ended the member's pulls
    sent = await scene.send(producer, 1 + number)
    await reset_offsets(scene.admin, scene.group, scene.topic, -1)
    if number % 2:
        await scene.consumer()
        await scene.clock.advance(seconds=20)
    return Injected("skipped_by_reset", sent[-1].message_id)


async def before_the_group(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.clock.advance(seconds=20)
    poller = await scene.poller()
    await poller.subscribe(scene.topic)
    await scene.clock.advance(seconds=40)
    (queue,) = poller.assignment()
    await poller.seek_to_end(queue)
    await poller.commit()
    return Injected("skipped_before_group", sent[-1].message_id)


async def sought_over(scene: Scene, number: int) -> Injected:
    await scene.create()
    poller = await scene.poller()
    await poller.subscribe(scene.topic)
    await scene.clock.advance(seconds=40)
    sent = await scene.send(await scene.producer(), 4 + number)
    (queue,) = poller.assignment()
    while not await poller.poll(100, 1):
        await scene.clock.advance(seconds=1)
    await poller.seek(queue, 3 + number)
    await scene.clock.advance(seconds=20)
    while not await poller.poll(100, 1):
        await scene.clock.advance(seconds=1)
    await poller.commit()
    return Injected("skipped_by_commit", sent[1].message_id)


# --- dead letters, never stored, lost


async def dead_letter(scene: Scene, number: int) -> Injected:
    await scene.create()
    (sent,) = await scene.send(await scene.producer())
    await scene.consumer(fail, reconsume_max=1 + number % 2)
    await scene.clock.advance(minutes=4)
    return Injected("dead_lettered", sent.message_id, logs=number % 2 == 0)


async def refused(scene: EmbeddedScene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer()
    scene.broker.fail_next("send", 10, code=("NO_PERMISSION", "MESSAGE_ILLEGAL")[number % 2])
    outcome = await producer.send(new_message(scene.topic, b"x"))
    assert isinstance(outcome, Refused)
    return Injected("send_refused", outcome.message_id, of_group=False, cluster=number % 4 < 2)


async def not_confirmed(scene: EmbeddedScene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer(number % 2)
    scene.broker.fail_next("send", 10, code="SYSTEM_ERROR")
    outcome = await producer.send(new_message(scene.topic, b"x"))
    assert isinstance(outcome, Unknown)
    return Injected("send_not_confirmed", outcome.message_id, of_group=False)


async def confirmed(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    return Injected("", sent[-1].message_id)


async def lost_store(scene: Scene, number: int) -> Injected:
    await scene.create()
    if number % 2:  # other messages are where the lost one was
        await scene.send(await scene.producer(), 1 + number)
    return Injected("lost_from_store", logs=True)


async def absent_broker(scene: Scene, number: int) -> Injected:
    await scene.create()
    return Injected("broker_unreachable", of_group=False)


async def deleted_topic(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.clock.advance(seconds=20)
    await delete_topic(scene.admin, await scene.admin.masters(CLUSTER), scene.topic, CLUSTER)
    await scene.clock.advance(seconds=20)
    return Injected("topic_deleted", sent[-1].message_id)


async def expired(scene: Scene, number: int) -> Injected:
    await scene.create()
    producer = await scene.producer()
    await scene.send(producer)
    consumer = await scene.consumer()
    await scene.clock.advance(seconds=20)
    await consumer.stop()
    (sent,) = await scene.send(producer)
    for _ in range(4):
        await producer.send_or_raise(new_message(scene.topic, Random(number).randbytes(30_000)))
    await scene.clock.advance(hours=2)
    for broker in await scene.admin.masters(CLUSTER):
        await scene.admin.ask(broker, RequestCode.DELETE_EXPIRED_COMMITLOG)
    await scene.clock.advance(minutes=1)
    return Injected("deleted_before_consumption", sent.message_id)


# --- unknown


async def passed(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer(logged=False)
    await scene.clock.advance(seconds=20)
    return Injected("passed", sent[-1].message_id, logs=False)


async def never_heard_of(scene: Scene, number: int) -> Injected:
    await scene.create()
    await scene.send(await scene.producer(), number)
    topic = OWN_TOPIC if number % 2 else None
    return Injected("not_found", f"7F0000019DC71A6E04307C2B66C2{number:04X}", of_group=False, topic=topic)


async def broadcast(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    await scene.consumer(accept, logged=False, model=MessageModel.BROADCASTING)
    await scene.clock.advance(seconds=20)
    return Injected("broadcast", sent[-1].message_id, logs=False)


async def without_group(scene: Scene, number: int) -> Injected:
    await scene.create()
    sent = await scene.send(await scene.producer(), 1 + number)
    return Injected("no_group", sent[-1].message_id, of_group=False, topic=OWN_TOPIC if number % 2 else None)


# --- the backlog of a group


async def backlog(scene: Scene, number: int) -> Injected:
    inject = (
        lagging,
        stuck,
        without_members,
        not_subscribed,
        without_owner,
        disabled_group,
        unreadable_topic,
    )
    found = await inject[number % len(inject)](scene, number)
    return Injected(found.cause)


async def no_backlog(scene: Scene, number: int) -> Injected:
    await consumed(scene, number)
    return Injected("caught_up") if number % 2 else Injected("topic_missing", topic="Tea")


async def backlog_of_different_members(scene: Scene, number: int) -> Injected:
    await different_subscriptions(scene, number)
    return Injected("subscriptions_differ")


_SQL: Final = {"enablePropertyFilter": "true"}
KINDS: Final[dict[str, Kind]] = {
    each.inject.__name__: each
    for each in (
        *map(Kind, (consumed, consumed_says_the_trace, consumed_after_retries, polled, lagging)),
        *map(Kind, (in_consumption, in_consumption_says_the_log, stuck, without_members, not_subscribed)),
        *map(Kind, (without_owner, disabled_group, unreadable_topic, waiting_for_retry)),
        *map(Kind, (waiting_for_its_level, waiting_for_its_time, open_transaction, rolled_back)),
        *map(Kind, (committed_and_consumed, recalled, filtered_by_tag, different_subscriptions)),
        *map(Kind, (reset_over, before_the_group, sought_over, dead_letter, refused, not_confirmed)),
        *map(Kind, (deleted_topic, passed, never_heard_of, broadcast, without_group)),
        *map(Kind, (backlog, no_backlog, backlog_of_different_members)),
        Kind(filtered_by_sql, _SQL),
        Kind(discarded, {"transactionCheckMax": "1"}),
        Kind(lost_store, before=confirmed),
        Kind(absent_broker, {"brokerName": "broker-b"}, before=confirmed),
        Kind(expired, {"fileReservedTime": "1", "mappedFileSizeCommitLog": "65536"}),
    )
}
"""All kinds of incidents, by name."""


async def ask(scene: Scene, injected: Injected, message_id: str | None = None) -> list[str]:
    """Diagnose an incident, and return the causes that are named."""
    found = await scene.ask(
        injected.message_id or message_id,
        logs=injected.logs,
        cluster=injected.cluster,
        topic=scene.topic if injected.topic == OWN_TOPIC else injected.topic,
        group=scene.group if injected.of_group else None,
    )
    return [answer.cause.name for answer in found]


async def _play(kind: Kind, number: int, folder: Path) -> tuple[Injected, list[str]]:
    earlier = None
    if kind.before is not None:
        async with embedded_scene(folder) as scene:
            earlier = await kind.before(scene, number)
    async with embedded_scene(folder, kind.properties) as scene:
        injected = await kind.inject(scene, number)
        return injected, await ask(scene, injected, earlier.message_id if earlier else None)


def play(name: str, number: int, folder: Path) -> tuple[str, list[str]]:
    """Inject one incident and diagnose it. Returns the injected cause and the causes that were named."""
    injected, found = asyncio.run(_play(KINDS[name], number, folder))
    return injected.cause, found
