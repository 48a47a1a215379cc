"""Tests the metrics of messages and consumers, and that they are those of a released broker."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mqproof.impl.broker import message_metrics
from mqproof.impl.broker.consumer_lag import Lag
from mqproof.impl.broker.message_metrics import MESSAGE_METRICS
from mqproof.impl.broker.state.traffic import OTHERS, Traffic
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


def test_the_state_of_the_store_is_reported() -> None:
    clock = SimpleNamespace(now_us=lambda: 5_000_000)
    old = SimpleNamespace(store_timestamp_ms=2000)
    store = SimpleNamespace(log_begin=10, log_end=100, log_flushed=70, dispatched_end=60)
    services = SimpleNamespace(
        store=store, config=SimpleNamespace(permission=6), runtime=SimpleNamespace(clock=clock),
        topics=range(3), groups=range(2), sends=range(1),
    )  # fmt: skip
    store.records_from = lambda at: iter([old] if at == 10 else [])
    found = {metric.name: values for metric, values in message_metrics._store(services).items()}  # type: ignore[arg-type]
    disk = ("local", "disk")
    assert found == {
        "rocketmq_broker_permission": {(): 6},
        "rocketmq_topic_number": {(): 3},
        "rocketmq_consumer_group_number": {(): 2},
        "rocketmq_processor_watermark": {("send",): 1},
        "rocketmq_storage_size_bytes": {disk: 90},
        "rocketmq_storage_flush_behind_bytes": {disk: 30},
        "rocketmq_storage_dispatch_behind_bytes": {disk: 40},
        "rocketmq_storage_message_reserve_time_milliseconds": {disk: 3000},
    }
    old.store_timestamp_ms = 5000
    new = {metric.name: values for metric, values in message_metrics._store(services).items()}  # type: ignore[arg-type]
    assert new["rocketmq_storage_message_reserve_time_milliseconds"] == {disk: 0}
    store.records_from = lambda _: iter([])
    store.log_flushed = store.dispatched_end = 101
    empty = {metric.name: values for metric, values in message_metrics._store(services).items()}  # type: ignore[arg-type]
    assert empty["rocketmq_storage_message_reserve_time_milliseconds"] == {}
    assert empty["rocketmq_storage_flush_behind_bytes"] == {disk: 0}
    assert empty["rocketmq_storage_dispatch_behind_bytes"] == {disk: 0}


def test_traffic_and_lag_are_reported_by_topic_and_group() -> None:
    traffic = Traffic()
    traffic.stored("T", "normal", 2, 300)
    traffic.delivered("T", "G", 3, 900)
    traffic.dead_letter("T", "G")
    traffic.transaction_ended("T", committed=True)
    for _ in range(2):
        traffic.transaction_ended("T", committed=False)
    for topic in ("b", OTHERS):
        traffic.stored(topic, "delay", 1, 1)
    services = SimpleNamespace(
        statistics=SimpleNamespace(traffic=traffic), config=SimpleNamespace(name="b", cluster="C")
    )
    found = {
        metric.name.removeprefix("rocketmq_"): values
        for metric, values in (
            *message_metrics._traffic(services).items(),  # type: ignore[arg-type]
            *message_metrics._lags(services, {  # type: ignore[arg-type]
                ("T", "G"): Lag(1, 20, 300, 4000), ("%RETRY%G", "G"): Lag(5, 0, 0, 0)
            }).items(),
        )
    }  # fmt: skip
    normal, delayed = ("T", "normal", "false"), [("b", "delay", "true"), (OTHERS, "delay", "false")]
    sizes = found.pop("message_size")
    assert [sizes[normal].counts[0], sizes[normal].sum] == [1, 150]  # type: ignore[union-attr]
    of_group, of_pair = ("T", "G", "false"), ("T", "G", "false", "false")
    retried = ("%RETRY%G", "G", "false", "true")
    assert found == {
        "messages_in_total": {normal: 2, **dict.fromkeys(delayed, 1)},
        "throughput_in_total": {normal: 300, **dict.fromkeys(delayed, 1)},
        "messages_out_total": {of_group: 3},
        "throughput_out_total": {of_group: 900},
        "send_to_dlq_messages_total": {of_group: 1},
        "commit_messages_total": {("T",): 1},
        "rollback_messages_total": {("T",): 2},
        "consumer_lag_messages": {of_pair: 21, retried: 5},
        "consumer_inflight_messages": {of_pair: 1, retried: 5},
        "consumer_ready_messages": {of_pair: 20, retried: 0},
        "consumer_lag_latency_milliseconds": {of_pair: 300, retried: 0},
        "consumer_queueing_latency_milliseconds": {of_pair: 4000, retried: 0},
    }
