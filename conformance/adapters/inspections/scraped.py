"""The metrics of a broker over HTTP, for known traffic: every series with its value.

See docs/reference/protocol/administration.md, "Metrics of a broker".
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
)
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.broker.broker_metrics import BrokerMetrics
from mqproof.impl.metrics.config import MetricsConfig
from mqproof.impl.metrics.metrics_server import MetricsServer
from mqproof.impl.runtime.network import Address, Connection

PORT: Final = 5557
_SERIES: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')

Page = Mapping[tuple[str, frozenset[str]], float]
"""The values by name and labels; without the labels that all series of a broker have."""
_X: Final = "DefaultCluster_x"
_LATER: Final = "SCHEDULE_TOPIC_XXXX"
_HALVES, _OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
_OWN: Final = "CID_RMQ_SYS_TRANS"
_QUEUES: Final = (("t", 0), ("t", 1), (_X, 0), (_LATER, 17))
_ROLES: Final = ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE")
_LATE_MS: Final = 50
_OF_ALL: Final = frozenset({"cluster=DefaultCluster", "node_type=broker", "node_id=broker-a"})


class _Fetch:
    """One HTTP request and its answer: the receiver of a connection."""

    def __init__(self) -> None:
        self.data = b""
        self.is_done = asyncio.Event()

    def received(self, data: bytes) -> None:
        self.data += data

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self.is_done.set()


async def fetched(site: Site, path: str, host: str = "") -> tuple[str, str]:
    """Return the status and the body of a page, by default of the master."""
    fetch = _Fetch()

    def accept(connection: Connection) -> _Fetch:
        connection.write(f"GET {path} HTTP/1.1\r\nHost: broker\r\n\r\n".encode())
        return fetch

    await site.cluster.internet.machine(HOST).connect(Address(host or site.broker.host, PORT), accept)
    async with asyncio.timeout(20):
        await fetch.is_done.wait()
    head, _, body = fetch.data.decode().partition("\r\n\r\n")
    return head.splitlines()[0].split(" ")[1] if head else "", body


async def page_of(site: Site, host: str = "") -> Page:
    """Return the page of metrics, by default of the master."""
    await asyncio.sleep(1)  # a page is reused for a second
    status, body = await fetched(site, "/metrics", host)
    site.compare("the status of the metrics", "200", status)
    found = {}
    for line in body.splitlines():
        if not line.startswith("#") and (match := _SERIES.fullmatch(line)):
            labels = frozenset("=".join(label) for label in _LABEL.findall(match[2] or ""))
            found[match[1], labels - _OF_ALL] = float(match[3])
    return found


async def metrics(site: Site) -> None:
    """Compare the page of metrics before and after known traffic, and whether the broker is ready."""
    site.rule = chapters.METRICS_OF_A_BROKER
    broker = site.cluster.brokers[MASTER]
    config = MetricsConfig(metrics_host=site.broker.host, metrics_port=PORT)
    server = MetricsServer(config, site.cluster.machines[MASTER].runtime(), ("broker",))
    await server.start()
    site.compare("the status before the start", "503", (await fetched(site, "/readyz"))[0])
    server.sources["broker"] = BrokerMetrics(broker)
    for path, status in (("/readyz", "200"), ("/healthz", "200"), ("/other", "404")):
        site.compare(f"the status of {path}", status, (await fetched(site, path))[0])
    idle = await page_of(site)
    _compare(site, idle, _of_an_idle_broker(8))
    _compare_budgets(site, idle, {})
    halves = await _traffic(site)
    page, at_ms = await page_of(site), site.now_ms
    _compare(site, page, {
        **_of_an_idle_broker(12), **_of_traffic(await _read(site, halves), at_ms),
        ("rocketmq_storage_size_bytes", _LOCAL): await _log_end(site),
    })  # fmt: skip
    _compare_budgets(site, page, {"connections": 1, "topics": 4, "groups": 2})
    await server.stop()


def _compare(site: Site, page: Page, expected: Page) -> None:
    for key in page.keys() | expected.keys():
        name, labels = key
        if any(label.startswith(("budget=", "le=")) for label in labels):
            continue
        value, wanted = page.get(key), expected.get(key)
        close = value is not None and wanted is not None and abs(value - wanted) <= _LATE_MS
        if not (close and "milliseconds" in name):
            site.compare(f"{name} {sorted(labels)}", wanted, value)
    for (name, labels), value in page.items():
        if name == "rocketmq_message_size_bucket":
            whole = labels - {label for label in labels if label.startswith("le=")}
            site.compare(f"{name} {sorted(labels)}", page["rocketmq_message_size_count", whole], value)


_BUDGETS: Final = {
    "connections": 10_000, "bytes_of_unanswered_requests": 256 << 20, "bytes_of_incomplete_frames": 256 << 20,
    "bytes_of_unread_answers": 256 << 20, "held_pulls": 100_000, "bytes_of_group_memberships": 128 << 20,
    "topics": 50_000, "groups": 50_000,
}  # fmt: skip
"""The limits of docs/reference/protocol/framing.md, "Shares"."""


def _compare_budgets(site: Site, page: Page, used: dict[str, int]) -> None:
    shown = {
        (name, label.removeprefix("budget=")): value
        for (name, labels), value in page.items()
        for label in labels
        if label.startswith("budget=")
    }
    expected = {("mqproof_budget_limit", name): limit for name, limit in _BUDGETS.items()}
    expected |= {("mqproof_budget_used", name): used.get(name, 0) for name in _BUDGETS}
    expected |= {("mqproof_refused_requests_total", name): 0 for name in _BUDGETS}
    site.compare("the budgets", expected, shown)


def _labels(**values: str) -> frozenset[str]:
    return frozenset(f"{name}={value}" for name, value in values.items())


_LOCAL: Final = _labels(storage_type="local", storage_medium="disk")


async def _log_end(site: Site) -> int:
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    return int(table["commitLogMaxOffset"])


def _of_an_idle_broker(topics: int) -> dict[tuple[str, frozenset[str]], float]:
    none: frozenset[str] = frozenset()
    damage = {
        ("mqproof_damage_total", _labels(kind=kind, outcome=outcome)): 0.0
        for kind in ("index_entry", "log", "queue_entry", "record", "table")
        for outcome in ("cut", "repaired", "skipped")
    }
    return damage | {
        ("mqproof_disk_full", none): 0,
        ("mqproof_disk_used_ratio", none): 0.5,
        ("mqproof_failed_sends_total", none): 0,
        ("mqproof_metrics_left_out", none): 0,
        ("mqproof_open_transactions", none): 0,
        ("mqproof_ready", _labels(server="broker")): 1,
        ("mqproof_refused_sends_total", _labels(reason="overload")): 0,
        ("mqproof_refused_sends_total", _labels(reason="slow_disk")): 0,
        **{("mqproof_role", _labels(role=role)): role == "ASYNC_MASTER" for role in _ROLES},
        ("mqproof_scrub_passes_total", none): 0,
        ("mqproof_scrubbed_records_total", none): 0,
        ("mqproof_store_read_only", none): 0,
        ("rocketmq_broker_permission", none): 6,
        ("rocketmq_consumer_group_number", none): 0,
        ("rocketmq_processor_watermark", _labels(processor="send")): 0,
        ("rocketmq_storage_dispatch_behind_bytes", _LOCAL): 0,
        ("rocketmq_storage_flush_behind_bytes", _LOCAL): 0,
        ("rocketmq_storage_size_bytes", _LOCAL): 0,
        ("rocketmq_topic_number", none): topics,
    }


def _of_traffic(found: Mapping[tuple[str, int], list[StoredRecord]], at_ms: int) -> Page:
    """Return the metrics of the traffic of this inspection."""
    sizes = {queue: [len(each.raw) for each in stored] for queue, stored in found.items()}
    first, halves = sizes["t", 0], sizes[_HALVES, 0]
    in_order, *of_batch = sizes["t", 1]
    page: dict[tuple[str, frozenset[str]], float] = {
        ("mqproof_open_transactions", frozenset()): 1,
        ("rocketmq_consumer_group_number", frozenset()): 2,
        ("rocketmq_commit_messages_total", _labels(topic=_X)): 1,
        ("rocketmq_rollback_messages_total", _labels(topic=_X)): 2,
        (
            "rocketmq_send_to_dlq_messages_total",
            _labels(topic="t", consumer_group="h", is_system="false"),
        ): 1,
    }
    for topic, kind, count, total, requests, size in (
        ("t", "normal", 5, sum(first) + sum(of_batch), 4, sum(first) + sum(of_batch) / 2),
        ("t", "fifo", 1, in_order, 1, in_order),
        (_LATER, "delay", 1, sizes[_LATER, 17][0], 1, sizes[_LATER, 17][0]),
        (_HALVES, "transaction", len(halves), sum(halves), len(halves), sum(halves)),
    ):
        labels = _labels(topic=topic, message_type=kind, is_system=_is(topic not in ("t", _X)))
        page["rocketmq_messages_in_total", labels] = count
        page["rocketmq_throughput_in_total", labels] = total
        page["rocketmq_message_size_count", labels] = requests
        page["rocketmq_message_size_sum", labels] = size
    for topic, group, received in (
        (_X, "g", sizes[_X, 0]), ("t", "g", [*first[:2], *first]), ("t", "h", sizes["t", 1][1:]),
    ):  # fmt: skip
        labels = _labels(topic=topic, consumer_group=group, is_system="false")
        page["rocketmq_messages_out_total", labels] = len(received)
        page["rocketmq_throughput_out_total", labels] = sum(received)
    for topic, group, in_flight, ready, behind, unseen in (
        ("t", "g", 2, 0, found["t", 0][1], None), ("t", "h", 2, 0, found["t", 1][1], None),
        (_X, "h", 0, 1, found[_X, 0][0], found[_X, 0][0]), (_OPERATIONS, _OWN, 0, 0, None, None),
        (_HALVES, _OWN, 0, 1, found[_HALVES, 0][3], found[_HALVES, 0][3]),
    ):  # fmt: skip
        labels = _labels(topic=topic, consumer_group=group, is_system=_is(group == _OWN), is_retry="false")
        page["rocketmq_consumer_lag_messages", labels] = in_flight + ready
        page["rocketmq_consumer_inflight_messages", labels] = in_flight
        page["rocketmq_consumer_ready_messages", labels] = ready
        page["rocketmq_consumer_lag_latency_milliseconds", labels] = at_ms - behind.store_ms if behind else 0
        page["rocketmq_consumer_queueing_latency_milliseconds", labels] = (
            at_ms - unseen.store_ms if unseen else 0
        )
    page["rocketmq_storage_message_reserve_time_milliseconds", _LOCAL] = at_ms - found["t", 0][0].store_ms
    return page


async def _read(site: Site, halves: list[int]) -> dict[tuple[str, int], list[StoredRecord]]:
    """Return the records of each queue; those of half messages are read by their commit offsets."""
    found = {(topic, queue): await records(site, topic, 0, queue) for topic, queue in _QUEUES}
    bodies = [(await site.ask("VIEW_MESSAGE_BY_ID", offset=offset)).body for offset in halves]
    return {**found, (_HALVES, 0): list(read_records(b"".join(bodies)))}


def _is(value: bool) -> str:
    return "true" if value else "false"


async def _traffic(site: Site) -> list[int]:
    """Send and consume in each way that is counted; return the commit offsets of the half messages."""
    halves = []
    await make_topic(site, "t", 2)
    await make_topic(site, _X)
    for group in ("g", "h"):
        await make_group(site, group)
    for number in range(3):
        await send(site, "t", f"body {number}", of={"TAGS": "a"})
        await asyncio.sleep(10)
    await send(site, "t", "in order", 1, of={"__SHARDINGKEY": "k"})
    await send(site, "t", batch([(b"one", 0, {}), (b"another", 0, {})]), 1, name="SEND_BATCH_MESSAGE")
    await send(site, "t", "later", of={"DELAY": "18"})
    for key, end in (("k1", 8), ("k2", 12), ("k3", 12), ("k4", 0)):
        half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": key}
        answer = await send(site, _X, "half", f=4, of=half)
        halves.append(int(answer.fields["msgId"][-16:], 16))
        fields: dict[str, Any] = {
            "producerGroup": "p", "tranStateTableOffset": answer.fields["queueOffset"],
            "commitLogOffset": halves[-1], "commitOrRollback": end, "msgId": key,
            "transactionId": key, "fromTransactionCheck": False,
        }  # fmt: skip
        if end:
            await site.ask("END_TRANSACTION", **fields)
    await pull(site, "t", 0, maxMsgNums=2)
    await commit(site, "g", "t", 0, 1)
    await pull(site, "t", 1, 1, group="h")
    await commit(site, "h", "t", 1, 1)
    await commit(site, "h", _X, 0, 0)
    site.compare("the committed message", 1, len(await records(site, _X)))
    first = (await records(site, "t"))[0]
    await site.ask("CONSUMER_SEND_MSG_BACK", offset=first.commit_offset, group="h", delayLevel=-1,
        originMsgId="m", originTopic="t", unitMode=False, maxReconsumeTimes=16)  # fmt: skip
    await asyncio.sleep(5)
    return halves


METRICS: Final = Inspection("metrics", metrics)
