"""The results of operations as tables for people.

Numbers are aligned to the right, names to the left. Values that a broker does not report are shown as a dash.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from mqproof.impl.admin import times
from mqproof.impl.admin.brokers import BrokerState
from mqproof.impl.admin.groups import GroupSummary, Progress
from mqproof.impl.admin.topic_rates import Traffic
from mqproof.impl.admin.topics import queue_of
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.tracing.trace_records import CallBegan, CallEnded, Published, TraceRecord
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import (
    PERM_READ,
    PERM_WRITE,
    Connection,
    ConsumerConnection,
    ConsumeStatsList,
    HaStatus,
    ProducerInfo,
    QueueEntries,
    QueueExtent,
    QueueProgress,
    RunningInfo,
    SubscriptionGroup,
    TopicRoute,
)
from mqproof.impl.remoting.message import KEYS, TAGS, UNIQUE_KEY, StoredMessage
from mqproof.impl.runtime.network import Address

_UNKNOWN: Final = "-"


def cluster_list(brokers: Sequence[BrokerState]) -> Table:
    """Return one row per broker: its address, throughput, the age of its oldest message, and disk usage."""
    table = _table(
        "cluster",
        "broker",
        "#id",
        "address",
        "version",
        "#in/s",
        "#out/s",
        "#lock ms",
        "#hours",
        "#disk",
    )
    for broker in brokers:
        where = (broker.cluster, broker.name, str(broker.id), str(broker.address))
        if broker.status is None:
            _add(table, *where, "no status", *[_UNKNOWN] * 5)
            continue
        status = broker.status
        _add(
            table,
            *where,
            status.get("brokerVersionDesc", _UNKNOWN),
            _load(status, "putTps", "send"),
            _load(
                status, "getTransferedTps" if "getTransferedTps" in status else "getTransferredTps", "pull"
            ),
            status.get("pageCacheLockTimeMills", _UNKNOWN),
            _hours(status.get("earliestMessageTimeStamp")),
            _ratio(status.get("commitLogDiskRatio")),
        )
    return table


def ha_line(broker: Address, status: HaStatus) -> str:
    """Return one line about a broker's replication."""
    if status.master:
        slaves = f"{len(status.ha_connection_info)} slaves, {status.in_sync_slave_nums} in sync"
        return f"{broker}: master, log ends at {status.master_commit_log_max_offset}, {slaves}"
    client = status.ha_client_runtime_info
    state = "follows" if client.is_activated else "does not follow"
    return visible(f"{broker}: slave, log ends at {client.max_offset}, {state} {client.master_addr or 'any'}")


def ha_slaves(status: HaStatus) -> Table:
    """Return one row per slave of a master."""
    table = _table("slave", "#acknowledged", "#sent", "#behind", "#bytes/s", "in sync")
    for each in status.ha_connection_info:
        numbers = (
            each.slave_ack_offset,
            each.transfer_from_where,
            each.diff,
            each.transferred_byte_in_second,
        )
        _add(table, each.addr, *map(str, numbers), "yes" if each.in_sync else "no")
    return table


def traffic(found: Sequence[Traffic]) -> Table:
    """Return one row per topic and group."""
    table = _table("topic", "group", "#behind", "#in/s", "#out/s", "#in 24 h", "#out 24 h")
    for each in found:
        rates = (f"{each.in_tps:.2f}", f"{each.out_tps:.2f}" if each.group else _UNKNOWN)
        counts = (str(each.day_in), str(each.day_out) if each.group else _UNKNOWN)
        behind = str(each.behind) if each.group else _UNKNOWN
        _add(table, each.topic, each.group or "no group", behind, *rates, *counts)
    return table


def connections(members: Sequence[Connection]) -> Table:
    """Return one row per connected client."""
    table = _table("client id", "address", "language", "#version")
    for member in members:
        _add(table, member.client_id, member.client_addr, member.language or _UNKNOWN, str(member.version))
    return table


def subscriptions(group: ConsumerConnection) -> Table:
    """Return one row per topic of a group: what it selects, and how."""
    table = _table("topic", "expression", "type")
    for topic, subscription in sorted(group.subscription_table.items()):
        _add(table, topic, subscription.sub_string or "*", subscription.expression_type or "TAG")
    return table


