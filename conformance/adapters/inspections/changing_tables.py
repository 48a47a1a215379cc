"""Tables that change while they are written, or whose write fails: each end of a broker keeps the changes.

See docs/reference/protocol/storing.md, "Configuration files", and offsets.md, "Consumer offsets".
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import Step

_TOPIC, _GROUP = "t", "g"
_BROKEN: Final = "the disk is broken"
_MS: Final = 1000
"""The pause between two writes of a table."""
_WRITTEN_S: Final = 1.2


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that is written periodically, whose changes are numbered from 1."""

    file: str
    change: Callable[[Site, int], Awaitable[object]]
    """Make the change of that number; it takes effect before it is written."""
    shown: Callable[[Site], Awaitable[object]]
    expected: Callable[[int], object]
    """Return what is shown after that many changes."""


async def _commit(site: Site, number: int) -> None:
    await commit(site, _GROUP, _TOPIC, 0, number)


async def _offset(site: Site) -> object:
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup=_GROUP, topic=_TOPIC, queueId=0)
    return answer.fields.get("offset")


async def _new_group(site: Site, number: int) -> None:
    await pull(site, _TOPIC, group=f"new{number}", expects=None)


async def _groups(site: Site) -> object:
    table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
    return {name for name in table["subscriptionGroupTable"] if name.startswith("new")}


async def _expression(site: Site, number: int) -> None:
    line = await site.client("member")
    await beat(site, "member@1", _GROUP, [subscription(_TOPIC, f"a > {number}", number, "SQL92")], by=line)


async def _expressions(site: Site) -> object:
    table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
    return [(each["expression"], each["clientVersion"]) for each in table["filters"]]


async def _delayed(site: Site, number: int) -> None:
    await send(site, _TOPIC, f"{number}", of={"DELAY": "1"})
    await asyncio.sleep(1.1)


async def _deliveries(site: Site) -> object:
    table = java_values.read((await site.ask("GET_ALL_DELAY_OFFSET")).body)["offsetTable"]
    await asyncio.sleep(0.5)  # a message that does not count is delivered again
    return dict(table), len(queue_of(site, _TOPIC))


_TABLES: Final = (
    _Table("consumerOffset.json", _commit, _offset, str),
    _Table(
        "subscriptionGroup.json", _new_group, _groups, lambda count: {f"new{at + 1}" for at in range(count)}
    ),
    _Table("consumerFilter.json", _expression, _expressions, lambda count: [(f"a > {count}", count)]),
    _Table("delayOffset.json", _delayed, _deliveries, lambda count: ({1: count}, count)),
)


async def changing_tables(site: Site) -> None:
    """End a broker in each way after a change that its disk has not written; compare the tables then."""
    await make_topic(site, _TOPIC)
    await make_group(site, _GROUP)
    await beat(site, "member@1", _GROUP, [subscription(_TOPIC)], by=await site.client("member"))
    for table in _TABLES:
        site.rule = chapters.CONFIGURATION_FILES
        number = 0
        for name, end in _ENDS.items():
            await asyncio.sleep(_WRITTEN_S)
            number = await end(site, table, number)
            what = f"{table.file}, {name}"
            site.compare(what, table.expected(number), await table.shown(site))
    await _failing_deletions(site)
    await _deletions(site)
    await _at_once(site)


async def _stopped(site: Site, table: _Table, number: int) -> int:
    """Change the table while it is written; stop the broker when that write has ended."""
    await _changed_twice(site, table, number)
    site.cluster.machines[MASTER].fsync.release()
    await asyncio.sleep(0.1)
    await site.restart()
    return number + 2


async def _stopped_meanwhile(site: Site, table: _Table, number: int) -> int:
    """Stop the broker while it writes the table, without a further change."""
    site.cluster.machines[MASTER].fsync.hold()
    await table.change(site, number + 1)
    await asyncio.sleep(_WRITTEN_S)
    stopping = asyncio.ensure_future(site.cluster.stop(MASTER))
    await asyncio.sleep(0.2)
    site.cluster.machines[MASTER].fsync.release()
    await stopping
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    return number + 1


async def _killed(site: Site, table: _Table, number: int) -> int:
    """Kill the broker after the next periodic write."""
    await _changed_twice(site, table, number)
    site.cluster.machines[MASTER].fsync.release()
    await asyncio.sleep(2 * _WRITTEN_S)
    await site.restart(killed=True)
    return number + 2


async def _failed(site: Site, table: _Table, number: int) -> int:
    """Let the write fail; kill the broker after the next one, which does not fail."""
    _break(site, table.file)
    await table.change(site, number + 1)
    await asyncio.sleep(_WRITTEN_S)
    _mend(site)
    await asyncio.sleep(_WRITTEN_S)
    await site.restart(killed=True)
    return number + 1


async def _unchanged(site: Site, table: _Table, number: int) -> int:
    """Kill the broker while its disk is held, when everything is written."""
    before = site.cluster.machines[MASTER].disk.steps
    await asyncio.sleep(5)
    written = site.cluster.machines[MASTER].disk.steps - before
    site.compare(f"the writes of {table.file} without a change", 0, written)
    await site.restart(killed=True)
    return number


