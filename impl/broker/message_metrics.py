"""The metrics of messages and consumers, with the names, types and labels of RocketMQ 5.

See docs/reference/protocol/administration.md, "Metrics of a broker".
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from mqproof.impl.broker.consumer_lag import Lag, lags
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.topics import is_system_topic
from mqproof.impl.broker.state.traffic import OTHERS, SERIES_MAX
from mqproof.impl.metrics.families import Family, Metric, MetricType, Value
from mqproof.impl.remoting.message import RETRY_PREFIX
from mqproof.impl.runtime.clock import now_ms

_IN: Final = ("topic", "message_type", "is_system")
_OUT: Final = ("topic", "consumer_group", "is_system")
_LAG: Final = ("topic", "consumer_group", "is_system", "is_retry")
_STORAGE: Final = ("storage_type", "storage_medium")
_LOCAL: Final = ("local", "disk")


def _counter(name: str, meaning: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(f"rocketmq_{name}", MetricType.COUNTER, meaning, labels)


def _gauge(name: str, meaning: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(f"rocketmq_{name}", MetricType.GAUGE, meaning, labels)


MESSAGES_IN: Final = _counter("messages_in_total", "Messages that producers sent and the broker stored.", _IN)
BYTES_IN: Final = _counter("throughput_in_total", "Bytes of the records of these messages.", _IN)
SIZE: Final = Metric(
    "rocketmq_message_size",
    MetricType.HISTOGRAM,
    "Bytes of a record; a batch counts as one message of the mean size.",
    _IN,
)
MESSAGES_OUT: Final = _counter("messages_out_total", "Messages that consumers received.", _OUT)
BYTES_OUT: Final = _counter("throughput_out_total", "Bytes of the records of these messages.", _OUT)
DEAD_LETTERS: Final = _counter(
    "send_to_dlq_messages_total", "Messages that became dead letters of a group.", _OUT
)
COMMITS: Final = _counter("commit_messages_total", "Transactions that producers committed.", ("topic",))
ROLLBACKS: Final = _counter("rollback_messages_total", "Transactions that producers rolled back.", ("topic",))
LAG: Final = _gauge("consumer_lag_messages", "Messages after the committed offsets.", _LAG)
INFLIGHT: Final = _gauge(
    "consumer_inflight_messages", "Messages that the group received and has not committed.", _LAG
)
READY: Final = _gauge("consumer_ready_messages", "Messages that the group has not received.", _LAG)
LAG_MS: Final = _gauge("consumer_lag_latency_milliseconds", "Age of the oldest message of the lag.", _LAG)
QUEUEING_MS: Final = _gauge(
    "consumer_queueing_latency_milliseconds", "Age of the oldest message that is ready.", _LAG
)
PERMISSION: Final = _gauge("broker_permission", "Permissions of the broker: 2 write, 4 read, 6 both.")
TOPICS: Final = _gauge("topic_number", "Topics.")
GROUPS: Final = _gauge("consumer_group_number", "Consumer groups.")
WATERMARK: Final = _gauge("processor_watermark", "Requests in progress; only sends wait.", ("processor",))
LOG_BYTES: Final = _gauge("storage_size_bytes", "Bytes of the commit log.", _STORAGE)
UNFLUSHED: Final = _gauge("storage_flush_behind_bytes", "Bytes of the log that are not durable.", _STORAGE)
UNDISPATCHED: Final = _gauge(
    "storage_dispatch_behind_bytes", "Bytes of the log that consumers cannot read yet.", _STORAGE
)
LOG_AGE_MS: Final = _gauge(
    "storage_message_reserve_time_milliseconds", "Age of the first message in the log.", _STORAGE
)
LEFT_OUT: Final = Metric(
    "mqproof_metrics_left_out",
    MetricType.GAUGE,
    f"Pairs of topic and group without metrics of the lag, because there are more than {SERIES_MAX}.",
)

MESSAGE_METRICS: Final[Sequence[Metric]] = (
    *(MESSAGES_IN, BYTES_IN, SIZE, MESSAGES_OUT, BYTES_OUT, DEAD_LETTERS, COMMITS, ROLLBACKS),
    *(LAG, INFLIGHT, READY, LAG_MS, QUEUEING_MS, PERMISSION, TOPICS, GROUPS, WATERMARK),
    *(LOG_BYTES, UNFLUSHED, UNDISPATCHED, LOG_AGE_MS, LEFT_OUT),
)


async def message_families(services: Services, source_labels: Mapping[str, str]) -> list[Family]:
    """Return the current values."""
    pairs, left_out = await lags(services, SERIES_MAX)
    values: _Values = {
        **_traffic(services),
        **_lags(services, pairs),
        **_store(services),
        LEFT_OUT: {(): left_out},
    }
    return [Family(metric, source_labels, values[metric]) for metric in MESSAGE_METRICS]


_Values = dict[Metric, dict[tuple[str, ...], Value]]


def _traffic(services: Services) -> _Values:
    traffic = services.statistics.traffic
    found: _Values = {metric: {} for metric in (MESSAGES_IN, BYTES_IN, SIZE, MESSAGES_OUT, BYTES_OUT)}
    for (topic, kind), stored in traffic.incoming.items():
        labels = topic, kind, _is_system(services, topic)
        found[MESSAGES_IN][labels], found[BYTES_IN][labels] = stored.messages, stored.bytes
        found[SIZE][labels] = stored.sizes.copy()  # the page is written in a thread
    for (topic, group), counts in traffic.outgoing.items():
        labels = topic, group, _is_system(services, topic)
        found[MESSAGES_OUT][labels], found[BYTES_OUT][labels] = counts.messages, counts.bytes
    found[DEAD_LETTERS] = {
        (topic, group, _is_system(services, topic)): count
        for (topic, group), count in traffic.dead_letters.items()
    }
    found[COMMITS] = {(topic,): count for topic, count in traffic.committed.items()}
    found[ROLLBACKS] = {(topic,): count for topic, count in traffic.rolled_back.items()}
    return found


def _lags(services: Services, pairs: Mapping[tuple[str, str], Lag]) -> _Values:
    found: _Values = {metric: {} for metric in (LAG, INFLIGHT, READY, LAG_MS, QUEUEING_MS)}
    for (topic, group), lag in pairs.items():
        is_retry = _flag(topic.startswith(RETRY_PREFIX))
        labels = topic, group, _is_system(services, topic), is_retry
        found[LAG][labels] = lag.inflight + lag.ready
        found[INFLIGHT][labels], found[READY][labels] = lag.inflight, lag.ready
        found[LAG_MS][labels], found[QUEUEING_MS][labels] = lag.lag_ms, lag.queueing_ms
    return found


def _store(services: Services) -> _Values:
    store = services.store
    found: _Values = {
        PERMISSION: {(): services.config.permission},
        TOPICS: {(): len(services.topics)},
        GROUPS: {(): len(services.groups)},
        WATERMARK: {("send",): len(services.sends)},
        LOG_BYTES: {_LOCAL: store.log_end - store.log_begin},
        UNFLUSHED: {_LOCAL: max(0, store.log_end - store.log_flushed)},
        UNDISPATCHED: {_LOCAL: max(0, store.log_end - store.dispatched_end)},
        LOG_AGE_MS: {},
    }
    with suppress(OSError):  # the log reports errors of the disk
        if (first := next(store.records_from(store.log_begin), None)) is not None:
            age_ms = now_ms(services.runtime.clock) - first.store_timestamp_ms
            found[LOG_AGE_MS][_LOCAL] = max(0, age_ms)
    return found


def _is_system(services: Services, topic: str) -> str:
    config = services.config
    return _flag(topic != OTHERS and is_system_topic(topic, config.name, config.cluster))


def _flag(value: bool) -> str:
    return "true" if value else "false"