def producers(found: Mapping[str, Sequence[ProducerInfo]]) -> Table:
    """Return one row per connected producer."""
    table = _table("group", "client id", "address", "language", "#version", "last heartbeat")
    for group, clients in found.items():
        for each in clients:
            heartbeat = times.show(each.last_update_timestamp) or _UNKNOWN
            language = each.language or _UNKNOWN
            address = each.remote_ip.removeprefix("/")
            _add(table, group, each.client_id, address, language, str(each.version), heartbeat)
    return table


def running(members: Mapping[str, RunningInfo]) -> Table:
    """Return one row per queue that a member reads: what it holds of it, and its committed offset."""
    table = _table("client id", "topic", "broker", "#queue", "#committed", "#held", "locked")
    for client_id, info in members.items():
        queues = {queue_of(key): held for key, held in info.mq_table.items()}
        for queue, held in sorted(queues.items()):
            place = (client_id, queue.topic, queue.broker_name, str(queue.queue_id))
            locked = "yes" if held.locked else "no"
            _add(table, *place, str(held.commit_offset), str(held.cached_msg_count), locked)
    return table


def cluster_totals(brokers: Sequence[BrokerState]) -> Table:
    """Return one row per master: messages in and out, yesterday and today."""
    table = _table("cluster", "broker", "#in yesterday", "#out yesterday", "#in today", "#out today")
    for broker in brokers:
        if broker.id == 0:
            status = broker.status or {}
            _add(
                table,
                broker.cluster,
                broker.name,
                *(
                    _difference(status, f"msg{way}Total{late}", f"msg{way}Total{early}")
                    for early, late in _DAYS
                    for way in ("Put", "Get")
                ),
            )
    return table


_DAYS: Final = (("YesterdayMorning", "TodayMorning"), ("TodayMorning", "TodayNow"))


def rows(header: Sequence[str], lines: Iterable[Sequence[str]]) -> Table:
    """Return a table of these texts. A column whose name starts with # is aligned to the right."""
    table = _table(*header)
    for line in lines:
        _add(table, *line)
    return table


def settings(server: str, found: Mapping[Address, Mapping[str, str]]) -> Table:
    """Return one row per setting of each server."""
    lines = [
        (str(address), key, value)
        for address, values in found.items()
        for key, value in sorted(values.items())
    ]
    return rows((server, "key", "value"), lines)


def route_brokers(route: TopicRoute) -> Table:
    """Return one row per broker of the route."""
    lines = [
        (broker.cluster, broker.broker_name, str(id_), address)
        for broker in sorted(route.broker_datas, key=lambda data: data.broker_name)
        for id_, address in sorted(broker.broker_addrs.items())
    ]
    return rows(("cluster", "broker", "#id", "address"), lines)


def route_queues(route: TopicRoute) -> Table:
    """Return one row per broker name: the number of queues that the topic has there."""
    lines = [
        (data.broker_name, str(data.read_queue_nums), str(data.write_queue_nums), permission(data.perm))
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
    ]
    return rows(("broker", "#read queues", "#write queues", "permission"), lines)


def route_list(route: TopicRoute) -> Table:
    """Return one row per broker of the route with its queues, and the sums."""
    queues = {data.broker_name: data for data in route.queue_datas}
    table = _table("cluster", "broker", "addresses", "#read queues", "#write queues", "permission")
    for broker in sorted(route.broker_datas, key=lambda data: (data.cluster, data.broker_name)):
        data = queues.get(broker.broker_name)
        addresses = ", ".join(f"{id_}={address}" for id_, address in sorted(broker.broker_addrs.items()))
        shown = (
            (data.read_queue_nums, data.write_queue_nums, permission(data.perm)) if data else (_UNKNOWN,) * 3
        )
        _add(table, broker.cluster, broker.broker_name, addresses, *map(str, shown))
    sums = (
        sum(data.read_queue_nums for data in queues.values()),
        sum(data.write_queue_nums for data in queues.values()),
    )
    _add(table, "total", str(len(route.broker_datas)), "", *map(str, sums), "")
    return table


