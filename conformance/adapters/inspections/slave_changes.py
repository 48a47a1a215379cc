"""A slave whose own commits meet deletions, refusals and restarts, and which waits for deleted records.

See docs/reference/protocol/replication.md, "Metadata", and offsets.md, "Consumer offsets".
"""

import asyncio
import json
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.network import Address

_COPIED_S: Final = 25
"""Longer than two copies of the master's tables."""
_WRITTEN_S: Final = 2
_KEPT, _GONE = "kept", "gone"
_DELETED: Final = "/store/config/deletedTopics.json"
_BEYOND: Final = 100_000


async def slave_changes(site: Site) -> None:
    site.rule = chapters.CONSUMER_OFFSETS
    for topic in (_KEPT, _GONE):
        await make_topic(site, topic)
        await send(site, topic, "first")
    for group in ("g", "h", "zero"):
        await make_group(site, group)
    await asyncio.sleep(_COPIED_S)
    ports = site.broker, _second_port(site)
    bodies = [(await site.ask("GET_ALL_TOPIC_CONFIG", to=to)).body for to in ports]
    site.compare("the topics at the second port", bodies[0], bodies[1])
    await _deleted_meanwhile(site)
    await _refused(site)
    await _restarted(site)
    await _awaited(site)
    await _without_master(site)


async def _commit(site: Site, group: str, topic: str, offset: int, *, at_slave: bool = False) -> None:
    await site.ask(
        "UPDATE_CONSUMER_OFFSET", to=_slave(site) if at_slave else None, consumerGroup=group, topic=topic,
        queueId=0, commitOffset=offset,
    )  # fmt: skip


def _second_port(site: Site) -> Address:
    """Return the address at which slaves of released brokers ask for topics."""
    return Address(site.broker.host, site.broker.port - 2)


def _slave(site: Site) -> Address:
    return Address(site.cluster.machines[SLAVE].host, site.broker.port)


async def _offsets(site: Site, what: str, master: dict[str, int], slave: dict[str, int]) -> None:
    """Wait until the tables are copied; compare the offsets at both brokers, by `TOPIC@GROUP`."""
    await asyncio.sleep(_COPIED_S)
    for name, to, expected in (("master", site.broker, master), ("slave", _slave(site), slave)):
        table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET", to=to)).body)["offsetTable"]
        found = {key: next(iter(queues.values())) for key, queues in table.items() if queues}
        site.compare(f"the offsets of the {name} {what}", expected, found)


async def _deleted_meanwhile(site: Site) -> None:
    """An offset that the slave could not send is removed with its topic; later ones are copied."""
    await site.cluster.stop(MASTER)
    await _commit(site, "g", _GONE, 1, at_slave=True)
    await _commit(site, "h", _KEPT, 3, at_slave=True)
    await site.cluster.start(MASTER)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic=_GONE)
    expected = {f"{_KEPT}@h": 3}
    await _offsets(site, "after a deletion", expected, expected)
    await _commit(site, "h", _KEPT, 2)
    await _commit(site, "g", _KEPT, 1)
    expected = {f"{_KEPT}@h": 2, f"{_KEPT}@g": 1}
    await _offsets(site, "after further commits", expected, expected)


async def _refused(site: Site) -> None:
    """The offsets behind one that the master refuses still reach it."""
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=false")
    for group, offset in (("a", 7), ("h", 12), ("z", 8), ("zero", 0)):
        await _commit(site, group, _KEPT, offset, at_slave=True)
    known = {f"{_KEPT}@h": 12, f"{_KEPT}@g": 1, f"{_KEPT}@zero": 0}
    own = {f"{_KEPT}@a": 7, f"{_KEPT}@z": 8}
    await _offsets(site, "after refused ones", known, known | own)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=true")


