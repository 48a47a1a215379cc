"""Single requests of administrators: the limits of topics and groups, lists, resets, and what a broker shows.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
    subscription,
)
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.disk import Space

_QUEUES_MAX: Final = 1024
_GIB: Final = 1 << 30
_OWN: Final = {"+own": "1"}
_TOPICS_FILE: Final = "/store/config/topics.json"
_GROUPS_FILE: Final = "/store/config/subscriptionGroup.json"
_TOPIC_OF_FILE: Final = {
    "topicName": "of_file", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6,
    "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False, "attributes": {"kind": "kept/\u00e4"},
}  # fmt: skip
_GROUP_OF_FILE: Final = {"groupName": "of_file", "retryMaxTimes": 3, "attributes": {"kind": "kept/\u00e4"}}
_VERSION: Final = {"counter": 1, "timestamp": 1}


async def admin_cases(site: Site) -> None:
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    await _topics(site)
    await _groups(site)
    await _attributes(site)
    await _texts(site)
    await _modes(site)
    await _resets(site)
    await _clones(site)
    await _shown(site)
    await _creation(site)


async def _version(site: Site, name: str) -> int:
    return int(java_values.read((await site.ask(name)).body)["dataVersion"]["counter"])


async def _topics(site: Site) -> None:
    """Numbers of queues and permissions at their limits; names of the system; lists, of which all count."""
    table = "GET_ALL_TOPIC_CONFIG"
    for read, write, code in (
        (1, 0, 0), (1, 1, 0), (0, 1, 1), (-1, 1, 1), (1, -1, 1), (_QUEUES_MAX, 0, 0), (1, _QUEUES_MAX, 0),
        (_QUEUES_MAX + 1, 1, 1), (1, _QUEUES_MAX + 1, 1), (_QUEUES_MAX + 1, 0, 1), (0, 0, 1),
    ):  # fmt: skip
        before = await _version(site, table)
        await make_topic(site, "t", 1, readQueueNums=read, writeQueueNums=write, expects=code)
        site.compare(f"the new versions for {read} and {write} queues", int(not code), (
            await _version(site, table)) - before)  # fmt: skip
        if not code:
            shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic="t")).body)
            site.compare("the queues", (read, write), (shown["readQueueNums"], shown["writeQueueNums"]))
    for permission, code in ((-1, 1), (0, 0), (7, 0), (8, 1)):
        await make_topic(site, "t", perm=permission, expects=code)
    await make_topic(site, "t", topicSysFlag=None)
    shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic="t")).body)
    site.compare("the topic", {
        "topicName": "t", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "order": False,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0,
    }, {key: value for key, value in shown.items() if key != "attributes"})  # fmt: skip
    own = ["broker-a", "DefaultCluster", "DefaultCluster_REPLY_TOPIC"]
    listed = java_values.read((await site.ask("GET_SYSTEM_TOPIC_LIST_FROM_BROKER")).body)["topicList"]
    site.compare("whether the system's topics have those of the broker", set(), {*own, *_SYSTEM} - {*listed})
    for name in (*own, *_SYSTEM, "rmq_sys_any", ""):
        await site.ask("DELETE_TOPIC_IN_BROKER", topic=name, expects=1)
        await make_topic(site, name, expects=1)
    for name in ("broker-a_REPLY_TOPIC", "rmq_sy", "Xrmq_sys_", "TBW103"):
        await make_topic(site, name)
        await site.ask("DELETE_TOPIC_IN_BROKER", topic=name)
        await site.ask("GET_TOPIC_CONFIG", topic=name, expects=17)
    for wrong in ({"perm": 9}, {"topicName": "TBW102"}, {"readQueueNums": 0}, {"topicFilterType": "X"}):
        good = {**_TOPIC_OF_FILE, "topicName": "listed"}
        body = {"topicConfigList": [good, {**good, "topicName": "other", **wrong}]}
        await site.ask("UPDATE_AND_CREATE_TOPIC_LIST", body, expects=1)
        await site.ask("GET_TOPIC_CONFIG", topic="listed", expects=17)


_SYSTEM: Final = (
    "TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
)  # fmt: skip


async def _groups(site: Site) -> None:
    """Numbers of retry queues at their limits; versions; lists, of which all count."""
    table = "GET_ALL_SUBSCRIPTIONGROUP_CONFIG"
    for queues, code in ((0, 0), (1, 0), (-1, 1), (_QUEUES_MAX, 0), (_QUEUES_MAX + 1, 1)):
        before = await _version(site, table)
        for times in (1, 0):
            await make_group(site, "g", retryQueueNums=queues, expects=code)
            grown = await _version(site, table) - before
            site.compare(f"the new versions for {queues} retry queues", int(not code), grown)
            before += grown - (0 if code else times)
    for wrong in ({"groupName": "a b"}, {"retryQueueNums": -1}, {"groupName": ""}):
        body = {"groupConfigList": [{"groupName": "listed"}, {"groupName": "other", **wrong}]}
        await site.ask("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", body, expects=1)
        await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="listed", expects=26)
    body = {"groupConfigList": [{"groupName": name, "retryMaxTimes": 7} for name in ("l1", "l2")]}
    await site.ask("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", body)
    for name in ("l1", "l2"):
        shown = java_values.read((await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group=name)).body)
        keys = ("groupName", "retryMaxTimes", "consumeEnable", "retryQueueNums")
        site.compare("a listed group", (name, 7, True, 1), tuple(shown[key] for key in keys))
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="unknown")


async def _attributes(site: Site) -> None:
    """Attributes of 5.x in the files stay as they are, whatever a change says about them."""
    changes: tuple[tuple[str, Any], ...] = (
        ("UPDATE_AND_CREATE_TOPIC_LIST", {"topicConfigList": [{**_TOPIC_OF_FILE, "attributes": _OWN,
                                                               "perm": 4}]}),
        ("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", {**_GROUP_OF_FILE, "attributes": _OWN, "retryMaxTimes": 9}),
        ("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", {"groupConfigList": [{**_GROUP_OF_FILE, "attributes": {},
                                                                           "retryMaxTimes": 8}]}),
    )  # fmt: skip
    await make_topic(site, "of_file", 2)
    await make_topic(site, "without", 2)
    for name, body in (("", None), *changes):
        if name:
            await site.ask(name, body)
        topic = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic="of_file")).body)
        group = java_values.read((await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="of_file")).body)
        kept = {"kind": "kept/\u00e4"}
        site.compare(f"the attributes after {name}", (kept, kept), (topic["attributes"], group["attributes"]))
    site.compare("the permissions of the topic", 4, topic["perm"])
    site.compare("the retries of the group", 8, group["retryMaxTimes"])
    other = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic="without")).body)
    site.compare("the attributes of a new topic", None, other.get("attributes") or None)


async def _texts(site: Site) -> None:
    """Tables whose keys are texts are strictly standard JSON, whatever the names."""
    site.rule = chapters.JSON_BODIES
    line = await site.client("of strange names")
    expression = subscription("t", "a = '/\u00e4'", 1, "SQL92")
    await beat(site, "a/\u00e4", "texts", [expression], by=line, producers=("p/\u00e4",))
    requests: tuple[tuple[str, dict[str, Any]], ...] = (
        ("GET_TOPIC_CONFIG", {"topic": "of_file"}), ("GET_ALL_TOPIC_CONFIG", {}),
        ("GET_SUBSCRIPTIONGROUP_CONFIG", {"group": "of_file"}), ("GET_ALL_SUBSCRIPTIONGROUP_CONFIG", {}),
        ("GET_PRODUCER_CONNECTION_LIST", {"producerGroup": "p/\u00e4"}), ("GET_ALL_PRODUCER_INFO", {}),
        ("GET_CONSUMER_CONNECTION_LIST", {"consumerGroup": "texts"}), ("GET_BROKER_RUNTIME_INFO", {}),
        ("GET_CONSUMER_LIST_BY_GROUP", {"consumerGroup": "texts"}), ("GET_BROKER_HA_STATUS", {}),
        ("GET_ALL_CONSUMER_OFFSET", {}),
    )  # fmt: skip
    for name, fields in requests:
        answer = await site.ask(name, **fields)
        expected = java_values.standard(json.loads(answer.body))
        site.compare(f"whether the text of {name} is standard", expected, answer.body)
    line.close()


async def _modes(site: Site) -> None:
    """Every group pulls: the mode PULL is accepted, and no other."""
    for mode, code in (("PULL", 0), ("POP", 1), ("pull", 1), (None, 0)):
        body = {"consumerGroup": "g", "topic": "t", "popShareQueueNum": 0, **({"mode": mode} if mode else {})}
        answer = await site.ask("SET_MESSAGE_REQUEST_MODE", body, expects=code)
        site.compare("whether the refusal names the mode", bool(code), str(mode) in (answer.remark or ""))
    body = java_values.read((await site.ask("GET_ALL_MESSAGE_REQUEST_MODE")).body)
    site.compare("the modes", {"messageRequestModeMap": {}}, body)


async def _resets(site: Site) -> None:
    """A reset names all write queues, or one; what it computes, and what it commits."""
    site.rule = chapters.ADMINISTRATION_OF_OFFSETS
    await make_topic(site, "r", 3, writeQueueNums=2)
    await make_group(site, "g", retryQueueNums=1)
    for number in range(4):
        await send(site, "r", f"{number}", number % 2)
        await asyncio.sleep(1)
    line = await site.client("member")
    await beat(site, "m@1", "g", [subscription("r")], by=line)
    asked: dict[str, Any] = {"topic": "r", "group": "g", "timestamp": -1, "isForce": True}
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=1, **asked)
    await commit(site, "g", "r", 0, 1)
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=1, **asked)
    await commit(site, "g", "r", 1, 0)
    second = (await records(site, "r", 1, 0))[0].store_ms
    for fields, offsets, committed in (
        ({}, {0: 2, 1: 2}, (1, 0)), ({"queueId": -1}, {0: 2, 1: 2}, (1, 0)),
        ({"queueId": -1, "offset": 1}, {0: 2, 1: 2}, (1, 0)), ({"isForce": False}, {0: 1, 1: 0}, (1, 0)),
        ({"timestamp": second}, {0: 1, 1: 0}, (1, 0)), ({"timestamp": second + 900}, {0: 1, 1: 1}, (1, 0)),
        ({"queueId": 1}, {1: 2}, (1, 2)), ({"queueId": 1, "offset": 1}, {1: 1}, (1, 1)),
        ({"queueId": 1, "timestamp": 0}, {1: 0}, (1, 0)), ({"queueId": 0, "offset": 2}, {0: 2}, (2, 0)),
        ({"queueId": 0, "offset": -1, "timestamp": 0}, {0: 0}, (0, 0)),
    ):  # fmt: skip
        line.pushed.clear()
        answer = await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **{**asked, **fields})
        await asyncio.sleep(0.1)
        (pushed,) = line.pushed
        for body in (answer.body, pushed.body):
            shown = {dict(key)["queueId"]: at for key, at in java_values.read(body)["offsetTable"].items()}
            site.compare(f"the offsets of a reset with {fields}", offsets, shown)
        found = [
            (await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="r", queueId=queue))
            .fields.get("offset")
            for queue in (0, 1)
        ]  # fmt: skip
        site.compare(f"the committed offsets after a reset with {fields}", [*map(str, committed)], found)
    for wrong in ({"queueId": 2}, {"queueId": 0, "offset": 3}, {"topic": "unknown"}, {"queueId": -2}):
        await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=1, **{**asked, **wrong})
    line.close()
    await asyncio.sleep(0.1)
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=206, **asked)
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **{**asked, "queueId": 0, "offset": 1})
    await _forward_only(site)


async def _forward_only(site: Site) -> None:
    """A commit that may only increase the offset never decreases it, and sets one that is missing."""
    site.rule = chapters.OFFSET_REQUESTS
    await make_group(site, "f")
    for offset, forward, expected in (
        (1, True, 1), (2, True, 2), (1, True, 2), (0, True, 2), (2, True, 2), (1, False, 1), (0, None, 0),
        (3, True, 3),
    ):  # fmt: skip
        await site.ask("UPDATE_CONSUMER_OFFSET", consumerGroup="f", topic="r", queueId=2, commitOffset=offset,
                       onlyForward=forward)  # fmt: skip
        answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="f", topic="r", queueId=2)
        site.compare(f"the offset after {offset}, {forward}", str(expected), answer.fields.get("offset"))
    for code, fields in (
        (1, {"queueId": 3}), (1, {"queueId": -1}), (17, {"topic": "unknown"}), (1, {"consumerGroup": "a b"}),
        (1, {"commitOffset": -1}),
    ):  # fmt: skip
        given: dict[str, Any] = {
            "consumerGroup": "f",
            "topic": "r",
            "queueId": 0,
            "commitOffset": 1,
            **fields,
        }
        await site.ask("UPDATE_CONSUMER_OFFSET", expects=code, **given)


async def _clones(site: Site) -> None:
    """A clone of one topic leaves the others; one of all topics takes those of the source."""
    site.rule = chapters.ADMINISTRATION_OF_OFFSETS
    for topic in ("c1", "c2", "c3"):
        await make_topic(site, topic, 2)
    for group, topic, queue, offset in (
        ("from", "c1", 0, 1), ("from", "c2", 1, 2), ("to", "c1", 1, 9), ("to", "c3", 0, 5),
    ):  # fmt: skip
        await commit(site, group, topic, queue, offset)
    for of, expected in (
        ("c1", {"c1": {"0": 1}, "c3": {"0": 5}}), (None, {"c1": {"0": 1}, "c2": {"1": 2}, "c3": {"0": 5}}),
    ):  # fmt: skip
        await site.ask("CLONE_GROUP_OFFSET", srcGroup="from", destGroup="to", topic=of, offline=False)
        table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
        shown = {
            key.removesuffix("@to"): {str(queue): at for queue, at in each.items()}
            for key, each in table.items()
            if key.endswith("@to")
        }
        site.compare(f"the offsets after a clone of {of}", expected, shown)
    await site.ask("CLONE_GROUP_OFFSET", srcGroup="from", destGroup="a b", offline=False, expects=1)
    await site.ask("CLONE_GROUP_OFFSET", srcGroup="none", destGroup="to", topic="c1", offline=False)


async def _shown(site: Site) -> None:
    """The values of the broker that depend on its disk, its delayed messages, and its clients."""
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    await make_topic(site, "d")
    for level in ("1", "1", "2", "3"):
        await send(site, "d", of={"DELAY": level})
    await asyncio.sleep(2)
    disk, room = site.cluster.machines[MASTER].disk, site.cluster.machines[MASTER].disk.room
    disk.room = Space(50 * _GIB, 30 * _GIB)
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    disk.room = room
    for name, value in (
        ("commitLogDirCapacity", "Total : 50.0 GiB, Free : 30.0 GiB."), ("commitLogDiskRatio", "0.4"),
        ("consumeQueueDiskRatio", "0.4"), ("scheduleMessageOffset_1", "2,2"), ("brokerVersion", "409"),
        ("brokerVersionDesc", "V4_9_8"), ("queryThreadPoolQueueCapacity", "0"),
        ("EndTransactionQueueSize", "0"),
        ("EndTransactionThreadPoolQueueCapacity", "0"), ("pullThreadPoolQueueHeadWaitTimeMills", "0"),
        ("queryThreadPoolQueueHeadWaitTimeMills", "0"),
    ):  # fmt: skip
        site.compare(f"{name} of the runtime info", value, table.get(name))
    site.compare("the boot", True, 0 < site.now_ms - int(table["bootTimestamp"]) < 600_000)
    shown = java_values.read((await site.ask("GET_ALL_DELAY_OFFSET")).body)["offsetTable"]
    site.compare("the delivered levels", {"1": 2}, {str(level): at for level, at in shown.items() if at})
    await asyncio.sleep(10)
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    delayed = {name[-1]: table[name] for name in table if name.startswith("scheduleMessageOffset_")}
    site.compare("the levels", {"1": "2,2", "2": "1,1", "3": "1,1"}, {
        level: text for level, text in delayed.items() if not text.startswith("0,")})  # fmt: skip
    await pull(site, "d", 0)


async def _creation(site: Site) -> None:
    """A broker that began without automatic creation has no template until creation is on."""
    site.rule = chapters.TOPICS
    await site.ask("GET_TOPIC_CONFIG", topic="TBW102", expects=17)
    await send(site, "created", expects=17)
    await site.ask("UPDATE_BROKER_CONFIG", "traceOn=false")
    await site.ask("GET_TOPIC_CONFIG", topic="TBW102", expects=17)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateTopicEnable=true")
    shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic="TBW102")).body)
    site.compare("the template", (5, 5, 7), tuple(
        shown[key] for key in ("readQueueNums", "writeQueueNums", "perm")))  # fmt: skip
    await send(site, "created", d=9)
    shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic="created")).body)
    site.compare("the topic made of it", (5, 5, 6), tuple(
        shown[key] for key in ("readQueueNums", "writeQueueNums", "perm")))  # fmt: skip


ADMIN_CASES: Final = Inspection(
    "cases of administrators", admin_cases, {"auto_create_topics": False, "default_topic_queues": 5},
    files={
        _TOPICS_FILE: json.dumps({"topicConfigTable": {"of_file": _TOPIC_OF_FILE}, "dataVersion": _VERSION}),
        _GROUPS_FILE: json.dumps(
            {"subscriptionGroupTable": {"of_file": _GROUP_OF_FILE}, "dataVersion": _VERSION}
        ),
    },
)  # fmt: skip
