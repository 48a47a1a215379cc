"""Topics that are deleted and created again, across restarts, crashes and a lost end of the log.

See docs/reference/protocol/recovery.md, "Deleted topics", and replication.md, "Deletions of topics".
"""

import asyncio
import json
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.kept_messages import CLUSTER, flushed
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.store_damages import LOG, QUEUES, SMALL
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.store.config import FlushMode

_FILE: Final = "/store/config/deletedTopics.json"
_HOUR_US: Final = 3_600_000_000
_COPIED_S: Final = 25
"""Longer than two pauses between copies of the tables."""
_OFFSETS: Final = ("GET_MIN_OFFSET", "GET_MAX_OFFSET")


def _table(disk: SimulatedDisk) -> dict[str, int]:
    if _FILE not in disk.files("/store/config"):
        return {}
    table: dict[str, Any] = json.loads(disk.written(_FILE))
    return {name: at for name, at in table.items() if name != "mqproofSeal"}


def _end(site: Site) -> int:
    last = log_of(site)[-1]
    return last.commit_offset + len(last.raw)


async def _send(site: Site, topic: str, name: str, count: int) -> None:
    for number in range(count):
        values = {"KEYS": f"{name}{number} {topic}"}
        await send(site, topic, f"{name}{number}", number % 2, of=values)


async def _found(site: Site, topic: str, queue: int, to: Address | None = None) -> list[StoredRecord]:
    answer = await pull(site, topic, 0, queue, expects=None, by=await site.client(to=to))
    return list(read_records(answer.body)) if not answer.code else []


async def _same(
    site: Site, what: str, expected: dict[str, tuple[str, int]], to: Address | None = None
) -> None:
    """Compare all messages of each topic with those that were sent: a name and a count."""
    for topic, (name, count) in expected.items():
        for queue in (0, 1):
            bodies = [f"{name}{number}".encode() for number in range(queue, count, 2)]
            found = await _found(site, topic, queue, to)
            site.compare(f"{what}: the messages of {topic} {queue}", bodies, [each.body for each in found])
            offsets = [each.queue_offset for each in found]
            site.compare(f"{what}: the offsets of {topic} {queue}", list(range(len(bodies))), offsets)
            shown = [
                int((await site.ask(each, to=to, topic=topic, queueId=queue)).fields["offset"])
                for each in _OFFSETS
            ]
            site.compare(f"{what}: the first and next offset of {topic} {queue}", [0, len(bodies)], shown)
        for number in (0, count - 1) if count else ():
            answer = await site.ask(
                "QUERY_MESSAGE", to=to, topic=topic, key=f"{name}{number}", maxNum=32, beginTimestamp=0,
                endTimestamp=1 << 60,
            )  # fmt: skip
            found = list(read_records(answer.body))
            site.compare(f"{what}: {name}{number} by its key", [f"{name}{number}".encode()], [
                each.body for each in found])  # fmt: skip
            await site.ask("VIEW_MESSAGE_BY_ID", to=to, offset=found[0].commit_offset)


async def deletions(site: Site) -> None:
    """Delete and create a topic again, and lose the end of the log between."""
    site.rule = chapters.RECOVERY
    site.watch.judges_answers = False  # the answers contradict each other after each deletion
    disk = site.cluster.machines[MASTER].disk
    for topic in ("t", "o", "empty"):
        await make_topic(site, topic, 2)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="empty")
    site.compare("the deletions of an empty topic", {}, _table(disk))
    await _send(site, "o", "other", 3)
    await _send(site, "t", "old", 12)
    await flushed()
    await _crashed(site)
    disk = site.cluster.machines[MASTER].disk
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    site.compare("the deletions", {"t": _end(site)}, _table(disk))
    site.compare("the files of the queues", [], disk.files(f"{QUEUES}/t"))
    await make_topic(site, "t", 2)
    await _same(site, "a new topic", {"t": ("", 0), "o": ("other", 3)})
    await _send(site, "t", "new", 5)
    expected = {"t": ("new", 5), "o": ("other", 3)}
    await _same(site, "a topic that was created again", expected)
    for killed in (True, False, True):
        await site.restart(killed=killed)
        await _same(site, f"after a restart, killed: {killed}", expected)
    await flushed()
    await site.lose_power()
    await _same(site, "after a power loss", expected)
    await _lost_end(site)


async def _crashed(site: Site) -> None:
    """Crash before each step of a deletion: the topic is still whole, or it is deleted."""
    machine = site.cluster.machines[MASTER]
    disk, copies = machine.disk, list[SimulatedDisk]()

    def keep(_: Step) -> None:
        copies.append(disk.copy())

    disk.on_step = keep
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    disk.on_step = None
    site.cluster.kill(MASTER)
    states = set()
    for number in {0, 1, *range(2, len(copies), 3), len(copies) - 1}:
        crashed, is_dark = copies[number].copy(), bool(number % 2)
        if is_dark:
            crashed.lose_power()
        else:
            crashed.crash_process()
        site.replace_disk(crashed)
        site.watch.judges_answers = False
        await site.cluster.start(MASTER)
        await asyncio.sleep(1)
        states.add(await _is_there(site, f"a crash at step {number}, of the machine: {is_dark}"))
        await site.cluster.stop(MASTER)
    site.compare("whether crashes were before and after the deletion", {True, False}, states)
    kept = copies[0]
    kept.crash_process()
    site.replace_disk(kept)
    site.watch.judges_answers = False
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)