_ENDS: Final = {
    "changed while it is written, then stopped": _stopped,
    "changed, and stopped while it is written": _stopped_meanwhile,
    "changed while it is written, then killed": _killed,
    "changed while it cannot be written": _failed,
    "unchanged": _unchanged,
}


async def _changed_twice(site: Site, table: _Table, number: int) -> None:
    """Change the table, and once more while the first change is being written."""
    await table.change(site, number + 1)
    site.cluster.machines[MASTER].fsync.hold()
    await asyncio.sleep(_WRITTEN_S)
    await table.change(site, number + 2)


def _break(site: Site, file: str) -> None:
    """Let each write of the file fail."""

    def fail(step: Step) -> None:
        if file in step.path:
            raise OSError(errno.EIO, _BROKEN, step.path)

    site.cluster.machines[MASTER].disk.on_step = fail


def _mend(site: Site) -> None:
    site.cluster.machines[MASTER].disk.on_step = None
    site.watch.wrong = [each for each in site.watch.wrong if _BROKEN not in each.text]


async def _failing_deletions(site: Site) -> None:
    """What cannot be deleted on the disk still exists, also after a restart."""
    await make_topic(site, "kept")
    await make_group(site, "kept")
    await commit(site, "kept", "kept", 0, 0)
    _break(site, "/config/")
    await site.ask("DELETE_TOPIC_IN_BROKER", expects=1, topic="kept")
    await site.ask("DELETE_SUBSCRIPTIONGROUP", expects=1, groupName="kept")
    _mend(site)
    for _ in range(2):
        await site.ask("GET_TOPIC_CONFIG", topic="kept")
        await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="kept")
        await site.restart(killed=True)


async def _deletions(site: Site) -> None:
    """The offsets of a deleted topic or group are removed, and do not come back after a kill."""
    site.rule = chapters.CONSUMER_OFFSETS
    for name in ("left", "kept"):
        await make_topic(site, name)
        await make_group(site, name)
    for group in ("left", "kept"):
        for topic in ("left", "kept"):
            await commit(site, group, topic, 0, 0)
    await asyncio.sleep(_WRITTEN_S)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="left")
    await _pairs(site, {"kept@left", "kept@kept"})
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="left", cleanOffset=True)
    await _pairs(site, {"kept@kept"})


async def _pairs(site: Site, expected: set[str]) -> None:
    """Compare the topics and groups with offsets, now and after a kill."""
    for is_killed in (False, True):
        if is_killed:
            await asyncio.sleep(_WRITTEN_S)
            await site.restart(killed=True)
        table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
        site.compare("the offsets", expected, {key for key in table if "kept" in key or "left" in key})


async def _at_once(site: Site) -> None:
    """Changes that wait for one write take effect together when it ends, and are kept by a kill."""
    site.rule = chapters.TOPICS
    await make_topic(site, "old")
    await make_group(site, "old")
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    work: list[Any] = [
        make_topic(site, "one", 3), make_topic(site, "two", 2), make_topic(site, "two", 4),
        site.ask("DELETE_TOPIC_IN_BROKER", topic="old"), make_topic(site, _TOPIC, 5),
        make_group(site, "one", retryMaxTimes=7), make_group(site, "two"),
        make_group(site, "two", retryMaxTimes=9), site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="old"),
    ]  # fmt: skip
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.sleep(0.1)
    site.compare(
        "the changes that are answered before they are written", 0, sum(each.done() for each in tasks)
    )
    await _shown(site, {_TOPIC: 1, "old": 1, "one": None, "two": None}, {"old": 16, "one": None, "two": None})
    await _new_group(site, 100)
    fsync.release()
    await asyncio.gather(*tasks)
    for _ in range(2):
        await _shown(site, {_TOPIC: 5, "old": None, "one": 3, "two": 4}, {"old": None, "one": 7, "two": 9})
        await asyncio.sleep(_WRITTEN_S)
        await site.restart(killed=True)
    found = await _groups(site)
    site.compare("whether a group that was created meanwhile is kept", True, "new100" in str(found))


async def _shown(site: Site, topics: dict[str, int | None], groups: dict[str, int | None]) -> None:
    """Compare the queues of topics, and the retries of groups; None for one that does not exist."""
    table = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"]
    found = {name: table[name]["readQueueNums"] if name in table else None for name in topics}
    site.compare("the queues of the topics", topics, found)
    table = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
    known = table["subscriptionGroupTable"]
    retries = {name: known[name]["retryMaxTimes"] if name in known else None for name in groups}
    site.compare("the retries of the groups", groups, retries)


CHANGING_TABLES: Final = Inspection(
    "changing tables", changing_tables,
    {"property_filter": True, "offsets_flush_interval_ms": _MS, "delay_offsets_flush_interval_ms": _MS},
)  # fmt: skip
