"""The statistics of a broker: every count and rate that administrators see, for known traffic.

See docs/reference/protocol/administration.md, "Statistics of a broker" and "Administration of offsets".
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import StoredRecord, java_hash
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_DAY_US: Final = 86_400_000_000
_SENDS: Final = 6
_BATCH: Final = 3
_PARTS: Final = batch([(b"in a batch", 7 + number, {}) for number in range(_BATCH)])
_TOPIC, _GROUP = "t", "g"
_CLOSE: Final = 0.06
"""How far a rate may be from the expected one: samples are taken once a second."""


async def counts(site: Site) -> None:
    """Send and pull at known times; compare the counts then, after a minute, and on the next day."""
    site.rule = chapters.STATISTICS_OF_A_BROKER
    await _runtime(
        site, {"msgPutTotalTodayNow": "0", "putMessageAverageSize": "0.0", "earliestMessageTimeStamp": "-1"}
    )
    await make_topic(site, _TOPIC, 2)
    await make_topic(site, "ordered", 1, order=True)
    for group in (_GROUP, "h", "idle"):
        await make_group(site, group)
    await asyncio.sleep(5)
    began_ms = site.now_ms
    for number in range(_SENDS):
        await send(site, _TOPIC, f"body {number}", number % 2, of={"TAGS": f"tag{number}"})
        await asyncio.sleep(0.5)
    await send(site, _TOPIC, _PARTS, 1, name="SEND_BATCH_MESSAGE")
    await send(site, "ordered", "x")
    await send(site, "unknown topic", expects=1)
    found = {queue: await records(site, _TOPIC, 0, queue) for queue in (0, 1)}
    site.compare("the messages", (3, 3 + _BATCH), tuple(len(each) for each in found.values()))
    await pull(site, _TOPIC, 3, group="h", expects=19)
    await pull(site, _TOPIC, 1, group="h")
    await pull(site, _TOPIC, 0, maxMsgNums=1, group="h")
    sizes = [len(each.raw) for each in (*found[0], *found[1])]
    total = _Total(found, len((await records(site, "ordered"))[0].raw))
    await asyncio.sleep(12)
    await _windows(site, total, found, began_ms)
    await _runtime(site, total.runtime())
    await asyncio.sleep(52)
    await _windows(site, total, found, began_ms, is_past=True)
    await _progress(site, found)
    site.compare("the sizes are counted", True, min(sizes) > 91)
    site.cluster.machines[MASTER].clock.skew_us += _DAY_US
    await asyncio.sleep(2)
    puts = str(total.puts)
    days = {"msgPutTotalTodayMorning": puts, "msgPutTotalYesterdayMorning": "0", "msgPutTotalTodayNow": puts}
    await _runtime(site, {**days, "msgGetTotalYesterdayMorning": "0"})
    site.cluster.machines[MASTER].clock.skew_us += _DAY_US
    await asyncio.sleep(2)
    await _runtime(site, {**days, "msgPutTotalYesterdayMorning": puts})


class _Total:
    """The traffic of the inspection."""

    def __init__(self, found: Mapping[int, list[StoredRecord]], ordered_bytes: int) -> None:
        self.messages = [len(each.raw) for queue in (0, 1) for each in found[queue]]
        self.sent_bytes = _SENDS * len("body 0") + len(_PARTS)
        self.puts = len(self.messages) + 1
        self.put_bytes = self.sent_bytes + len("x")
        first = [len(each.raw) for each in found[0]]
        self.by_h = [*first[1:], first[0]]
        self.got = len(self.messages) + len(self.by_h) + 1
        self.first_ms = found[0][0].store_ms
        self.log_end = sum(self.messages) + ordered_bytes

    def runtime(self) -> dict[str, str]:
        """Return what GET_BROKER_RUNTIME_INFO shows."""
        return {
            "msgPutTotalTodayNow": str(self.puts), "msgPutTotalTodayMorning": "0",
            "msgPutTotalYesterdayMorning": "0", "msgGetTotalTodayNow": str(self.got),
            "msgGetTotalTodayMorning": "0", "msgGetTotalYesterdayMorning": "0",
            "putMessageTimesTotal": str(self.puts), "putMessageSizeTotal": str(self.put_bytes),
            "putMessageAverageSize": str(self.put_bytes / self.puts), "putMessageFailedTimes": "0",
            "putMessageEntireTimeMax": "0", "brokerActive": "true", "startAcceptSendRequestTimeStamp": "0",
            "commitLogMinOffset": "0", "commitLogMaxOffset": str(self.log_end), "dispatchBehindBytes": "0",
            "remainHowManyDataToFlush": "0", "remainHowManyDataToCommit": "0",
            "earliestMessageTimeStamp": str(self.first_ms), "sendThreadPoolQueueSize": "0",
            "sendThreadPoolQueueCapacity": "10000", "pullThreadPoolQueueSize": "0",
            "pullThreadPoolQueueCapacity": "100000", "queryThreadPoolQueueSize": "0",
            "EndTransactionQueueSize": "0", "sendThreadPoolQueueHeadWaitTimeMills": "0",
            "pageCacheLockTimeMills": "0", "runtime": "[ 0 days, 0 hours, 0 minutes, 20 seconds ]",
        }  # fmt: skip


async def _runtime(site: Site, expected: Mapping[str, str]) -> None:
    answer = await site.ask("GET_BROKER_RUNTIME_INFO")
    table = java_values.read(answer.body)["table"]
    for name, value in expected.items():
        site.compare(f"{name} of the runtime info", value, table.get(name))
    site.compare(
        "the booted time",
        True,
        site.now_ms - int(table["bootTimestamp"]) > 0 or "-" not in table["bootTimestamp"],
    )
    steps = [each.rpartition(":") for each in table["putMessageDistributeTime"].split(" ")]
    site.compare("the intervals of times", 13, len(steps))
    site.compare("the sends in intervals", True, sum(int(each[2]) for each in steps) >= 0)
    for name in (
        "putTps",
        "getFoundTps",
        "getMissTps",
        "getTotalTps",
        "getTransferedTps",
        "getTransferredTps",
    ):
        site.compare(f"the rates of {name}", 3, len([float(each) for each in table[name].split(" ")]))
    if "msgGetTotalTodayNow" in expected and expected["msgPutTotalTodayNow"] != "0":
        await _rates(site, table, expected)


async def _rates(site: Site, table: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Over the last 10 s nothing happened; over a minute, the rate is that since the start."""
    puts, got = int(expected["msgPutTotalTodayNow"]), int(expected["msgGetTotalTodayNow"])
    seconds = 20
    for name, count in (
        ("putTps", puts), ("getFoundTps", 5), ("getMissTps", 1), ("getTotalTps", 6),
        ("getTransferedTps", got), ("getTransferredTps", got),
    ):  # fmt: skip
        ten, minute, minutes = map(float, table[name].split(" "))
        site.compare(f"{name} of the last 10 s", 0.0, ten)
        site.compare(f"{name} of 10 minutes", minute, minutes)
        close = abs(minute * seconds / count - 1) < _CLOSE * 2
        site.compare(f"whether {name} is about {count} in {seconds} s: {minute}", True, close)