async def _restarted(site: Site) -> None:
    """A restarted slave still knows that it has sent its offsets, and takes over lower ones."""
    for node in (SLAVE, MASTER):
        await asyncio.sleep(_WRITTEN_S)
        site.cluster.kill(node)
        await site.cluster.start(node)
    await _commit(site, "h", _KEPT, 1)
    known = {f"{_KEPT}@h": 1, f"{_KEPT}@g": 1, f"{_KEPT}@zero": 0}
    await _offsets(site, "after a restart and a reset", known, known | {f"{_KEPT}@a": 7, f"{_KEPT}@z": 8})


async def _awaited(site: Site) -> None:
    """A slave that waits for deleted records learns that its master lost them, before it follows."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    disk = site.cluster.machines[MASTER].disk
    at = json.loads(disk.written(_DELETED).rstrip(b"\0"))[_GONE]
    site.write_file(SLAVE, _DELETED, json.dumps({_GONE: at + _BEYOND}))
    await make_topic(site, _GONE)
    await send(site, _GONE, "again")
    await site.cluster.start(SLAVE)
    await asyncio.sleep(_COPIED_S)
    for to in (site.broker, _slave(site)):
        answer = await pull(site, _GONE, by=await site.client(to=to), expects=None)
        found = [each.body for each in read_records(answer.body)] if not answer.code else answer.code
        site.compare(f"the messages of a recreated topic at {to}", [b"again"], found)


async def slave_segments(site: Site) -> None:
    """A slave keeps the segments of delayed messages that are not due, and deletes those of others."""
    site.rule = chapters.DELAYED_MESSAGES
    await make_topic(site, _KEPT)
    for level in (1, 18):
        await asyncio.sleep(5)
        await send(site, _KEPT, f"level {level}", of={"DELAY": str(level)})
        waits = queue_of(site, "SCHEDULE_TOPIC_XXXX", level - 1)[-1]
        for _ in range(5):
            await send(site, _KEPT, b"x" * 9000)
        site.cluster.machines[SLAVE].disk.room = Space(100, 20)
        await asyncio.sleep(_LONG_MS / 1000 - 20)
        begin = log_of(site, SLAVE)[0].commit_offset
        site.compare(f"whether the slave keeps level {level}", True, begin <= waits.commit_offset)
        await asyncio.sleep(60)
        begin = log_of(site, SLAVE)[0].commit_offset
        site.compare(f"whether the slave deletes level {level}", True, begin > waits.commit_offset)


async def _without_master(site: Site) -> None:
    """A slave that was started without its master shows that it has none."""
    await site.cluster.stop(MASTER)
    for port in (site.broker.port, _second_port(site).port):
        try:
            await site.client("after the stop", to=Address(site.broker.host, port))
        except OSError:
            continue
        site.report(f"a stopped master listens on port {port}")
    await site.cluster.stop(SLAVE)
    await site.cluster.start(SLAVE)
    await asyncio.sleep(1)
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO", to=_slave(site))).body)["table"]
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS", to=_slave(site))).body)
    site.compare("whether it is a master", False, shown["master"])
    client = {key: each for key, each in shown["haClientRuntimeInfo"].items() if each is not None}
    site.compare("the state of a slave without its master", {
        "lastReadTimestamp": 0, "lastWriteTimestamp": 0, "transferredByteInSecond": 0, "activated": False,
        "maxOffset": int(table["commitLogMaxOffset"]), "masterFlushOffset": 0,
    }, client)  # fmt: skip


_LONG_MS: Final = 150_000
_EXPIRING: Final = replace(
    STORE, file_reserved_ms=60_000, delete_when_hours=(), delay_levels_ms=(_LONG_MS, *[1000] * 16, _LONG_MS)
)
SLAVE_SEGMENTS: Final = Inspection(
    "segments of a slave", slave_segments, {"store": _EXPIRING},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip
SLAVE_CHANGES: Final = Inspection(
    "changes at a slave", slave_changes, {"offsets_flush_interval_ms": 1000},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip
