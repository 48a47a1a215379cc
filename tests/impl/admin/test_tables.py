"""Tests the tables that administrators see."""

from rich.console import Console
from rich.table import Table

from mqproof.impl.admin import tables, times
from mqproof.impl.admin.brokers import BrokerState
from mqproof.impl.admin.groups import GroupSummary, Progress
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.tracing.trace_records import CallBegan, CallEnded, Context, Published, TraceRecord
from mqproof.impl.remoting import bodies
from mqproof.impl.remoting.bodies import (
    BrokerData,
    ConsumeStats,
    ConsumeStatsList,
    ProducerInfo,
    QueueData,
    QueueEntries,
    QueueEntry,
    QueueExtent,
    QueueProgress,
    SubscriptionGroup,
    TopicRoute,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import KEYS, Message, StoredMessage
from mqproof.impl.runtime.network import Address

QUEUE = MessageQueue("T", "b-a", 1)


def words(table: Table, width: int = 200) -> list[list[str]]:
    """Return the lines of the table as lists of columns, header first, without the rule."""
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(table)
    lines = captured.get().splitlines()
    return [[text.strip() for text in line.split("   ") if text.strip()] for line in lines if "─" not in line]


def test_each_broker_has_a_row_and_missing_values_are_dashes() -> None:
    reported = {
        "brokerVersionDesc": "V4_9_8",
        "putTps": "1.25 2.0 3.0",
        "getTransferredTps": "7.0 8.0 9.0",
        "pullThreadPoolQueueSize": "3",
        "pullThreadPoolQueueHeadWaitTimeMills": "12",
        "pageCacheLockTimeMills": "0",
        "earliestMessageTimeStamp": str(times.now_ms() - 7_200_000),
        "commitLogDiskRatio": "0.18",
    }
    states = [
        BrokerState("C", "b-a", 0, Address("10.0.0.1", 10911), reported),
        BrokerState("C", "b-a", 1, Address("10.0.0.2", 10911), {"putTps": "much", "commitLogDiskRatio": "?"}),
        BrokerState("C", "b-b", 0, Address("10.0.0.3", 10911), None),
    ]
    assert words(tables.cluster_list(states)) == [
        ["cluster", "broker", "id", "address", "version", "in/s", "out/s", "lock ms", "hours", "disk"],
        ["C", "b-a", "0", "10.0.0.1:10911", "V4_9_8", "1.2", "7.0 (3 wait, 12 ms)", "0", "2.0", "18%"],
        ["C", "b-a", "1", "10.0.0.2:10911", "-", "-", "-", "-", "-", "-"],
        ["C", "b-b", "0", "10.0.0.3:10911", "no status", "-", "-", "-", "-", "-"],
    ]


def test_what_a_broker_knows_of_groups_producers_and_queues_has_a_row_each() -> None:
    key = ObjectKey(bodies.MessageQueue("b-a", 1, "T"))
    stats = ConsumeStatsList("h:1", [{"G": [ConsumeStats(1.0, {key: QueueProgress(9, 7, 0)})]}], 2)
    assert words(tables.consume_stats(stats, 2))[1:] == [["G", "T", "b-a", "1", "9", "7", "2", "-"]]
    assert words(tables.consume_stats(stats, 3))[1:] == []
    info = ProducerInfo("me@1", "JAVA", 0, "/10.0.0.1:4", 400)
    assert words(tables.producers({"P": [info]}))[1:] == [["P", "me@1", "10.0.0.1:4", "JAVA", "400", "-"]]
    settings = words(tables.group_settings({"b-a": SubscriptionGroup(group_name="G")}))
    assert ["b-a", "groupName", "G"] in settings
    assert ["b-a", "consumeEnable", "true"] in settings
    entries = QueueEntries(queue_data=[QueueEntry(False, 346, 173, 66)])
    assert words(tables.queue_entries(5, entries))[1:] == [["5", "346", "173", "66"]]
    assert words(tables.shares({"c1": [QUEUE], "c2": []}))[1:] == [["c1", "b-a", "1"]]


def test_totals_are_differences_between_the_counters_of_masters() -> None:
    counted = {
        f"msg{way}Total{when}": str(value)
        for way, values in (("Put", (10, 30, 60)), ("Get", (1, 2, 4)))
        for when, value in zip(("YesterdayMorning", "TodayMorning", "TodayNow"), values, strict=True)
    }
    states = [BrokerState("C", "b-a", id_, Address("h", 1), counted) for id_ in (0, 1)]
    assert words(tables.cluster_totals(states))[1:] == [["C", "b-a", "20", "1", "30", "2"]]


def test_a_route_has_brokers_and_queues() -> None:
    route = TopicRoute(
        [BrokerData({1: "10.0.0.2:1", 0: "10.0.0.1:1"}, "b-a", "C")], [QueueData("b-a", 4, 2, 0, 3)]
    )
    assert words(tables.route_brokers(route))[1:] == [
        ["C", "b-a", "0", "10.0.0.1:1"],
        ["C", "b-a", "1", "10.0.0.2:1"],
    ]
    assert words(tables.route_queues(route))[1:] == [["b-a", "2", "3", "R- (4)"]]
    assert words(tables.route_list(route))[1:] == [
        ["C", "b-a", "0=10.0.0.1:1, 1=10.0.0.2:1", "2", "3", "R- (4)"],
        ["total", "1", "2", "3"],
    ]


def test_the_settings_of_each_server_are_sorted_by_name() -> None:
    found = {Address("h", 2): {"b": "1", "a": "2"}, Address("h", 1): {"c": "3"}}
    assert words(tables.settings("broker", found)) == [
        ["broker", "key", "value"],
        ["h:2", "a", "2"],
        ["h:2", "b", "1"],
        ["h:1", "c", "3"],
    ]


def test_permissions_are_letters_and_a_number() -> None:
    assert [tables.permission(perm) for perm in (0, 2, 4, 6, 7)] == [
        "-- (0)",
        "-W (2)",
        "R- (4)",
        "RW (6)",
        "RW (7)",
    ]


def test_queues_have_their_extent_and_the_progress_of_a_group() -> None:
    assert words(tables.topic_status({QUEUE: QueueExtent(0, 5, 2)}))[1:] == [["b-a", "1", "2", "5", "-"]]
    behind = Progress({QUEUE: QueueProgress(5, 3, 0)}, 0.5)
    assert words(tables.progress(behind))[1:] == [["T", "b-a", "1", "5", "3", "2", "-"]]
    assert words(tables.progress(behind, {}))[1:] == [["T", "b-a", "1", "5", "3", "2", "-", "-"]]
    assert words(tables.progress(behind, {QUEUE: "me"}))[0][-1] == "client"
    assert words(tables.progress(behind, {QUEUE: "me"}))[1][-1] == "me"
    assert words(tables.offsets({QUEUE: 7}))[1:] == [["b-a", "1", "7"]]
    assert words(tables.groups([GroupSummary("G", None, behind), GroupSummary("H", None, None)]))[1:] == [
        ["G", "0", "-", "-", "-", "0.5", "2"],
        ["H", "0", "-", "-", "-", "-", "-"],
    ]


def test_a_message_has_its_position_and_properties() -> None:
    stored = StoredMessage(Message("T", b"four", {KEYS: "k", "own": "x"}), 7, 99, 0, 1, 0)
    shown = {line[0]: line[1:] for line in words(tables.message(stored))}
    assert shown["queue offset"] == ["7"]
    assert shown["body bytes"] == ["4"]
    assert shown["keys"] == ["k"]
    assert shown["property own"] == ["x"]
    assert "property KEYS" not in shown


def test_text_from_peers_is_printed_without_interpreting_it() -> None:
    message = Message("T", b"", {"own": "[red]x[/red]\x1b[2J\n"})
    shown = {line[0]: line[1] for line in words(tables.message(StoredMessage(message, 0, 0, 0, 1, 0)))}
    assert shown["property own"] == r"[red]x[/red]\x1b[2J\n"
    assert tables.visible("Grüße, \t 世界") == r"Grüße, \t 世界"


def test_trace_records_have_a_row_each() -> None:
    found: list[TraceRecord] = [
        Published(1, "R", "PG", "T", ("m",), None, None, "h:1", 5, 7, 0, "o", True),
        CallBegan(2, "R", "CG", "call-1", "m", 3, None),
        CallEnded("call-1", "m", 9, False, None, Context.FAILED, 3, "CG"),
    ]
    header, *lines = words(tables.traces(found))
    assert header == ["type", "time", "group", "ms", "status", "detail"]
    assert [[line[0], *line[2:]] for line in lines] == [
        ["Pub", "PG", "7", "SEND_OK", "stored at h:1"],
        ["SubBefore", "CG", "-", "-", "call call-1, redelivered 3 times"],
        ["SubAfter", "CG", "9", "failed, code 4", "call call-1"],
    ]


def test_a_narrow_terminal_folds_text_and_drops_nothing() -> None:
    table = tables.rows(("broker", "#n"), [("a-very-long-broker-name", "12345")])
    folded = "".join("".join(texts) for texts in words(table, width=20)[1:])
    assert "12345" in folded
    assert folded.replace("12345", "") == "a-very-long-broker-name"