async def _windows(
    site: Site, total: _Total, found: Mapping[int, list[StoredRecord]], began_ms: int, *,
    is_past: bool = False,
) -> None:  # fmt: skip
    """Compare the sums, averages and rates of the last minute, hour and day."""
    by_g = total.messages
    requests = _SENDS + 1
    for name, key, amount, times in (
        ("TOPIC_PUT_NUMS", _TOPIC, len(by_g), requests),
        ("TOPIC_PUT_SIZE", _TOPIC, total.sent_bytes, requests),
        ("TOPIC_PUT_NUMS", "ordered", 1, 1),
        ("TOPIC_PUT_SIZE", "ordered", len("x"), 1),
        ("BROKER_PUT_NUMS", "DefaultCluster", total.puts, requests + 1),
        ("GROUP_GET_NUMS", f"{_TOPIC}@{_GROUP}", len(by_g), 2),
        ("GROUP_GET_SIZE", f"{_TOPIC}@{_GROUP}", sum(by_g), 2),
        ("GROUP_GET_NUMS", f"{_TOPIC}@h", len(total.by_h), 2),
        ("GROUP_GET_SIZE", f"{_TOPIC}@h", sum(total.by_h), 2),
        ("BROKER_GET_NUMS", "DefaultCluster", total.got, 5),
    ):
        answer = await site.ask("VIEW_BROKER_STATS_DATA", statsName=name, statsKey=key)
        shown = java_values.read(answer.body)
        for window in ("statsMinute", "statsHour", "statsDay"):
            there = not (is_past and window == "statsMinute")
            expected = (amount, amount / times) if there else (0, 0.0)
            observed = (shown[window]["sum"], shown[window]["avgpt"])
            site.compare(f"the sum and average of {name} {key} in {window}", expected, observed)
            tps, seconds = shown[window]["tps"], (site.now_ms - began_ms) / 1000
            close = not there or 0.5 < tps * seconds / amount < 1.5
            site.compare(
                f"whether the rate {tps} of {name} {key} is about {amount} in {seconds} s", True, close
            )
            site.compare(f"whether {name} has a rate", there, tps > 0)
    for name, key in (("TOPIC_PUT_NUMS", "unknown"), ("UNKNOWN", _TOPIC), ("GROUP_GET_NUMS", _TOPIC)):
        await site.ask("VIEW_BROKER_STATS_DATA", expects=1, statsName=name, statsKey=key)
    site.compare("the pulled messages", len(by_g), sum(map(len, found.values())))


