"""A master and its slave: damage at the end of either log, a slave that does not read, refused commits.

See docs/reference/protocol/replication.md, and storing.md, "Damaged files".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.raw_client import Answer
from mqproof.conformance.adapters.inspections.replication_streams import joined_slave
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.store_damages import SMALL, alter
from mqproof.conformance.adapters.inspections.traffic import batch, make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.security.peer_network import PeerConfig

_SECRET: Final = "a secret of the peers"
_SECRET_FILE: Final = "/store/peer.secret"
_BODY_AT: Final = 88
_NONE_THERE, _LATE = 11, 12
_COPIED_S: Final = 25


def _at(site: Site) -> Address:
    return Address(site.cluster.machines[SLAVE].host, site.broker.port)


async def _followers(site: Site) -> int:
    """Return the number of slaves that have acknowledged the end of the log."""
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS")).body)
    end = shown["masterCommitLogMaxOffset"]
    return sum(each["slaveAckOffset"] == end for each in shown["haConnectionInfo"])


async def _pulled(site: Site, to: Address) -> list[bytes]:
    found: list[bytes] = []
    for queue in (0, 1):
        begin = len(found)
        while True:
            answer = await pull(
                site, "t", len(found) - begin, queue, expects=None, by=await site.client(to=to)
            )
            if answer.code:
                break
            found += [each.raw for each in read_records(answer.body)]
    return found


async def _fill(site: Site, count: int, size: int, expects: int) -> None:
    for number in range(count):
        await send(site, "t", f"{number:02}" * (size // 2), number % 2, of={"TAGS": "a"}, expects=expects)


async def damaged_ends(site: Site) -> None:
    """Damage one of the last records at either end; the slave follows when its peer has repaired it."""
    site.rule = chapters.DAMAGED_FILES
    site.watch.judges_answers = False  # a slave may be behind its master
    await make_topic(site, "t", 2)
    await asyncio.sleep(2)
    await _fill(site, 12, 300, 0)
    half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "u"}
    await send(site, "t", "half", f=4, of=half)
    await _fill(site, 2, 90, 0)
    site.compare("the slaves at first", 1, await _followers(site))
    for back, follows in ((1, False), (2, not _is_proved(site)), (6, True)):
        await _at_master(site, back, follows=follows)
    for back in (1, 2):
        await _at_slave(site, back)
    found = await _pulled(site, site.broker)
    site.compare("the messages of the slave", found, await _pulled(site, _at(site)))
    site.compare("the logs", log_of(site), log_of(site, SLAVE))


def _is_proved(site: Site) -> bool:
    return bool(site.cluster.config(MASTER).peer_access.secret_file)


def _break(site: Site, node: str, record: StoredRecord) -> None:
    alter(site.cluster.machines[node].disk, record, _BODY_AT, bytes([record.raw[_BODY_AT] ^ 1]))


def _is_whole(site: Site, node: str, record: StoredRecord) -> bool:
    at = record.commit_offset
    disk, segment = site.cluster.machines[node].disk, SMALL.commit_log_segment_bytes
    data = disk.written(f"/store/commitlog/{at - at % segment:020}")
    return data[at % segment : at % segment + len(record.raw)] == record.raw


def _queued(site: Site, back: int) -> StoredRecord:
    """Return one of the last records that a queue of the topic has."""
    return [each for each in log_of(site) if each.topic == "t"][-back]


async def _at_master(site: Site, back: int, *, follows: bool) -> None:
    await site.cluster.stop(SLAVE)
    await asyncio.sleep(0.5)
    record = _queued(site, back)
    _break(site, MASTER, record)
    await send(site, "t", "without a slave", expects=_NONE_THERE)
    await site.cluster.start(SLAVE)
    await asyncio.sleep(1.5)
    what = f"the master's record {back} before its end is damaged"
    if follows:
        site.compare(f"the slaves while {what}", 1, await _followers(site))
        await pull(site, "t", record.queue_offset, record.queue_id, maxMsgNums=1, expects=None)
    await asyncio.sleep(14)
    site.compare(f"whether the record is repaired after {what}", True, _is_whole(site, MASTER, record))
    site.compare(f"the slaves after {what}", 1, await _followers(site))
    await send(site, "t", "with a slave")


async def _at_slave(site: Site, back: int) -> None:
    record = _queued(site, back)
    _break(site, SLAVE, record)
    await site.cluster.stop(MASTER)
    site.hang_up()
    await asyncio.sleep(1)
    await site.cluster.start(MASTER)
    what = f"the slave's record {back} before its end is damaged"
    await asyncio.sleep(16)
    site.compare(f"whether the record is repaired after {what}", True, _is_whole(site, SLAVE, record))
    site.compare(f"the slaves after {what}", 1, await _followers(site))
    await send(site, "t", "with a slave")


async def unread(site: Site) -> None:
    """A slave that does not read receives the rest on the same connection when it reads again."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    slave = await joined_slave(site, first=0)
    for times, count in ((0, 3), (1, 60), (2, 400)):
        slave.stop_taking()
        received = len(slave.log)
        for number in range(count):
            await send(site, "t", f"{number:04}" * 250, of={"WAIT": "false"})
        await asyncio.sleep(6)
        site.compare(f"what arrives while the slave does not read, {times}", received, len(slave.log))
        site.compare("the heartbeats of a slave that does not read", [], slave.heartbeats)
        slave.take_again()
        await asyncio.sleep(0.2)
        end = log_of(site)[-1]
        site.compare(f"the end that the slave has then, {times}", end.commit_offset + len(end.raw), slave.end)
        slave.report(slave.end)
    site.compare("the transfers", (False, []), (slave.is_closed, slave.wrong))
    await asyncio.sleep(12)
    site.compare("the heartbeats of a slave that reads", 2, len(slave.heartbeats))