def topic_status(queues: Mapping[MessageQueue, QueueExtent]) -> Table:
    """Return one row per queue: its first offset, its end, and the store time of its last message."""
    lines = [
        (
            queue.broker_name,
            str(queue.queue_id),
            str(extent.min_offset),
            str(extent.max_offset),
            times.show(extent.last_update_timestamp) or _UNKNOWN,
        )
        for queue, extent in queues.items()
    ]
    return rows(("broker", "#queue", "#min offset", "#max offset", "last updated"), lines)


def progress(found: Progress, owners: Mapping[MessageQueue, str] | None = None) -> Table:
    """Return one row per queue: its end and the group's offset; with `owners`, also the member."""
    columns = ["topic", "broker", "#queue", "#broker offset", "#consumer offset", "#behind", "last consumed"]
    table = _table(*columns, *(["client"] if owners is not None else []))
    for queue, at in found.queues.items():
        owner = [owners.get(queue, _UNKNOWN)] if owners is not None else []
        _add(table, *_progress_row(queue, at), *owner)
    return table


def consume_stats(stats: ConsumeStatsList, behind_min: int) -> Table:
    """Return one row per group and queue that is at least so many messages behind."""
    columns = ("group", "topic", "broker", "#queue", "#broker offset", "#consumer offset", "#behind")
    table = _table(*columns, "last consumed")
    for of_group in stats.consume_stats_list:
        for group, of_topics in sorted(of_group.items()):
            places = {queue_of(key): at for each in of_topics for key, at in each.offset_table.items()}
            for queue, at in sorted(places.items()):
                if at.broker_offset - at.consumer_offset >= behind_min:
                    _add(table, group, *_progress_row(queue, at))
    return table


def group_settings(found: Mapping[str, SubscriptionGroup]) -> Table:
    """Return one row per setting of a group and broker."""
    table = _table("broker", "setting", "value")
    for broker, group in found.items():
        for name, value in json.loads(java_json.write(group)).items():
            _add(table, broker, name, value if isinstance(value, str) else json.dumps(value))
    return table


def queue_entries(first: int, entries: QueueEntries) -> Table:
    """Return one row per entry of a consume queue."""
    table = _table("#offset", "#log offset", "#bytes", "#tags code")
    for offset, entry in enumerate(entries.queue_data, first):
        place = (str(entry.physic_offset), str(entry.physic_size), str(entry.tags_code))
        _add(table, str(offset), *place)
    return table


def shares(found: Mapping[str, Sequence[MessageQueue]]) -> Table:
    """Return one row per queue, with the member that would read it."""
    table = _table("client", "broker", "#queue")
    for client, queues in found.items():
        for queue in queues:
            _add(table, client, queue.broker_name, str(queue.queue_id))
    return table


def _progress_row(queue: MessageQueue, at: QueueProgress) -> tuple[str, ...]:
    return (
        queue.topic,
        queue.broker_name,
        str(queue.queue_id),
        str(at.broker_offset),
        str(at.consumer_offset),
        str(at.broker_offset - at.consumer_offset),
        times.show(at.last_timestamp) or _UNKNOWN,
    )


def groups(found: Sequence[GroupSummary]) -> Table:
    """Return one row per group: its members, their versions and modes, and its progress."""
    table = _table("group", "#members", "version", "type", "model", "#tps", "#behind")
    for each in found:
        progress = each.progress
        _add(
            table,
            each.group,
            *_members(each.connection),
            f"{progress.tps:.1f}" if progress else _UNKNOWN,
            str(progress.behind) if progress else _UNKNOWN,
        )
    return table


def _members(connection: ConsumerConnection | None) -> tuple[str, str, str, str]:
    if connection is None:
        return ("0", _UNKNOWN, _UNKNOWN, _UNKNOWN)
    versions = sorted({member.version for member in connection.connection_set})
    return (
        str(len(connection.connection_set)),
        ", ".join(map(str, versions)),
        connection.consume_type.removeprefix("CONSUME_").lower(),
        connection.message_model.lower(),
    )


def offsets(found: Mapping[MessageQueue, int]) -> Table:
    """Return one row per queue: the new offset of the group."""
    lines = [(queue.broker_name, str(queue.queue_id), str(offset)) for queue, offset in found.items()]
    return rows(("broker", "#queue", "#offset"), lines)


