"""What a broker has at its first start, what it creates by itself, and what it does about missing tables.

See docs/reference/protocol/sending.md, "Topics", storing.md, "Configuration files", and groups.md.
"""

import asyncio
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import commit, make_group, make_topic, pull, send
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.store.errors import StoreError

_CLUSTER, _BROKER = "c1", "broker-a"
_BUSY, _UNKNOWN_TOPIC, _UNKNOWN_GROUP, _REFUSED, _AGAIN = 2, 17, 26, 1, 20
_BUILT_IN: Final = {
    "SELF_TEST_TOPIC": (1, 6), _CLUSTER: (16, 7), _BROKER: (1, 7), "OFFSET_MOVED_EVENT": (1, 6),
    "SCHEDULE_TOPIC_XXXX": (18, 6), "BenchmarkTest": (1024, 6), f"{_CLUSTER}_REPLY_TOPIC": (1, 6),
    "RMQ_SYS_TRACE_TOPIC": (1, 6), "TBW102": (3, 7),
}  # fmt: skip
"""The queues and the permissions of the topics that exist from the first start."""
_NEVER: Final = (
    *_BUILT_IN, "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC",
    "rmq_sys_wheel_timer", "rmq_sys_anything",
)  # fmt: skip
"""The topics that no administrator creates, changes or deletes."""
_SYSTEM_GROUPS: Final = (
    "CID_RMQ_SYS_x", "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",
)  # fmt: skip
_TABLES: Final = ("topics", "subscriptionGroup", "consumerOffset", "delayOffset")
_GROUPS_MAX: Final = 12


async def first_start(site: Site) -> None:
    site.rule = chapters.TOPICS
    disk = site.cluster.machines[MASTER].disk
    for name in _TABLES:
        site.compare(f"whether {name}.json exists", True, disk.exists(f"/store/config/{name}.json"))
    site.compare("the topics of a new broker", _BUILT_IN, await _topics(site))
    system = java_values.read((await site.ask("GET_SYSTEM_TOPIC_LIST_FROM_BROKER")).body)["topicList"]
    expected = {*_BUILT_IN, *(name for name in _NEVER if not name.startswith("rmq_sys"))}
    site.compare("the system topics", expected, set(system))
    for name in _NEVER:
        await make_topic(site, name, expects=_REFUSED)
        await site.ask("DELETE_TOPIC_IN_BROKER", topic=name, expects=_REFUSED)
    site.compare("the topics after refused requests", _BUILT_IN, await _topics(site))
    await _created(site)
    await _automatic_groups(site)
    await _examined_pulls(site)
    await _missing_tables(site)


async def _topics(site: Site) -> dict[str, tuple[int, int]]:
    table = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"]
    for name, each in table.items():
        site.compare(f"the write queues of {name}", each["readQueueNums"], each["writeQueueNums"])
        site.compare(f"the name of {name}", name, each["topicName"])
    return {name: (each["readQueueNums"], each["perm"]) for name, each in table.items()}


async def _created(site: Site) -> None:
    """A send creates its topic with the queues that it asks for, at least one, at most the template's."""
    for template, asked, queues in (
        ("TBW102", 0, 1), ("TBW102", -5, 1), ("TBW102", 1, 1), ("TBW102", 3, 3), ("TBW102", 4, 3),
        (_CLUSTER, 9, 9), (_CLUSTER, 17, 16), ("BenchmarkTest", 1, None), ("absent", 1, None),
    ):  # fmt: skip
        name = f"of_{template}_{asked}"
        await send(site, name, c=template, d=asked, expects=0 if queues else _UNKNOWN_TOPIC)
        found = (await _topics(site)).get(name)
        site.compare(f"the topic like {template} with {asked} queues", queues and (queues, 6), found)
    await send(site, "%RETRY%new", c="absent", d=8)
    site.compare("the retry topic of a send", (1, 6), (await _topics(site)).get("%RETRY%new"))