async def partly_acknowledged(site: Site) -> None:
    """Sends of one turn, and the messages of a batch, wait until a slave has the last of them."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    slave = await joined_slave(site, first=0)
    for is_batch in (False, True):
        for part, code in ((0, _LATE), (1, _LATE), (2, 0)):
            waiting = await _together(site, is_batch=is_batch)
            new = [each for each in log_of(site) if each.topic == "t"][-3:]
            await asyncio.sleep(0.1)
            site.compare("what the slave has", new[-1].commit_offset + len(new[-1].raw), slave.end)
            slave.report(new[part].commit_offset + len(new[part].raw))
            await asyncio.sleep(0.2)
            what = f"after the acknowledgement of part {part}, a batch: {is_batch}"
            site.compare(f"whether the sends are answered {what}", [code == 0] * len(waiting), [
                each.done() for each in waiting])  # fmt: skip
            site.compare(
                f"the answers {what}", [code] * len(waiting), [(await each).code for each in waiting]
            )
            slave.report(slave.end)
            await asyncio.sleep(0.1)


async def _together(site: Site, *, is_batch: bool) -> list[Answer]:
    """Send three messages in one turn of the broker's event loop."""
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": is_batch,
    }  # fmt: skip
    texts = {key: written(value) for key, value in fields.items()}
    if is_batch:
        line = await site.client("batch")
        waiting = [line.put(CODES["SEND_BATCH_MESSAGE"], texts, batch([(b"m", 0, {})] * 3))]
    else:
        lines = [await site.client(f"sender {number}") for number in range(3)]
        waiting = [line.put(CODES["SEND_MESSAGE_V2"], texts, b"m") for line in lines]
    await asyncio.sleep(0.05)
    return waiting


async def refused_commits(site: Site) -> None:
    """A master refuses some of the offsets that its slave received alone; it receives the others."""
    site.rule = chapters.CONSUMER_OFFSETS
    groups = ("a", "b", "c", "d", "e")
    await make_topic(site, "t", 3)
    await make_topic(site, "gone", 1)
    for group in groups:
        await make_group(site, group)
    await send(site, "t")
    await asyncio.sleep(_COPIED_S)
    await site.cluster.stop(MASTER)
    for number, group in enumerate(groups):
        for topic, queue in (("gone", 0), ("t", 2), ("t", 0), ("t", 1)):
            await _commit(site, _at(site), group, topic, queue, 10 + number)
    await asyncio.sleep(6)
    await site.cluster.stop(SLAVE)
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    await make_topic(site, "t", 2)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="gone")
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=false")
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="c", cleanOffset=True)
    await site.cluster.start(SLAVE)
    await asyncio.sleep(_COPIED_S)
    left = {f"t@{group}": {"0": 10 + number, "1": 10 + number}
            for number, group in enumerate(groups) if group != "c"}  # fmt: skip
    found = await _offsets(site, site.broker)
    for key, offsets in left.items():
        site.compare(f"the offsets of {key} at the master", offsets, {
            queue: at for queue, at in found.get(key, {}).items() if queue in ("0", "1")})  # fmt: skip
    site.compare("the offsets of a deleted group", None, found.get("t@c"))
    for group in ("a", "e"):
        await _commit(site, site.broker, group, "t", 0, 1)
    await asyncio.sleep(_COPIED_S)
    found = await _offsets(site, _at(site))
    site.compare(
        "the offsets at the slave after a reset", [1, 1], [found[f"t@{each}"].get("0") for each in "ae"]
    )


async def _commit(site: Site, to: Address, group: str, topic: str, queue: int, offset: int) -> None:
    await site.ask(
        "UPDATE_CONSUMER_OFFSET", by=await site.client(to=to), consumerGroup=group, topic=topic,
        queueId=queue, commitOffset=offset,
    )  # fmt: skip


async def _offsets(site: Site, to: Address) -> dict[str, dict[str, int]]:
    table: dict[str, Any] = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET", to=to)).body)
    return {key: {str(queue): at for queue, at in each.items()} for key, each in table["offsetTable"].items()}


_PAIR: Final = ReplicationConfig(Role.SYNC_MASTER)
DAMAGED_ENDS: Final = Inspection("damaged ends of a pair", damaged_ends, {"store": SMALL}, replication=_PAIR)
PROVED_ENDS: Final = Inspection(
    "proved ends of a pair", damaged_ends,
    {"store": SMALL, "peer_access": PeerConfig(secret_file=_SECRET_FILE)},
    replication=_PAIR, files={_SECRET_FILE: _SECRET},
)  # fmt: skip
UNREAD: Final = Inspection(
    "slave that does not read", unread, replication=ReplicationConfig(Role.ASYNC_MASTER)
)
PARTLY_ACKNOWLEDGED: Final = Inspection("partly acknowledged sends", partly_acknowledged, replication=_PAIR)
REFUSED_COMMITS: Final = Inspection(
    "refused commits", refused_commits, replication=ReplicationConfig(Role.ASYNC_MASTER)
)
