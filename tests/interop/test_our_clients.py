"""Tests our clients with Apache RocketMQ's name server and broker: every way to send and to consume."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.adapters.remoting import RemotingTarget
from mqproof.conformance.engine.suite_run import run_suite
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, ReceivedMessage, RetryLater, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.report.model import Verdict

pytestmark = pytest.mark.apache

WAIT_SECONDS_MAX = 60.0


@pytest.fixture
def client(apache: tuple[ApacheServer, ApacheServer]) -> Iterator[BlockingClient]:
    names, _ = apache
    with BlockingClient(str(names.address)) as made:
        yield made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    name: str = request.node.originalname
    return name.removeprefix("test_")[:60]


class Gathering:
    """A listener that collects messages and fails once for each message with the tag `fail`."""

    def __init__(self) -> None:
        self.got: list[ReceivedMessage] = []
        self._changed = threading.Condition()

    def __call__(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        with self._changed:
            self.got += messages
            self._changed.notify_all()
        failed = any(message.tag == "fail" and not message.reconsume_times for message in messages)
        return RetryLater() if failed else None

    def wait_for(self, count: int, tag: str | None = None) -> list[str]:
        """Return the bodies once there are this many, or this many with such a tag."""
        with self._changed:
            self._changed.wait_for(
                lambda: sum(tag in (None, message.tag) for message in self.got) >= count, WAIT_SECONDS_MAX
            )
            return sorted(message.body.decode() for message in self.got)


def send(client: BlockingClient, topic: str, count: int, tag: str | None = None) -> list[str]:
    """Send `count` numbered messages and return their bodies."""
    found = [str(number) for number in range(count)]
    for body in found:
        outcome = client.send(new_message(topic, body.encode(), tag=tag, keys=[f"key-{body}"]))
        assert isinstance(outcome, Sent), outcome
        assert outcome.status == "SEND_OK"
    return found


FIRST = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


def test_each_way_to_send_is_answered_and_stored(client: BlockingClient, topic: str) -> None:
    send(client, topic, 2)
    batch = client.send_batch([new_message(topic, f"batch {number}".encode()) for number in range(3)])
    assert [outcome.status for outcome in batch if isinstance(outcome, Sent)] == ["SEND_OK"] * 3
    client.send_oneway(new_message(topic, b"one-way"))
    large = client.send(new_message(topic, b"x" * 100_000))
    assert isinstance(large, Sent)
    gathering = Gathering()
    with client.consuming(topic, {topic: "*"}, gathering, FIRST):
        found = gathering.wait_for(7)
    assert found == ["0", "1", "batch 0", "batch 1", "batch 2", "one-way", "x" * 100_000]


@pytest.mark.parametrize("kind", ["concurrent", "orderly", "broadcast"])
def test_each_consumer_gets_every_message_once(
    client: BlockingClient, topic: str, kind: str, tmp_path: Path
) -> None:
    name = f"{topic}-{kind}"
    config = PushConsumerConfig(
        consume_from=ConsumeFrom.FIRST_OFFSET,
        orderly=kind == "orderly",
        message_model=MessageModel.BROADCASTING if kind == "broadcast" else MessageModel.CLUSTERING,
        offsets_directory=str(tmp_path) if kind == "broadcast" else None,
    )
    gathering = Gathering()
    send(client, name, 8)
    with client.consuming(name, {name: "*"}, gathering, config):
        gathering.wait_for(8)
        send(client, name, 4)
        assert gathering.wait_for(12) == sorted(["0", "1", "2", "3"] * 2 + ["4", "5", "6", "7"])


def test_the_next_consumer_of_a_group_continues_where_the_last_one_stopped(
    client: BlockingClient, topic: str, release: str
) -> None:
    for tag in ("first", "second"):
        send(client, topic, 4, tag)
        gathering = Gathering()
        with client.consuming(topic, {topic: "*"}, gathering, FIRST):
            gathering.wait_for(4, tag)
        got = [message.tag for message in gathering.got]
        assert got.count(tag) == 4
        # 4.9.5 may forget one of a group's first commits (docs/reference/protocol/offsets.md, "Consumer
        # offsets").
        assert release == "4.9.5" or len(got) == 4


def test_a_filter_by_tags_delivers_only_matching_messages(client: BlockingClient, topic: str) -> None:
    for tag in ("TagA", "TagB", "Aa", "BB"):  # the last two tags have the same hash code
        send(client, topic, 2, tag)
    gathering = Gathering()
    with client.consuming(topic, {topic: "TagB || Aa"}, gathering, FIRST):
        gathering.wait_for(4)
    assert sorted(str(message.tag) for message in gathering.got) == ["Aa", "Aa", "TagB", "TagB"]


def test_a_message_that_failed_is_redelivered_later(client: BlockingClient, topic: str) -> None:
    send(client, topic, 1, "fail")
    gathering = Gathering()
    with client.consuming(topic, {topic: "*"}, gathering, FIRST):
        gathering.wait_for(2)
    assert [(message.reconsume_times, message.topic) for message in gathering.got] == [(0, topic), (1, topic)]
    first, second = gathering.got
    assert first.stored.message_id == second.stored.message_id


def test_a_poll_consumer_gets_every_message_once(client: BlockingClient, topic: str) -> None:
    sent = send(client, topic, 8)
    config = LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    got: list[str] = []
    with client.polling(topic, {topic: "*"}, config) as poller:
        while len(got) < 8 and (messages := poller.poll(10_000)):
            got += [message.body.decode() for message in messages]
    assert sorted(got) == sent


def test_a_second_process_with_the_client_id_of_a_member_is_refused(
    apache: tuple[ApacheServer, ApacheServer], topic: str
) -> None:
    def process() -> Session:  # with claims of its own, as another process has
        runtime = production(AsyncioNetwork(), None)
        return Session([apache[0].address], runtime, "10.0.0.1@twice", is_id_chosen=True)

    async def started(session: Session) -> PushConsumer:
        consumer = PushConsumer(session, f"{topic}-group", lambda _: None)
        await consumer.subscribe(topic)
        await consumer.start()
        return consumer

    async def main() -> None:
        async with process() as one, process() as other:
            assert isinstance(await Producer(one).send(new_message(topic, b"makes the topic")), Sent)
            first = await started(one)
            with pytest.raises(ClientError, match="another process is a consumer"):
                await started(other)
            await first.stop()
            await (await started(other)).stop()

    asyncio.run(main())


def test_apaches_broker_keeps_the_invariants_that_clients_can_observe(
    apache: tuple[ApacheServer, ApacheServer],
) -> None:
    names, _ = apache
    results = run_suite(lambda: RemotingTarget(names.address), examples=5, seed=1, suite=FLUSH)
    assert [result.verdict for result in results].count(Verdict.HELD) >= 3
    assert not [result for result in results if result.verdict is Verdict.VIOLATED]