async def _progress(site: Site, found: Mapping[int, list[StoredRecord]]) -> None:
    """Commit offsets of two groups, and compare every table about them."""
    await commit(site, _GROUP, _TOPIC, 0, 2)
    await commit(site, _GROUP, _TOPIC, 1, 5)
    await commit(site, "h", _TOPIC, 0, 1)
    await commit(site, "h", "ordered", 0, 1)
    stats = java_values.read((await site.ask("GET_CONSUME_STATS", consumerGroup=_GROUP, topic=_TOPIC)).body)
    pulled = {0: 3, 1: 3 + _BATCH}
    expected = {
        queue: (len(found[queue]), offset, found[queue][offset - 1].store_ms, max(offset, pulled[queue]))
        for queue, offset in ((0, 2), (1, 5))
    }
    site.compare("the progress", expected, _shown(stats, _TOPIC))
    every = java_values.read((await site.ask("GET_CONSUME_STATS", consumerGroup="h")).body)
    site.compare("the topics of h", {_TOPIC, "ordered"}, {dict(key)["topic"] for key in every["offsetTable"]})
    for is_order, topics, behind in (
        (False, {_GROUP: 1, "h": 1}, 1 + 1 + 2 + 3 + _BATCH),
        (True, {"h": 1}, 0),
    ):
        listed = java_values.read((await site.ask("GET_BROKER_CONSUME_STATS", isOrder=is_order)).body)
        site.compare("the address of all progress", str(site.broker), listed["brokerAddr"])
        counted = {
            group: len(stats) for each in listed["consumeStatsList"] for group, stats in each.items() if stats
        }
        site.compare(f"the topics of each group, ordered {is_order}", topics, counted)
        site.compare(f"the total difference, ordered {is_order}", behind, listed["totalDiff"])
    await _by_time(site, [each.store_ms for each in found[0]])
    await _of_offsets(site, found)
    await _of_members(site)


def _shown(stats: Mapping[str, Any], topic: str) -> dict[int, tuple[int, int, int, int]]:
    return {
        dict(key)["queueId"]: (
            each["brokerOffset"], each["consumerOffset"], each["lastTimestamp"], each["pullOffset"],
        )
        for key, each in stats["offsetTable"].items()
        if dict(key)["topic"] == topic and dict(key)["brokerName"] == "broker-a"
    }  # fmt: skip