async def _is_there(site: Site, what: str) -> bool:
    """Return whether the topic has its messages; delete it again and create it anew."""
    await make_topic(site, "t", 2)
    found = await _found(site, "t", 0)
    is_there = bool(found)
    await _same(site, what, {"t": ("old", 12) if is_there else ("", 0), "o": ("other", 3)})
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    await make_topic(site, "t", 2)
    await _send(site, "t", "again", 3)
    await site.restart(killed=True)
    await _same(site, f"{what}, created again", {"t": ("again", 3), "o": ("other", 3)})
    return is_there


async def _lost_end(site: Site) -> None:
    """A crash takes the end of the log after a deletion: messages at the same positions are new ones."""
    disk = site.cluster.machines[MASTER].disk
    end = _end(site)
    await _send(site, "t", "lost", 9)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    site.compare("the deletions beyond the durable end", _end(site), _table(disk)["t"])
    await site.lose_power()
    site.compare("the end after a power loss", end, _end(site))
    site.compare("the deletions after a power loss", {"t": end}, _table(disk))
    await make_topic(site, "t", 2)
    await _send(site, "t", "kept", 6)
    expected = {"t": ("kept", 6), "o": ("other", 3)}
    await _same(site, "after a lost end", expected)
    record = (await _found(site, "t", 0))[0]
    await make_group(site, "g")
    await site.ask(
        "CONSUMER_SEND_MSG_BACK", offset=record.commit_offset, group="g", delayLevel=0, originMsgId="m",
        originTopic="t", unitMode=False,
    )  # fmt: skip
    await site.restart(killed=True)
    await _same(site, "after a lost end and a restart", expected)
    await _expired(site, disk)


async def _expired(site: Site, disk: SimulatedDisk) -> None:
    """A deletion whose records have expired leaves the file with the next deletion."""
    for hours in (0, 80):
        site.machine_clock_add(hours * _HOUR_US)
        for _ in range(12):
            await send(site, "o", "x" * 600)
    await flushed()
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    await asyncio.sleep(1)
    begin = int(disk.files(LOG)[0].rpartition("/")[2])
    site.compare("whether the deleted records are gone", True, begin > _table(disk)["t"])
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="o")
    site.compare("the deletions at last", {"o": _end(site)}, _table(disk))


async def deletions_at_slave(site: Site) -> None:
    """A slave that is there, or not, when a topic is deleted and created again."""
    site.rule = chapters.REPLICATION
    site.watch.judges_answers = False
    at = Address(site.cluster.machines[SLAVE].host, site.broker.port)
    for topic in ("t", "o"):
        await make_topic(site, topic, 2)
    await _send(site, "o", "other", 3)
    await _send(site, "t", "old", 6)
    expected = {"t": ("old", 6), "o": ("other", 3)}
    await _both(site, "at first", expected, at)
    for name, is_there, count in (("second", True, 4), ("third", False, 3), ("fourth", True, 9)):
        if not is_there:
            await site.cluster.stop(SLAVE)
        await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
        await make_topic(site, "t", 2)
        await _send(site, "t", name, count)
        await site.cluster.start(SLAVE)
        await _both(site, name, {**expected, "t": (name, count)}, at)
        table = _table(site.cluster.machines[SLAVE].disk)
        site.compare(f"{name}: the deletions at the slave", _table(site.cluster.machines[MASTER].disk), table)
        site.cluster.kill(SLAVE)
        await site.cluster.start(SLAVE)
        await _both(site, f"{name}, after a kill", {**expected, "t": (name, count)}, at)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    await asyncio.sleep(_COPIED_S)
    slave = site.cluster.machines[SLAVE].disk
    site.compare("the queues of a deleted topic at the slave", [], slave.files(f"{QUEUES}/t"))
    await _killed_between(site, at)


async def _killed_between(site: Site, at: Address) -> None:
    """A slave is killed after it has records of the new topic, and before it learns of the deletion."""
    await make_topic(site, "t", 2)
    await _send(site, "t", "fifth", 9)
    await asyncio.sleep(_COPIED_S)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    await make_topic(site, "t", 2)
    await _send(site, "t", "sixth", 4)
    await asyncio.sleep(0.3)
    site.cluster.kill(SLAVE)
    site.hang_up()
    await site.cluster.stop(MASTER)
    await site.cluster.start(SLAVE)
    await asyncio.sleep(1)
    for queue in (0, 1):
        bodies = [f"sixth{number}".encode() for number in range(queue, 4, 2)]
        found = [each.body for each in await _found(site, "t", queue, at)]
        site.compare(f"the messages of {queue} at a slave that was killed", bodies, found)
    await site.cluster.start(MASTER)
    await _both(site, "the sixth", {"t": ("sixth", 4), "o": ("other", 3)}, at)


async def _both(site: Site, what: str, expected: dict[str, tuple[str, int]], at: Address) -> None:
    await asyncio.sleep(_COPIED_S)
    for name, to in (("master", site.broker), ("slave", at)):
        await _same(site, f"{what}, at the {name}", expected, to)


_OPTIONS: Final = {"store": replace(SMALL, delete_when_hours=()), "cluster": CLUSTER}
_PAIR: Final = ReplicationConfig(Role.ASYNC_MASTER)
DELETIONS: Final = Inspection("deletions", deletions, _OPTIONS)
DELETIONS_AT_SLAVE: Final = Inspection(
    "deletions at a slave", deletions_at_slave, _OPTIONS, replication=_PAIR
)
DELETIONS_AT_SYNC_SLAVE: Final = Inspection(
    "deletions at a flushed slave",
    deletions_at_slave,
    _OPTIONS,
    replication=_PAIR,
    flush=FlushMode.SYNC_FLUSH,
)
