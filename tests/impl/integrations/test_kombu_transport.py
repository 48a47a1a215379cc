"""kombu keeps its messages in topics of a broker inside the test; tests/examples has a worker of Celery."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import kombu
import pytest
from kombu.exceptions import ChannelError

from mqproof import new_message
from mqproof.impl.integrations.kombu_transport import read_options, topic_name
from mqproof.integrations import register_kombu
from mqproof.testing import ThreadedBroker

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[ThreadedBroker]:
    register_kombu()
    with ThreadedBroker() as broker:
        yield broker


def connected(broker: ThreadedBroker, **options: Any) -> Any:
    return kombu.Connection(f"rocketmq://{broker.name_server}", transport_options=options)


def received(queue: Any) -> Any:
    """Return the next message, which takes as long as the consumer needs to join its group."""
    return queue.get(block=True, timeout=SECONDS_MAX)


def test_a_message_that_is_not_acknowledged_is_delivered_to_another_worker(rocketmq: ThreadedBroker) -> None:
    with connected(rocketmq) as first, first.SimpleQueue("left") as queue:
        queue.put({"number": 7})
        assert received(queue).payload == {"number": 7}
    with connected(rocketmq) as second, second.SimpleQueue("left") as queue:
        again = received(queue)
        assert again.payload == {"number": 7}
        again.ack()
        queue.put({"number": 8})
        assert received(queue).payload == {"number": 8}


def test_an_acknowledgement_after_the_end_of_its_connection_is_logged(
    rocketmq: ThreadedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mqproof")
    with connected(rocketmq) as connection, connection.SimpleQueue("late") as queue:
        queue.put("late")
        message = received(queue)
        channel = message.channel
    channel.settle(message.delivery_tag, None)
    assert "is delivered again: its connection is closed" in caplog.text
    caplog.clear()  # the log of a test must have no other warning


def test_an_acknowledged_message_is_not_delivered_again(rocketmq: ThreadedBroker) -> None:
    with connected(rocketmq) as first, first.SimpleQueue("done") as queue:
        queue.put("one")
        received(queue).ack()
    with connected(rocketmq) as second, second.SimpleQueue("done") as queue:
        queue.put("two")
        assert received(queue).payload == "two"


def test_a_rejected_message_is_dropped_or_delivered_again_later(rocketmq: ThreadedBroker) -> None:
    with connected(rocketmq) as connection, connection.SimpleQueue("rejected") as queue:
        queue.put("dropped")
        received(queue).reject()
        queue.put("requeued")
        received(queue).requeue()
        again = None
        while again is None:  # the broker may not have the message yet when its time passes
            rocketmq.advance(seconds=11)
            with suppress(queue.Empty):
                again = queue.get(block=True, timeout=0.2)
        assert (again.payload, again.delivery_info["redelivered"]) == ("requeued", True)
        again.ack()


def test_the_size_of_a_queue_counts_what_is_not_consumed_and_a_purge_skips_it(
    rocketmq: ThreadedBroker,
) -> None:
    with connected(rocketmq) as connection:
        channel = connection.channel()
        queue = kombu.Queue("sized", channel=channel)
        assert queue.queue_declare().message_count == 0
        for number in range(3):
            connection.Producer().publish(number, routing_key="sized")
        assert queue.queue_declare().message_count == 3
        assert queue.purge() == 3
        assert queue.queue_declare().message_count == 0
        connection.Producer().publish("next", routing_key="sized")
        assert received(connection.SimpleQueue("sized")).payload == "next"


def test_a_message_of_another_program_is_skipped(
    rocketmq: ThreadedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mqproof")
    with connected(rocketmq) as connection, connection.SimpleQueue("shared") as queue:
        with rocketmq.client() as client:
            client.send_or_raise(new_message("kombu_shared", b"not of kombu"))
        while "is not of kombu and is skipped" not in caplog.text:
            with pytest.raises(queue.Empty):
                queue.get(block=True, timeout=0.2)
        caplog.clear()  # the log of a test must have no other warning
        queue.put("of kombu")
        assert received(queue).payload == "of kombu"


def test_what_rocketmq_does_not_have_is_refused(rocketmq: ThreadedBroker) -> None:
    with connected(rocketmq) as connection:
        channel = connection.channel()
        with pytest.raises(ChannelError, match="only direct exchanges"):
            channel.exchange_declare("all", type="fanout")
        with pytest.raises(ChannelError, match="queue mine is exclusive"):
            channel.queue_declare("mine", exclusive=True)
        with pytest.raises(ChannelError, match="priority"):
            connection.Producer().publish(1, routing_key="sized", priority=3)
        with pytest.raises(ChannelError, match="deleteTopic"):
            channel.queue_delete("sized")
    for url, options, problem in (
        (f"{rocketmq.name_server}/shop", {}, "no virtual hosts, 'shop' given"),
        (rocketmq.name_server, {"fanout_prefix": True}, "unknown field `fanout_prefix`"),
        (rocketmq.name_server, {"queues": 0}, "queues is 0, a positive number expected"),
    ):
        with pytest.raises(ValueError, match=problem):
            kombu.Connection(f"rocketmq://{url}", transport_options=options).connect()


def test_options_of_kombu_itself_are_left_to_it() -> None:
    assert read_options({"polling_interval": 1, "topic_prefix": "t_"}).topic_prefix == "t_"


def test_names_of_queues_become_names_of_topics_and_stay_different() -> None:
    names = ["celery", "celery@host.a", "celery-40host-2ea", "ünüs"]
    topics = [topic_name("k_", name) for name in names]
    assert topics[:2] == ["k_celery", "k_celery-40host-2ea"]
    assert len({*topics}) == len(names)
    assert all(topic.replace("-", "").replace("_", "").isascii() for topic in topics)
