"""Tests the metrics of messages and consumers, and that they are those of a released broker."""

from pathlib import Path

import pytest

from mqproof.impl.broker.message_metrics import MESSAGE_METRICS
from tests.impl.metrics.scrapes import all_pages, broker_page, do_everything, parsed, value
from tests.impl.world import World, play

GOLDEN = Path(__file__).parents[2] / "interop" / "golden" / "5.5.0" / "metrics.txt"
OF_ANY_SOURCE = {"cluster", "node_id", "node_type"}


def released() -> dict[str, tuple[str, set[str]]]:
    """Return the type and the labels of each metric of a released broker."""
    lines = [line.split() for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    return {name: (kind, set(labels.split(","))) for name, kind, labels in lines}


@pytest.mark.parametrize("metric", [one for one in MESSAGE_METRICS if one.name.startswith("rocketmq_")])
def test_a_metric_has_the_name_the_type_and_the_labels_of_a_released_broker(metric: object) -> None:
    kind, labels = released()[metric.name]  # type: ignore[attr-defined]
    assert (metric.type, OF_ANY_SOURCE | set(metric.labels)) == (kind, labels)  # type: ignore[attr-defined]


def test_each_message_is_counted_once_under_its_type() -> None:
    page = all_pages()[0]

    def count(topic: str, message_type: str) -> float:
        return value(page, "rocketmq_messages_in_total", topic=topic, message_type=message_type)

    assert count("T", "normal") == count("T", "fifo") == 1
    assert count("SCHEDULE_TOPIC_XXXX", "delay") == 1
    assert count("RMQ_SYS_TRANS_HALF_TOPIC", "transaction") == 2
    assert value(page, "rocketmq_commit_messages_total", topic="T") == 1
    assert value(page, "rocketmq_rollback_messages_total", topic="T") == 1
    assert value(page, "rocketmq_send_to_dlq_messages_total", topic="T", consumer_group="G") == 1
    assert value(page, "rocketmq_messages_out_total", topic="T", consumer_group="G") >= 1


def test_the_label_of_system_topics_is_true_for_no_other_topic() -> None:
    page = all_pages()[0]
    found = {
        (sample.labels["topic"], sample.labels["is_system"])
        for metric in parsed(page).values()
        for sample in metric.samples
        if "is_system" in sample.labels
    }
    assert {("T", "false"), ("SCHEDULE_TOPIC_XXXX", "true"), ("RMQ_SYS_TRANS_HALF_TOPIC", "true")} <= found
    assert len(found) == len(dict(found))


def test_bytes_are_those_of_the_records() -> None:
    async def scenario(world: World) -> tuple[str, int]:
        await do_everything(world)
        assert world.broker is not None
        return await broker_page(world), world.broker.store.log_end

    page, log_end = play(scenario)
    in_log = value(page, "rocketmq_storage_size_bytes")
    assert in_log == log_end
    normal = value(page, "rocketmq_throughput_in_total", topic="T", message_type="normal")
    assert 100 < normal < in_log
    assert value(page, "rocketmq_message_size_sum", topic="T", message_type="normal") == normal