def messages(found: Sequence[StoredMessage]) -> Table:
    """Return one row per message: its ids and its position."""
    lines = [
        (
            stored.message_id,
            stored.offset_message_id,
            str(stored.message.queue_id),
            str(stored.queue_offset),
            times.show(stored.store_timestamp_ms),
        )
        for stored in found
    ]
    return rows(("message id", "offset message id", "#queue", "#offset", "stored"), lines)


def traces(found: Sequence[TraceRecord]) -> Table:
    """Return one row per trace record."""
    return rows(("type", "time", "group", "#ms", "status", "detail"), map(_trace, found))


def _trace(record: TraceRecord) -> tuple[str, ...]:
    when = times.show(record.time_ms)
    match record:
        case Published():
            status = "SEND_OK" if record.ok else "stored, not confirmed"
            return "Pub", when, record.group, str(record.took_ms), status, f"stored at {record.store_host}"
        case CallBegan():
            detail = f"call {record.request_id}, redelivered {record.redeliveries} times"
            return "SubBefore", when, record.group, _UNKNOWN, _UNKNOWN, detail
        case CallEnded():
            status = "consumed" if record.ok else f"failed, code {record.context}"
            return "SubAfter", when, record.group, str(record.took_ms), status, f"call {record.request_id}"


def message(stored: StoredMessage) -> Table:
    """Return all properties of a message except its body."""
    it = stored.message
    shown = {KEYS, TAGS, UNIQUE_KEY}
    lines = [
        ("message id", stored.message_id),
        ("offset message id", stored.offset_message_id),
        ("topic", it.topic),
        ("tags", it.properties.get(TAGS, _UNKNOWN)),
        ("keys", it.properties.get(KEYS, _UNKNOWN)),
        ("queue", str(it.queue_id)),
        ("queue offset", str(stored.queue_offset)),
        ("commit-log offset", str(stored.commit_offset)),
        ("reconsume times", str(it.reconsume_times)),
        ("born", f"{times.show(it.born_timestamp_ms)} at {_host(it.born_host)}"),
        ("stored", f"{times.show(stored.store_timestamp_ms)} at {_host(it.store_host)}"),
        ("system flag", str(it.sys_flag)),
        ("body bytes", str(len(it.body))),
        *((f"property {name}", value) for name, value in sorted(it.properties.items()) if name not in shown),
    ]
    return rows(("", ""), lines)


def visible(text: str) -> str:
    """Return the text with control characters escaped, so that text of peers cannot control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def permission(perm: int) -> str:
    """Return `RW`, `R-`, `-W` or `--`, as file listings show it, with the number."""
    return f"{'R' if perm & PERM_READ else '-'}{'W' if perm & PERM_WRITE else '-'} ({perm})"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=any(columns))
    for column in columns:
        is_number = column.startswith("#")
        table.add_column(column.removeprefix("#"), justify="right" if is_number else "left", overflow="fold")
    return table


def _add(table: Table, *texts: str) -> None:
    """Add a row of plain texts. In a bare string, rich would interpret `[...]` as a style."""
    table.add_row(*(Text(visible(text)) for text in texts))


def _load(status: Mapping[str, str], tps: str, queue: str) -> str:
    """Return the rate of the last ten seconds.

    If requests wait, adds their number and the first one's wait.
    """
    try:
        rate = f"{float(status[tps].split()[0]):.1f}"
    except (KeyError, IndexError, ValueError):
        return _UNKNOWN
    waiting = status.get(f"{queue}ThreadPoolQueueSize", "0")
    wait_ms = status.get(f"{queue}ThreadPoolQueueHeadWaitTimeMills", "0")
    return rate if waiting == "0" else f"{rate} ({waiting} wait, {wait_ms} ms)"


def _hours(timestamp: str | None) -> str:
    """Return the age of the oldest message in hours."""
    if timestamp is None or not timestamp.isdecimal():
        return _UNKNOWN
    return f"{times.hours_since(int(timestamp)):.1f}"


def _ratio(text: str | None) -> str:
    try:
        return f"{float(text or ''):.0%}"
    except ValueError:
        return _UNKNOWN


def _difference(status: Mapping[str, str], late: str, early: str) -> str:
    try:
        return str(int(status[late]) - int(status[early]))
    except (KeyError, ValueError):
        return _UNKNOWN


def _host(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
