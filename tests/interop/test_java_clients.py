"""Tests Apache's Java clients with our name server and broker: every way to send and to consume."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.clients.driver_client import DriverClient, DriverError, Event
from mqproof.impl.runtime.network import Address

pytestmark = pytest.mark.apache

BINARY_HEADERS = ("-Drocketmq.serialize.type=ROCKETMQ",)


@pytest.fixture
def topic(release: str, request: pytest.FixtureRequest) -> str:
    """Return a topic, and with it groups, for one test only."""
    name: str = request.node.originalname
    return f"{name.removeprefix('test_')}-{release.replace('.', '_')}"[:90]


def bodies(events: list[Event]) -> list[str]:
    return sorted(event["body"].rstrip(".") for event in events)


def test_each_way_to_send_is_answered_and_stored(java_at_ours: DriverClient, topic: str) -> None:
    for mode in ("sync", "async", "batch"):
        events = java_at_ours.send(topic, 3, mode=mode)
        assert {event["status"] for event in events} == {"SEND_OK"}
        assert sum(len(event["msgId"].split(",")) for event in events) == 3
    java_at_ours.send(topic, 3, mode="oneway")
    java_at_ours.send(topic, 1, size=100_000)  # compressed by the producer
    java_at_ours.subscribe(topic, topic, topic)
    got = java_at_ours.wait_for(13, topic)
    assert bodies(got) == ["0"] * 5 + ["1"] * 4 + ["2"] * 4
    assert max(len(event["body"]) for event in got) == 100_000
    assert {(event["tag"], event["keys"]) for event in got} == {
        ("TagA", f"key-{number}") for number in range(3)
    }
    java_at_ours.close(topic)


@pytest.mark.parametrize("mode", ["concurrent", "orderly", "broadcast", "lite"])
def test_each_consumer_gets_every_message_once(java_at_ours: DriverClient, topic: str, mode: str) -> None:
    name = f"{topic}-{mode}"
    java_at_ours.send(name, 8)
    java_at_ours.subscribe(name, name, name, mode=mode)
    java_at_ours.wait_for(8, name)
    java_at_ours.send(name, 4)
    got = java_at_ours.wait_for(12, name)
    assert bodies(got) == sorted(["0", "1", "2", "3"] * 2 + ["4", "5", "6", "7"])
    assert len({event["msgId"] for event in got}) == 12
    for queue_id in range(4):
        offsets = [event["queueOffset"] for event in got if event["queueId"] == queue_id]
        assert offsets == sorted(offsets) or mode in ("concurrent", "broadcast")
    java_at_ours.close(name)


@pytest.mark.parametrize("mode", ["concurrent", "orderly"])
def test_the_next_consumer_of_a_group_continues_where_the_last_one_stopped(
    java_at_ours: DriverClient, topic: str, mode: str
) -> None:
    name = f"{topic}-{mode}"
    java_at_ours.send(name, 4)
    java_at_ours.subscribe(f"{name}-1", name, name, mode=mode)
    java_at_ours.wait_for(4, f"{name}-1")
    java_at_ours.close(f"{name}-1")
    java_at_ours.send(name, 1, tag="later")
    java_at_ours.subscribe(f"{name}-2", name, name, mode=mode)
    (event,) = java_at_ours.wait_for(1, f"{name}-2")
    assert event["tag"] == "later"
    java_at_ours.close(f"{name}-2")


def test_two_members_divide_the_queues(java_at_ours: DriverClient, topic: str) -> None:
    java_at_ours.send(topic, 8)
    java_at_ours.subscribe(f"{topic}-1", topic, topic)
    java_at_ours.wait_for(8, f"{topic}-1")
    java_at_ours.subscribe(f"{topic}-2", topic, topic)
    got: list[Event] = []
    for _ in range(30):  # the second member needs some time to get its queues
        java_at_ours.send(topic, 4)
        with suppress(DriverError):
            got = java_at_ours.wait_for(1, f"{topic}-2", seconds_max=1.0)
            break
    assert got
    assert {event["queueId"] for event in got} < {0, 1, 2, 3}
    java_at_ours.close(f"{topic}-1")
    java_at_ours.close(f"{topic}-2")


def test_a_filter_by_tags_delivers_only_matching_messages(java_at_ours: DriverClient, topic: str) -> None:
    for tag in ("TagA", "TagB", "Aa", "BB"):  # the last two tags have the same hash code
        java_at_ours.send(topic, 2, tag=tag)
    java_at_ours.subscribe(topic, topic, topic, tags="TagB||Aa")
    got = java_at_ours.wait_for(4, topic)
    assert sorted(event["tag"] for event in got) == ["Aa", "Aa", "TagB", "TagB"]
    java_at_ours.close(topic)


def test_a_delayed_message_is_delivered_when_it_is_due(java_at_ours: DriverClient, topic: str) -> None:
    java_at_ours.send(topic, 2, mode="delay-2")
    java_at_ours.subscribe(topic, topic, topic)
    for event in java_at_ours.wait_for(2, topic):
        assert event["storeTimestamp"] - event["bornTimestamp"] >= 4_900
    java_at_ours.close(topic)


def test_a_message_that_failed_is_redelivered_later(java_at_ours: DriverClient, topic: str) -> None:
    java_at_ours.send(topic, 1, tag="fail")
    java_at_ours.subscribe(topic, topic, topic)
    first, second = java_at_ours.wait_for(2, topic)
    assert (first["reconsumeTimes"], second["reconsumeTimes"]) == (0, 1)
    assert first["topic"] == second["topic"] == topic
    assert second["storeTimestamp"] - first["storeTimestamp"] >= 9_900
    java_at_ours.close(topic)


def test_a_pull_consumer_reads_each_queue_to_its_end(java_at_ours: DriverClient, topic: str) -> None:
    java_at_ours.send(topic, 8)
    ends = java_at_ours.pull(topic, topic)
    assert sum(event["next"] for event in ends) == 8
    assert all(event["next"] == event["max"] and event["min"] == 0 for event in ends)


@pytest.fixture
def binary_client(
    release: str, our_names: Address, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverClient]:
    with java_client(release, tmp_path_factory.mktemp("binary"), our_names, jvm=BINARY_HEADERS) as client:
        yield client


def test_binary_headers_work_too(binary_client: DriverClient, topic: str) -> None:
    binary_client.send(topic, 2)
    binary_client.send(topic, 2, mode="batch")
    for mode in ("concurrent", "orderly", "lite"):
        binary_client.subscribe(mode, topic, f"{topic}-{mode}", mode=mode)
        assert len(binary_client.wait_for(4, mode)) == 4