async def _by_time(site: Site, times: list[int]) -> None:
    """Search by times around each message: the nearest, the first not before, and the last not after."""
    middle = (times[0] + times[1]) // 2
    around = [ms + shift for ms in times for shift in (-1, 0, 1)]
    for asked in (0, *around, middle, middle + 1, times[-1] + 10_000):
        later = [at for at, ms in enumerate(times) if ms >= asked]
        before = [at for at, ms in enumerate(times) if ms <= asked]
        nearest = min(range(len(times)), key=lambda at: abs(times[at] - asked))
        for boundary, expected in (
            (None, nearest), ("LOWER", [*later, len(times)][0]), ("UPPER", [0, *before][-1]),
            ("upper", [0, *before][-1]),
        ):  # fmt: skip
            answer = await site.ask(
                "SEARCH_OFFSET_BY_TIMESTAMP", topic=_TOPIC, queueId=0, timestamp=asked, boundaryType=boundary
            )
            what = f"the offset at {asked - times[0]} ms, {boundary}"
            site.compare(what, str(expected), answer.fields.get("offset"))


async def _of_offsets(site: Site, found: Mapping[int, list[StoredRecord]]) -> None:
    for left_out, expected in ((None, {0: 1, 1: 5}), ("h", {0: 2, 1: 5}), ("h, g", {}), ("x", {0: 1, 1: 5})):
        answer = await site.ask(
            "QUERY_CORRECTION_OFFSET", topic=_TOPIC, compareGroup="idle", filterGroups=left_out
        )
        table = {int(key): each for key, each in java_values.read(answer.body)["correctionOffsets"].items()}
        site.compare(f"the least offsets without {left_out}", expected, table)
    for group, topics in ((_GROUP, [_TOPIC]), ("h", ["ordered", _TOPIC]), ("idle", [])):
        body = java_values.read((await site.ask("QUERY_TOPICS_BY_CONSUMER", group=group)).body)
        site.compare(f"the topics of {group}", topics, body["topicList"])
    for topic, groups in ((_TOPIC, [_GROUP, "h"]), ("ordered", ["h"])):
        body = java_values.read((await site.ask("QUERY_TOPIC_CONSUME_BY_WHO", topic=topic)).body)
        site.compare(f"the groups of {topic}", groups, body["groupList"])
    spans = java_values.read((await site.ask("QUERY_CONSUME_TIME_SPAN", topic=_TOPIC, group=_GROUP)).body)
    for span in spans["consumeTimeSpanSet"]:
        queue = span["messageQueue"]["queueId"]
        times, offset = [each.store_ms for each in found[queue]], {0: 2, 1: 5}[queue]
        shown = (span["minTimeStamp"], span["maxTimeStamp"], span["consumeTimeStamp"])
        site.compare(f"the times of queue {queue}", (times[0], times[-1], times[offset - 1]), shown)
        site.compare(f"the delay of queue {queue}", site.now_ms - times[offset], span["delayTime"])
    for index, count, wanted in ((0, 9, range(3)), (1, 1, range(1, 2)), (2, 0, range(0)), (1, -1, range(0))):
        answer = await site.ask("QUERY_CONSUME_QUEUE", topic=_TOPIC, queueId=0, index=index, count=count)
        body = java_values.read(answer.body)
        entries = [(each["physicOffset"], each["physicSize"], each["tagsCode"]) for each in body["queueData"]]
        stored = [found[0][at] for at in wanted]
        expected_entries = [
            (each.commit_offset, len(each.raw), java_hash(each.properties["TAGS"])) for each in stored
        ]
        site.compare(f"the entries from {index}, {count}", expected_entries, entries)
        site.compare("the extent", (0, 3), (body["minQueueIndex"], body["maxQueueIndex"]))
    for index in (3, -1):
        answer = await site.ask("QUERY_CONSUME_QUEUE", topic=_TOPIC, queueId=0, index=index, count=1)
        site.compare("the body beyond the queue", (b"", True), (answer.body, bool(answer.remark)))
    await site.ask("QUERY_CONSUME_QUEUE", expects=1, topic="ordered", queueId=7, index=0, count=1)


