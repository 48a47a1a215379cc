"""Producers and administrators: each limit of names, numbers and sizes, batches, and the topics that result.

See docs/reference/protocol/sending.md, administration.md, and offsets.md.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    commit,
    make_group,
    make_topic,
    records,
    send,
)
from mqproof.conformance.wire import chapters

_OF_THE_BROKER: Final = ("CLUSTER", "MSG_REGION", "TRACE_ON")
_NAME: Final = "n" * 127
_SYSTEM: Final = (
    "TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_anything", "broker-a", "DefaultCluster",
    "DefaultCluster_REPLY_TOPIC",
)  # fmt: skip


async def topics(site: Site) -> None:
    """Create and change topics and groups at their limits; compare every table about them."""
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    for name in (_NAME, "a%|b-_9", "t"):
        await make_topic(site, name)
    for name in (f"{_NAME}n", "a b", "", "ä", *_SYSTEM):
        await make_topic(site, name, expects=1)
    version = await _version(site)
    for fields, expects in (
        ({"readQueueNums": 1024, "writeQueueNums": 1024}, 0),
        ({"readQueueNums": 1025}, 1),
        ({"writeQueueNums": 1025}, 1),
        ({"perm": 7}, 0),
        ({"perm": 8}, 1),
        ({"perm": 0}, 0),
        ({"topicFilterType": "MULTI_TAG"}, 0),
        ({"topicFilterType": "OTHER"}, 1),
        ({"order": True, "topicSysFlag": 3}, 0),
    ):
        await make_topic(site, "t", 2, expects=expects, **fields)
        await _shows_topic(site, "t", fields if not expects else None)
        version += not expects
        site.compare(f"the version after {fields}", version, await _version(site))
    await make_topic(site, "t", 2, order=True, topicSysFlag=3)
    site.compare("the version after no change", version, await _version(site))
    listed = [_settings("l1", 3), _settings("l2", 4)]
    await site.ask("UPDATE_AND_CREATE_TOPIC_LIST", {"topicConfigList": listed})
    for each in listed:
        await _shows_topic(
            site, each["topicName"], {"readQueueNums": each["readQueueNums"], "writeQueueNums": 4}
        )
    system = java_values.read((await site.ask("GET_SYSTEM_TOPIC_LIST_FROM_BROKER")).body)["topicList"]
    site.compare("whether the system's topics have TBW102", True, "TBW102" in system and "t" not in system)
    await site.ask("GET_TOPIC_CONFIG", expects=17, topic="unknown")
    for name in ("t", "unknown"):
        await site.ask("DELETE_TOPIC_IN_BROKER", topic=name)
    await site.ask("GET_TOPIC_CONFIG", expects=17, topic="t")
    await _groups(site)


def _settings(name: str, queues: int) -> dict[str, Any]:
    return {
        "topicName": name, "readQueueNums": queues, "writeQueueNums": 4, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
    }  # fmt: skip


async def _version(site: Site) -> int:
    body = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)
    return int(body["dataVersion"]["counter"])


async def _shows_topic(site: Site, name: str, fields: dict[str, Any] | None) -> None:
    shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic=name)).body)
    table = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"]
    for key, value in (fields or {}).items():
        site.compare(f"{key} of {name}", value, shown[key])
        site.compare(f"{key} of {name} in the table", value, table[name][key])
    site.compare("the name of the topic", name, shown["topicName"])


async def _groups(site: Site) -> None:
    for name, expects in (("g" * 120, 0), ("g" * 121, 1), ("", 1), ("a b", 1), ("g", 0)):
        await make_group(site, name, expects=expects)
    changes = {
        "consumeEnable": False, "consumeFromMinEnable": False, "consumeBroadcastEnable": False,
        "retryQueueNums": 3, "retryMaxTimes": 5, "brokerId": 2, "whichBrokerWhenConsumeSlowly": 4,
        "notifyConsumerIdsChangedEnable": False,
    }  # fmt: skip
    for key, value in changes.items():
        await make_group(site, "g", **{key: value})
        shown = java_values.read((await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="g")).body)
        table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
        in_table = table["subscriptionGroupTable"]["g"]
        site.compare(f"{key} of the group", (value, value), (shown[key], in_table[key]))
    await site.restart()
    table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
    last = {**dict.fromkeys(changes, True), "retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0}
    last |= {"whichBrokerWhenConsumeSlowly": 1, "notifyConsumerIdsChangedEnable": False}
    shown = table["subscriptionGroupTable"]["g"]
    site.compare("the group after a restart", last, {key: shown[key] for key in last})
    await make_topic(site, "t")
    await commit(site, "g", "t", 0, 0)
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="g")
    table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
    site.compare("whether the group is deleted", False, "g" in table["subscriptionGroupTable"])
    await _deleted_offsets(site)


async def _deleted_offsets(site: Site) -> None:
    """A deletion of a topic removes its offsets; that of a group does if the request says so."""
    site.rule = chapters.CONSUMER_OFFSETS
    for topic in ("t", "u"):
        await make_topic(site, topic)
    for group in ("h", "i", "j"):
        await make_group(site, group)
        for topic in ("t", "u"):
            await commit(site, group, topic, 0, 0)
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="h", removeOffset=True)
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="i", cleanOffset=True)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="u")
    for _ in range(2):
        table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
        site.compare("the offsets after deletions", {"t@g", "t@j"}, set(table))
        await site.restart()


async def messages(site: Site) -> None:
    """Send at each limit; pull what was stored, and compare the fields."""
    site.rule = chapters.SEND_REQUESTS
    await make_topic(site, "t", 2)
    await make_topic(site, "ordered", order=True)
    await site.ask("UPDATE_BROKER_CONFIG", "maxMessageSize=1000")
    room = 32767 - len("k\x01\x02")
    for expects, fields in (
        (0, {"body": "x" * 1000}),
        (13, {"body": "x" * 1001}),
        (0, {"of": {"k": "v" * 1000}}),
        (13, {"of": {"k": "v" * (room + 1)}}),
        (1, {"queue": 2}),
        (0, {"queue": 1}),
        (16, {"topic": "SCHEDULE_TOPIC_XXXX"}),
        (16, {"topic": "RMQ_SYS_TRANS_HALF_TOPIC"}),
        (1, {"topic": "a b"}),
        (17, {"topic": "new", "c": "unknown template"}),
        (0, {"topic": "new", "d": 2}),
        (0, {"topic": "big", "d": 100}),
        (0, {"topic": "N" * 127}),
        (1, {"topic": "N" * 128}),
        (16, {"f": 4}),
        (0, {"queue": -1}),
    ):
        given: dict[str, Any] = {"topic": "t", "expects": expects, **fields}
        await send(site, **given)
    for name, queues in (("new", 2), ("big", 8)):
        shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic=name)).body)
        site.compare(f"the queues of {name}", (queues, queues, 6), (
            shown["readQueueNums"], shown["writeQueueNums"], shown["perm"]))  # fmt: skip
    await _batches(site)
    for key, topic, code in (
        ("autoCreateTopicEnable=false", "another", 17), ("brokerPermission=4", "t", 0),
        ("brokerPermission=4", "ordered", 16), ("brokerPermission=6", "ordered", 0),
        ("rejectTransactionMessage=true", "t", 0),
    ):  # fmt: skip
        await site.ask("UPDATE_BROKER_CONFIG", key)
        await send(site, topic, expects=code)
        await site.ask("UPDATE_BROKER_CONFIG", "autoCreateTopicEnable=true\nbrokerPermission=6")
    half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "k"}
    await send(site, "t", f=4, of=half, expects=16)
    await site.ask("UPDATE_BROKER_CONFIG", "rejectTransactionMessage=false")
    await _halves(site, half)
    await _timed(site)


async def _batches(site: Site) -> None:
    """The messages of a batch have their own flags and properties, and those of the header."""
    site.rule = chapters.BATCHES
    before = len(await records(site, "t", 0, 1))
    own: list[tuple[bytes, int, Mapping[str, str]]] = [
        (b"one", 11, {"TAGS": "a", "own": "1", "WAIT": "false"}),
        (b"", 12, {}),
        (b"three", -1, {"KEYS": "k", "both": "own"}),
    ]
    common = {"both": "all", "common": "c"}
    answer = await send(site, "t", batch(own), 1, name="SEND_BATCH_MESSAGE", h=99, of=common)

    site.compare("the ids of a batch", 3, len(answer.fields.get("msgId", "").split(",")))
    site.compare("the offset of a batch", str(before), answer.fields.get("queueOffset"))
    found = (await records(site, "t", 0, 1))[before:]
    for (body, flag, values), record in zip(own, found, strict=True):
        kept = {key: each for key, each in record.properties.items() if key not in _OF_THE_BROKER}
        expected = {key: each for key, each in {**common, **values}.items() if key != "WAIT"}
        site.compare("a message of a batch", (body, flag, expected), (record.body, record.flag, kept))
    refused: list[tuple[str, Mapping[str, str]]] = [
        ("t", {"DELAY": "1"}),
        ("t", {"TIMER_DELAY_SEC": "1"}),
        ("%RETRY%g", {}),
    ]
    for topic, values in refused:
        await send(site, topic, batch([(b"x", 0, values)]), name="SEND_BATCH_MESSAGE", expects=13)
    for wrong in (batch(own)[:-1], b"\0\0\0\4", b""):
        await send(site, "t", wrong, name="SEND_BATCH_MESSAGE", expects=13)
    site.compare("the messages after refused batches", before + 3, len(await records(site, "t", 0, 1)))


async def _halves(site: Site, half: dict[str, str]) -> None:
    site.rule = chapters.HALF_MESSAGES
    for expects, fields in (
        (13, {"of": {name: value for name, value in half.items() if name != "UNIQ_KEY"}}),
        (13, {"of": {name: value for name, value in half.items() if name != "PGROUP"}}),
        (13, {"of": {**half, "TIMER_DELAY_SEC": "1"}}),
        (13, {"of": {**half, "TRAN_MSG": "True", "UNIQ_KEY": ""}, "f": 0}),
        (16, {"of": half, "f": 8}),
        (16, {"of": half, "f": 12}),
        (16, {"of": {**half, "TRAN_MSG": "no"}}),
        (13, {"of": half, "topic": "%RETRY%g", "f": 0}),
        (13, {"of": half, "name": "SEND_BATCH_MESSAGE", "body": batch([(b"x", 0, {})])}),
    ):
        given: dict[str, Any] = {"topic": "t", "f": 4, "expects": expects, **fields}
        await send(site, **given)
    before = len(await records(site, "t"))
    for key, flag, grows in (("k1", 8, 1), ("k2", 12, 0)):
        answer = await send(site, "t", "half", f=4, of={**half, "UNIQ_KEY": key})
        site.compare("the transaction id", key, answer.fields.get("transactionId"))
        place = int(answer.fields["msgId"][-16:], 16)
        end: dict[str, Any] = {
            "producerGroup": "p", "tranStateTableOffset": answer.fields["queueOffset"],
            "commitLogOffset": place, "commitOrRollback": flag, "msgId": key, "transactionId": key,
            "fromTransactionCheck": False,
        }  # fmt: skip
        for name, wrong in (
            ("producerGroup", "q"),
            ("msgId", "other"),
            ("commitLogOffset", place + 1),
            ("tranStateTableOffset", 77),
        ):
            await site.ask("END_TRANSACTION", expects=1, **{**end, name: wrong})
        await site.ask("END_TRANSACTION", **end)
        await asyncio.sleep(0.1)
        found = await records(site, "t")
        site.compare(f"the messages after end {flag}", before + grows, len(found))
        before = len(await records(site, "t"))


async def _timed(site: Site) -> None:
    """A message may ask for any time up to the longest delay, and no later one."""
    site.rule = chapters.TIMERS
    await site.ask("UPDATE_BROKER_CONFIG", "timerMaxDelaySec=100")
    now = site.now_ms
    for name, value, expects in (
        ("TIMER_DELAY_SEC", "100", 0), ("TIMER_DELAY_SEC", "101", 13), ("TIMER_DELAY_MS", "100000", 0),
        ("TIMER_DELAY_MS", "100001", 13), ("TIMER_DELIVER_MS", str(now + 100_000), 0),
        ("TIMER_DELIVER_MS", str(now + 100_500), 13), ("TIMER_DELAY_SEC", "x", 13),
    ):  # fmt: skip
        await send(site, "t", "later", of={name: value}, expects=expects)
    before = len(await records(site, "t"))
    await asyncio.sleep(99)
    site.compare("the messages before the time", before, len(await records(site, "t")))
    await asyncio.sleep(4)
    site.compare("the messages after the time", before + 3, len(await records(site, "t")))
    await site.ask("UPDATE_BROKER_CONFIG", "timerWheelEnable=false")
    await send(site, "t", of={"TIMER_DELAY_SEC": "1"}, expects=1)


TOPICS: Final = Inspection("topics and groups", topics)
MESSAGES: Final = Inspection("messages", messages, {"default_topic_queues": 8})