async def _automatic_groups(site: Site) -> None:
    """Without automatic creation only the system's groups exist; with it, up to the limit."""
    site.rule = chapters.SUBSCRIPTION_GROUPS
    await make_topic(site, "t", 3)
    await send(site, "t", "m", 2)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=false")
    for name in ("plain", "xCID_RMQ_SYS_", "CID_RMQ_SYS", "tools_consumer"):
        await _pull(site, name, _UNKNOWN_GROUP)
    for name in _SYSTEM_GROUPS:
        await _pull(site, name, 0)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=true")
    for number in range(_GROUPS_MAX - len(_SYSTEM_GROUPS) - 2):  # a send has named the group `new`
        await _pull(site, f"plain{number}", 0)
    await make_group(site, "made")
    for host in (HOST, "10.0.1.2", "10.0.1.3"):
        await pull(site, "t", 0, 2, group="more", expects=_BUSY, by=await site.client("other", host=host))
    await make_group(site, "more", expects=_BUSY)
    await _pull(site, "plain0", 0)
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="made")
    await _pull(site, "more", 0)
    table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)[
        "subscriptionGroupTable"
    ]
    site.compare("the number of groups", _GROUPS_MAX, len(table))
    made = table["more"]
    site.compare("an automatic group", (True, 16, 1), (
        made["consumeEnable"], made["retryMaxTimes"], made["retryQueueNums"]))  # fmt: skip


async def _pull(site: Site, group: str, code: int) -> None:
    await pull(site, "t", 0, 2, group=group, expects=code)


async def _examined_pulls(site: Site) -> None:
    """A held pull that selects nothing of what arrives ends when it is examined, every 5 s."""
    site.rule = chapters.PULL_REQUESTS
    line = await site.client("holds")
    ended_s = []
    for number in range(3):
        end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
        asked = asyncio.ensure_future(pull(
            site, "t", end, group="more", by=line, sysFlag=2 | 4, suspendTimeoutMillis=15_000,
            subscription="other", expects=_AGAIN,
        ))  # fmt: skip
        await asyncio.sleep(0.5)
        await send(site, "t", f"{number}", of={"TAGS": "tag"})
        answer = await asked
        site.compare("the next offset", str(end + 1), answer.fields.get("nextBeginOffset"))
        ended_s.append(site.cluster.now_s)
    pauses = [round(later - earlier, 2) for earlier, later in pairwise(ended_s)]
    site.compare("the pauses between examinations", [5.0, 5.0], pauses)


async def _missing_tables(site: Site) -> None:
    """Lost topics are rebuilt from the queues; without another table the broker does not start."""
    site.rule = chapters.CONFIGURATION_FILES
    await commit(site, "more", "t", 2, 1)
    disk = site.cluster.machines[MASTER].disk
    for name in _TABLES[1:]:
        path = f"/store/config/{name}.json"
        await site.cluster.stop(MASTER)
        content = disk.written(path).rstrip(b"\0")
        for bad in (None, b"", b'{"a', b"[]", b"7"):
            for each in (path, f"{path}.bak"):
                if disk.exists(each):
                    disk.lose(each)
                if bad is not None:
                    site.write_file(MASTER, each, bad.decode())
            await _does_not_start(site, f"{name} is {bad!r}")
        site.write_file(MASTER, path, content.decode())
        await site.cluster.start(MASTER)
    for text in (None, '{"a'):
        await _rebuilt(site, text)
    await _pull(site, "more", 0)
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="more", topic="t", queueId=2)
    site.compare("the offset after all that", "1", answer.fields.get("offset"))


async def _rebuilt(site: Site, bad: str | None) -> None:
    """Lose the file of the topics and its backup, or write others; compare the topics after a start."""
    await site.cluster.stop(MASTER)
    disk = site.cluster.machines[MASTER].disk
    for each in ("/store/config/topics.json", "/store/config/topics.json.bak"):
        disk.lose(each)
        if bad is not None:
            site.write_file(MASTER, each, bad)
    try:
        await site.cluster.start(MASTER)
    except StoreError as error:
        site.report(f"the broker does not start without its topics: {error}")
    rebuilt = {"t": (3, 6), "%RETRY%new": (1, 6), "of_TBW102_3": (1, 6)}
    found = await _topics(site)
    site.compare(f"the topics rebuilt for {bad}", rebuilt, {name: found.get(name) for name in rebuilt})


async def _does_not_start(site: Site, what: str) -> None:
    try:
        await site.cluster.start(MASTER)
    except StoreError:
        return
    site.report(f"the broker starts although {what}")
    await site.cluster.stop(MASTER)


_SETTINGS: Final[dict[str, Any]] = {
    "cluster": _CLUSTER, "trace_topic": True, "default_topic_queues": 3, "groups_max": _GROUPS_MAX,
}  # fmt: skip
FIRST_START: Final = Inspection("first start", first_start, _SETTINGS)