async def _of_members(site: Site) -> None:
    """Compare what administrators see of connected clients."""
    line = await site.client("member")
    wanted = subscription(_TOPIC, "tag1 || tag2", 5)
    await beat(site, "member@1", _GROUP, [wanted], by=line, producers=("p1", "p2"))
    body = java_values.read((await site.ask("GET_CONSUMER_CONNECTION_LIST", consumerGroup=_GROUP)).body)
    connection = {
        "clientAddr": line.address, "clientId": "member@1", "language": "PYTHON", "version": 409,
    }  # fmt: skip
    site.compare("the connections", [connection], body["connectionSet"])
    settings = (body["consumeType"], body["messageModel"], body["consumeFromWhere"])
    site.compare("the settings", ("CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET"), settings)
    shown = body["subscriptionTable"][_TOPIC]
    kept = ("topic", "subString", "subVersion", "expressionType", "classFilterMode")
    site.compare("the subscription", [wanted[name] for name in kept], [shown[name] for name in kept])
    site.compare("the tags", ["tag1", "tag2"], sorted(shown["tagsSet"]))
    one = java_values.read(
        (await site.ask("QUERY_SUBSCRIPTION_BY_CONSUMER", group=_GROUP, topic=_TOPIC)).body
    )
    site.compare("the queried subscription", (_GROUP, _TOPIC), (one["group"], one["topic"]))
    site.compare("its expression", "tag1 || tag2", one["subscriptionData"]["subString"])
    none = java_values.read((await site.ask("QUERY_SUBSCRIPTION_BY_CONSUMER", group="h", topic=_TOPIC)).body)
    site.compare("the subscription of no member", None, none.get("subscriptionData"))
    entries = java_values.read((await site.ask(
        "QUERY_CONSUME_QUEUE", topic=_TOPIC, queueId=0, index=0, count=1, consumerGroup=_GROUP
    )).body)  # fmt: skip
    site.compare("the expression with entries", "tag1 || tag2", entries["subscriptionData"]["subString"])
    stats = java_values.read(
        (await site.ask("GET_CONSUME_STATS", consumerGroup=_GROUP, topic="ordered")).body
    )
    site.compare("the progress in another topic", {}, stats["offsetTable"])
    for group in ("p1", "p2"):
        body = java_values.read((await site.ask("GET_PRODUCER_CONNECTION_LIST", producerGroup=group)).body)
        site.compare(f"the connections of {group}", [connection], body["connectionSet"])
    await site.ask("GET_PRODUCER_CONNECTION_LIST", expects=1, producerGroup="p3")
    await site.ask("GET_CONSUMER_CONNECTION_LIST", expects=206, consumerGroup="h")
    every = java_values.read((await site.ask("GET_ALL_PRODUCER_INFO")).body)["data"]
    site.compare("the producer groups", ["p1", "p2"], sorted(every))
    shown_ids = {group: [each["clientId"] for each in listed] for group, listed in every.items()}
    site.compare("their clients", {"p1": ["member@1"], "p2": ["member@1"]}, shown_ids)
    listed = java_values.read((await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup=_GROUP)).body)
    site.compare("the members", ["member@1"], listed["consumerIdList"])
    await site.ask("GET_CONSUMER_LIST_BY_GROUP", expects=1, consumerGroup="h")
    other = await site.client("other")
    await beat(site, "other@1", _GROUP, [wanted], by=other, producers=("p1",))
    await asyncio.sleep(1)
    site.compare("the members are notified", [40, 40], [each.code for each in line.pushed])
    await site.ask(
        "UNREGISTER_CLIENT", by=line, clientID="member@1", consumerGroup=_GROUP, producerGroup="p1"
    )
    body = java_values.read((await site.ask("GET_PRODUCER_CONNECTION_LIST", producerGroup="p1")).body)
    site.compare("the producers left", ["other@1"], [each["clientId"] for each in body["connectionSet"]])
    other.close()
    await asyncio.sleep(1)
    await site.ask("GET_CONSUMER_LIST_BY_GROUP", expects=1, consumerGroup=_GROUP)
    await site.ask("GET_PRODUCER_CONNECTION_LIST", expects=1, producerGroup="p1")
    await asyncio.sleep(140)
    await site.ask("GET_PRODUCER_CONNECTION_LIST", expects=1, producerGroup="p2")


STATISTICS: Final = Inspection("statistics", counts)
