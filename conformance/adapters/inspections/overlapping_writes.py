"""Requests that arrive while the disk is busy with an earlier write: nothing of them is lost.

See docs/reference/protocol/storing.md, "Flush" and "Configuration files".
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import Answer
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, in_bytes, written
from mqproof.conformance.adapters.inspections.traffic import (
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
)
from mqproof.conformance.hosts.simulated import MASTER, NAME_SERVERS, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.config import FlushMode

T = TypeVar("T")
_NAMESPACE: Final = "a namespace"
_LATE_S: Final = 6
"""Longer than the pause between two writes of the consumer offsets, and between two checkpoints."""


class _LateDisk:
    """Runs each blocking call of a process at once, and returns from it when an inspection says so."""

    def __init__(self) -> None:
        self.is_late = False
        self._late: deque[Callable[[], None]] = deque()

    def __call__(self, function: Callable[[], T]) -> Awaitable[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not done.done():
                done.set_result(result)

        try:
            result = function()
        except BaseException as error:
            done.set_exception(error)
            return done
        if self.is_late:
            self._late.append(end)
        else:
            asyncio.get_running_loop().call_soon(end)
        return done

    def return_one(self) -> None:
        """Return from the oldest call."""
        if self._late:
            self._late.popleft()()

    def return_all(self) -> None:
        self.is_late = False
        while self._late:
            self.return_one()


async def _put(
    site: Site, name: str, by: str, body: Any = b"", to: Address | None = None, **fields: Any
) -> Answer:
    """Send a request on a connection of its own; return its answer as a future."""
    line = await site.client(by, to=to)
    given = {key: written(value) for key, value in fields.items() if value is not None}
    waiting = line.put(CODES[name], given, in_bytes(body))
    await asyncio.sleep(0.05)
    return waiting


async def overlapping_tables(site: Site) -> None:
    """Change each table of a broker and of a name server twice while the first change is written."""
    site.rule = chapters.CONFIGURATION_FILES
    await make_topic(site, "t", 2)
    for group in ("g", "h"):
        await make_group(site, group)
    await _offsets(site)
    await _tables(site)
    await _values(site)


async def _offsets(site: Site) -> None:
    """An offset that is committed while the file is written reaches the file, too."""
    await asyncio.sleep(_LATE_S)
    fsync = site.cluster.machines[MASTER].fsync
    for killed in (True, False):
        for first, second in ((3, 9), (9, 4)):
            await commit(site, "g", "t", 0, first)
            fsync.hold()
            await asyncio.sleep(_LATE_S)
            await commit(site, "g", "t", 0, second)
            await commit(site, "h", "t", 1, second)
            fsync.release()
            if killed:
                await asyncio.sleep(_LATE_S)
            await site.restart(killed=killed)
            for group, queue in (("g", 0), ("h", 1)):
                answer = await site.ask(
                    "QUERY_CONSUMER_OFFSET", consumerGroup=group, topic="t", queueId=queue
                )
                site.compare(
                    f"the offset of {group} after {first}, {second}", str(second), answer.fields["offset"]
                )


def _topic(name: str, queues: int) -> dict[str, Any]:
    return {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
    }  # fmt: skip


def _group(name: str, times: int) -> dict[str, Any]:
    return {
        "groupName": name, "consumeEnable": True, "consumeFromMinEnable": True, "brokerId": 0,
        "consumeBroadcastEnable": True, "retryQueueNums": 1, "retryMaxTimes": times,
        "whichBrokerWhenConsumeSlowly": 1, "notifyConsumerIdsChangedEnable": True,
    }  # fmt: skip


async def _tables(site: Site) -> None:
    """Topics, groups and settings that are changed at once are all kept."""
    await make_topic(site, "gone")
    await make_group(site, "gone")
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    waiting = [
        await _put(site, "UPDATE_AND_CREATE_TOPIC", "a", **_topic("one", 3)),
        await _put(site, "UPDATE_AND_CREATE_TOPIC", "b", **_topic("two", 4)),
        await _put(site, "UPDATE_AND_CREATE_TOPIC", "c", **_topic("t", 5)),
        await _put(site, "DELETE_TOPIC_IN_BROKER", "d", topic="gone"),
        await _put(site, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "e", _group("one", 3)),
        await _put(site, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "f", _group("two", 4)),
        await _put(site, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "h", _group("g", 5)),
        await _put(site, "DELETE_SUBSCRIPTIONGROUP", "i", groupName="gone"),
    ]
    await asyncio.sleep(1)
    site.compare("the changes that are answered before they are written", [], [
        number for number, each in enumerate(waiting) if each.done()])  # fmt: skip
    fsync.release()
    site.compare("the answers to the changes", [0] * len(waiting), [(await each).code for each in waiting])
    for times in range(2):
        topics = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"]
        groups = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
        found = {name: each["readQueueNums"] for name, each in topics.items() if name in _NAMES}
        site.compare(f"the topics after {times} restarts", {"one": 3, "two": 4, "t": 5}, found)
        rows = groups["subscriptionGroupTable"].items()
        found = {name: each["retryMaxTimes"] for name, each in rows if name in _NAMES}
        site.compare(f"the groups after {times} restarts", {"one": 3, "two": 4, "g": 5}, found)
        await site.restart(killed=True)


_NAMES: Final = ("one", "two", "t", "g", "gone")


async def _values(site: Site) -> None:
    """Values that are put and deleted at once in one namespace of a name server are all kept."""
    site.rule = chapters.NAME_SERVER
    node, to = NAME_SERVERS[0], site.name_server
    fsync = site.cluster.machines[node].fsync
    for space, names in ((_NAMESPACE, ("a", "b", "c")), (_NAMESPACE, ("d", "e"))):
        fsync.hold()
        waiting = [
            await _put(
                site, "PUT_KV_CONFIG", f"kv {name}", to=to, namespace=space, key=name, value=f"of {name}"
            )
            for name in names
        ]
        if names[0] == "d":
            waiting.append(await _put(site, "DELETE_KV_CONFIG", "kv", to=to, namespace=space, key="a"))
        waiting.append(
            await _put(site, "PUT_KV_CONFIG", "kv other", to=to, namespace="other", key="k", value=names[0])
        )
        await asyncio.sleep(1)
        fsync.release()
        site.compare("the answers to the values", [0] * len(waiting), [(await each).code for each in waiting])
    for times in range(2):
        for space, expected in (
            (_NAMESPACE, {name: f"of {name}" for name in ("b", "c", "d", "e")}), ("other", {"k": "d"}),
        ):  # fmt: skip
            answer = await site.ask("GET_KVLIST_BY_NAMESPACE", to=to, namespace=space)
            found = java_values.read(answer.body)["table"]
            site.compare(f"the values of {space} after {times} restarts", expected, found)
        site.cluster.kill(node)
        site.hang_up()
        await site.cluster.start(node)
        await asyncio.sleep(1)


async def late_flushes(site: Site) -> None:
    """A message that arrives during an fsync waits for the next one, and is not delivered before."""
    site.rule = chapters.DURABILITY
    disk = _LateDisk()
    site.cluster.machines[MASTER].fsync = disk  # type: ignore[assignment]
    await site.restart()
    await make_topic(site, "t", 2)
    await make_group(site, "g")
    await send(site, "t", "0")
    await asyncio.sleep(_LATE_S)
    disk.is_late = True
    fields = {**_FIELDS, "g": site.now_ms}
    first = await _put(site, "SEND_MESSAGE_V2", "first", b"1", **fields)
    second = await _put(site, "SEND_MESSAGE_V2", "second", b"2", **fields)
    third = await _put(site, "SEND_MESSAGE_V2", "third", b"3", **{**fields, "i": "WAIT\x01false\x02"})
    site.compare("the answers during an fsync", (False, False, True), _done(first, second, third))
    await _visible(site, "during an fsync", 1)
    disk.return_one()
    await asyncio.sleep(0.05)
    site.compare("the answers after it", (True, False, True), _done(first, second, third))
    await _visible(site, "after it", 2)
    disk.return_one()
    await asyncio.sleep(0.05)
    site.compare("the answers after the next one", (True, True, True), _done(first, second, third))
    await _visible(site, "after the next one", 4)
    offsets = [(await each).fields["queueOffset"] for each in (first, second, third)]
    site.compare("the offsets", ["1", "2", "3"], offsets)
    disk.return_all()
    await _deleted(site, disk)
    site.forget()
    await site.lose_power()
    site.compare("the messages after a power loss", 4, len(await records(site, "t")))
    site.compare("the messages of the new topic", [b"5"], [each.body for each in await records(site, "u")])


async def _deleted(site: Site, disk: _LateDisk) -> None:
    """A topic is deleted while its only message waits for an fsync: the message is one of the old topic."""
    await make_topic(site, "u")
    disk.is_late = True
    waiting = await _put(site, "SEND_MESSAGE_V2", "fourth", b"4", **{**_FIELDS, "b": "u", "g": site.now_ms})
    deleted = await _put(site, "DELETE_TOPIC_IN_BROKER", "fifth", topic="u")
    disk.return_all()
    site.compare("the answers", (0, 0), ((await waiting).code, (await deleted).code))
    site.forget()
    await make_topic(site, "u")
    answer = await site.ask("GET_MAX_OFFSET", topic="u", queueId=0)
    site.compare("the highest offset of a new topic", "0", answer.fields["offset"])
    answer = await send(site, "u", "5")
    site.compare("the offset of the first message", "0", answer.fields["queueOffset"])
    site.compare("its message", [b"5"], [each.body for each in await records(site, "u")])


def _done(*answers: Answer) -> tuple[bool, ...]:
    return tuple(each.done() for each in answers)


async def _visible(site: Site, when: str, count: int) -> None:
    found = [each.body for each in await records(site, "t")]
    site.compare(f"the messages {when}", [str(each).encode() for each in range(count)], found)
    answer = await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)
    site.compare(f"the highest offset {when}", str(count), answer.fields["offset"])
    await pull(site, "t", count, expects=19)


_FIELDS: Final[dict[str, Any]] = {
    "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "h": 0, "i": "", "j": 0, "k": False,
    "m": False,
}  # fmt: skip
_SLOW: Final = replace(STORE, flush_queues_interval_ms=600_000, checkpoint_interval_ms=600_000,
                       clean_interval_ms=600_000)  # fmt: skip
OVERLAPPING_TABLES: Final = Inspection("overlapping writes", overlapping_tables)
LATE_FLUSHES: Final = Inspection("late flushes", late_flushes, {"store": _SLOW}, flush=FlushMode.SYNC_FLUSH)
