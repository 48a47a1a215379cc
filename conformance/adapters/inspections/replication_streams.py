"""A master with slaves that report what they should, and what they should not.

See docs/reference/protocol/replication.md, "Replication stream" and "Synchronous replication".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.scripted_slave import ScriptedSlave
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.store_damages import LOG, LOG_SEGMENT, SMALL
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import LogCheck, ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.security.peer_network import PeerConfig

_LATE, _NONE_THERE = 12, 11
_SECRET: Final = "a secret of the peers"
_SECRET_FILE: Final = "/store/peer.secret"


async def joined_slave(
    site: Site, host: str = "10.0.5.1", first: int | None = None, secret: str = ""
) -> ScriptedSlave:
    """Return a slave that is connected to the master, and reports its first position if one is given."""
    slave = ScriptedSlave(secret.encode(), "replication of broker-a")
    port = Address(site.broker.host, site.broker.port + 1)
    await slave.open(site.cluster.internet.machine(host), port)
    if first is not None:
        slave.report(first, 0 if first == 0 else None)
        await asyncio.sleep(0.1)
    return slave


def _log(site: Site) -> bytes:
    disk = site.cluster.machines[MASTER].disk
    return b"".join(disk.written(path).ljust(LOG_SEGMENT, b"\0") for path in disk.files(LOG))


def _begin(site: Site) -> int:
    return int(site.cluster.machines[MASTER].disk.files(LOG)[0].rpartition("/")[2])


async def _end(site: Site) -> int:
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    return int(table["commitLogMaxOffset"])


async def _shown(site: Site) -> list[tuple[str, int, int, bool, int]]:
    """Return the slaves that the master shows: host, acknowledged, behind, in sync, sent."""
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS")).body)
    found = [
        (each["addr"].rpartition(":")[0], each["slaveAckOffset"], each["diff"], each["inSync"],
         each["transferFromWhere"])
        for each in shown["haConnectionInfo"]
    ]  # fmt: skip
    site.compare("the slaves in sync", sum(each[3] for each in found), shown["inSyncSlaveNums"])
    site.compare("the end of the master", await _end(site), shown["masterCommitLogMaxOffset"])
    return found


async def _fill(site: Site, count: int, size: int = 300) -> None:
    for number in range(count):
        await send(site, "t", f"{number:03}" * (size // 3), of={"WAIT": "false"})


def _has_whole_log(site: Site, name: str, slave: ScriptedSlave, end: int, begin: int = 0) -> None:
    own = _log(site)[begin - _begin(site) : end - _begin(site)]
    site.compare(f"{name}: the transfers", [], slave.wrong)
    site.compare(f"{name}: the part of the log", (begin, end), (slave.begin, slave.end))
    site.compare(f"{name}: whether it is the master's", True, own == slave.log)
    site.compare(f"{name}: the largest transfer", True, max(slave.sizes) <= 32 << 10)


async def _closed_after(site: Site, first: int, *reports: int, of: str = "", **more: Any) -> None:
    slave = await joined_slave(site, first=first, **more)
    for report in reports:
        slave.report(report)
        await asyncio.sleep(0.1)
    site.compare(f"whether the connection is closed after {of or (first, *reports)}", True, slave.is_closed)


async def compared(site: Site) -> None:
    """A master by the rule of 4.9: what slaves receive, acknowledge and show, and what closes them."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    answer = await send(site, "t", expects=_NONE_THERE)
    await _fill(site, 40)
    end = await _end(site)
    slave = await joined_slave(site, first=0)
    _has_whole_log(site, "an empty slave", slave, end)
    site.compare("its state", [("10.0.5.1", 0, end, False, end)], await _shown(site))
    await asyncio.sleep(12)
    site.compare("the heartbeats", {end}, set(slave.heartbeats))
    site.compare("their number", 2, len(slave.heartbeats))
    slave.send(b"".join(each.to_bytes(8, "big") for each in (700, 1000)))
    await asyncio.sleep(0.1)
    slave.report(800)
    await asyncio.sleep(0.1)
    site.compare("after a lower report", [("10.0.5.1", 1000, end - 1000, False, end)], await _shown(site))
    slave.send((end - 300).to_bytes(8, "big")[:3])
    await asyncio.sleep(0.1)
    slave.send((end - 300).to_bytes(8, "big")[3:])
    await asyncio.sleep(0.1)
    site.compare("after two halves", [("10.0.5.1", end - 300, 300, True, end)], await _shown(site))
    await _acknowledged(site, slave)
    await _refused(site, slave)
    site.compare("the messages", "0", answer.fields.get("queueOffset"))


async def _acknowledged(site: Site, slave: ScriptedSlave) -> None:
    """A send waits for the acknowledgement of its end, from a slave that is near."""
    waiting = await _put(site)
    await asyncio.sleep(1)
    site.compare("whether the send waits", False, waiting.done())
    slave.report(slave.end - 1)
    await asyncio.sleep(0.1)
    site.compare("whether it still waits", False, waiting.done())
    slave.report(slave.end)
    site.compare("the answer to the acknowledged send", 0, (await waiting).code)
    began_ms = site.now_ms
    site.compare("the answer to a send without it", _LATE, (await (await _put(site))).code)
    site.compare("the time of that", True, 3000 <= site.now_ms - began_ms < 3200)
    await _fill(site, 12, 600)
    await send(site, "t", expects=_NONE_THERE)
    end = await _end(site)
    site.compare("a slave far behind", [False], [each[3] for each in await _shown(site)])
    slave.report(end)
    await asyncio.sleep(0.1)
    site.compare("a slave that is there again", [("10.0.5.1", end, 0, True, end)], await _shown(site))
    slave.report(LOG_SEGMENT)
    waiting = await _put(site)
    end = slave.end
    slave.report(end)
    site.compare("the answer after a lower report", 0, (await waiting).code)


async def _refused(site: Site, slave: ScriptedSlave) -> None:
    """Reports beyond the end and outside of the log close the connection."""
    slave.report(await _end(site) + 1)
    await asyncio.sleep(0.1)
    site.compare("whether a slave ahead is closed", True, slave.is_closed)
    site.compare("the slaves then", [], await _shown(site))
    await send(site, "t", expects=_NONE_THERE)
    end = await _end(site)
    await _closed_after(site, end + 1)
    await _closed_after(site, -1)
    await _closed_after(site, (1 << 62) + 1)
    await _closed_after(site, 0, (1 << 62) + 1)
    follower = await joined_slave(site, first=LOG_SEGMENT)
    _has_whole_log(site, "a slave with a segment", follower, end, LOG_SEGMENT)
    await _silent(site, follower)
    await _shortened(site)


async def _put(site: Site) -> asyncio.Future[Any]:
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": False,
    }  # fmt: skip
    texts = {key: written(value) for key, value in fields.items()}
    line = await site.client("a sender")
    waiting = line.put(CODES["SEND_MESSAGE_V2"], texts, b"m")
    await asyncio.sleep(0.1)
    return waiting


async def _silent(site: Site, slave: ScriptedSlave) -> None:
    """A slave that says nothing for 20 s is closed; one that reports is not."""
    other = await joined_slave(site, "10.0.5.2", first=LOG_SEGMENT)
    for _ in range(4):
        await asyncio.sleep(4.5)
        other.report(LOG_SEGMENT)
    site.compare("whether a slave of 18 s is closed", False, slave.is_closed)
    await asyncio.sleep(4.5)
    site.compare("whether a silent slave is closed", (True, False), (slave.is_closed, other.is_closed))
    other.close()


async def _shortened(site: Site) -> None:
    """A master whose log begins later sends an empty slave what it has, and refuses what it has not."""
    site.cluster.machines[MASTER].clock.skew_us += 80 * 3_600_000_000
    await _fill(site, 3)
    await asyncio.sleep(12)
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    await asyncio.sleep(1)
    begin, end = _begin(site), await _end(site)
    site.compare("whether the log begins later", True, begin >= LOG_SEGMENT)
    slave = await joined_slave(site, first=0)
    _has_whole_log(site, "a slave of a shortened log", slave, end, begin)
    await _closed_after(site, begin - LOG_SEGMENT + 1)
    await _closed_after(site, begin - 1)
    other = await joined_slave(site, "10.0.5.2", first=begin)
    _has_whole_log(site, "a slave that has the beginning", other, end, begin)


async def many(site: Site) -> None:
    """A master has room for 64 slaves, of which 16 are of one address."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    await send(site, "t", of={"WAIT": "false"})
    end = await _end(site)
    slaves: list[ScriptedSlave] = []
    for number in range(64):
        slaves.append(await joined_slave(site, f"10.0.5.{number // 16}", first=0))
        slaves[-1].report(end)
        await asyncio.sleep(0.05)
    site.compare("the closed ones of 64", 0, sum(each.is_closed for each in slaves))
    more = await joined_slave(site, "10.0.5.9", first=0)
    again = await joined_slave(site, "10.0.5.1", first=0)
    site.compare("whether one more is closed", (True, True), (more.is_closed, again.is_closed))
    slaves[0].close()
    await asyncio.sleep(0.1)
    idle = await joined_slave(site, "10.0.5.0", first=0)
    site.compare("whether one in a free place is closed", False, idle.is_closed)
    other = await joined_slave(site, "10.0.5.8", first=0)
    site.compare("whether an idle one gives its place", (True, False), (idle.is_closed, other.is_closed))
    site.compare("the slaves", 64, len(await _shown(site)))


async def as_shipped(site: Site) -> None:
    """With the rules of released brokers any position counts, and an empty slave has the last segment."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    await _fill(site, 40)
    end = await _end(site)
    begin = end // LOG_SEGMENT * LOG_SEGMENT
    one = await joined_slave(site, first=0)
    _has_whole_log(site, "an empty slave", one, end, begin)
    other = await joined_slave(site, "10.0.5.2", first=LOG_SEGMENT)
    _has_whole_log(site, "another slave", other, end, LOG_SEGMENT)
    for positions, code in (
        ((None, None), _LATE), ((0, None), _LATE), ((0, 0), 0), ((1, 1), 0), ((-LOG_SEGMENT, 0), _LATE),
    ):  # fmt: skip
        waiting = await _put(site)
        end = await _end(site)
        for slave, more in zip((one, other), positions, strict=True):
            if more is not None:
                slave.report(end + more)
        site.compare(f"the answer with {positions}", code, (await waiting).code)
    other.close()
    await asyncio.sleep(0.1)
    site.compare("a send with one slave", _LATE, (await (await _put(site))).code)
    site.compare("whether the first is closed", False, one.is_closed)
    one.close()
    await asyncio.sleep(0.1)
    waiting = await _put(site)
    end = await _end(site)
    for host in ("10.0.5.6", "10.0.5.7"):
        await joined_slave(site, host, first=end)
    site.compare("the answer after two first reports", 0, (await waiting).code)


async def proved(site: Site) -> None:
    """With a secret, a slave proves its log with each report."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    await _fill(site, 40)
    stranger = await joined_slave(site, first=0)
    await asyncio.sleep(6)
    site.compare("what a stranger receives", (True, b""), (stranger.is_closed, bytes(stranger.log)))
    end = await _end(site)
    slave = await joined_slave(site, first=0, secret=_SECRET)
    _has_whole_log(site, "an empty slave", slave, end)
    site.compare("a send without an acknowledgement", _LATE, (await (await _put(site))).code)
    end = await _end(site)
    last = end // LOG_SEGMENT * LOG_SEGMENT
    for position in (1, 500, 1024, 1025, 3000, LOG_SEGMENT, LOG_SEGMENT + 1, last, last + 91, end):
        slave.report(position)
        await asyncio.sleep(0.1)
        site.compare(f"whether a proof of {position} closes", False, slave.is_closed)
    waiting = await _put(site)
    slave.report(slave.end)
    site.compare("the answer to an acknowledged send", 0, (await waiting).code)
    for position in (1, 1024, 1025, LOG_SEGMENT, LOG_SEGMENT + 1, slave.end):
        for checksum in (slave.checksum(position) ^ 1, slave.checksum(position - 1)):
            liar = await joined_slave(site, "10.0.5.3", secret=_SECRET)
            liar.report(position, checksum)
            await asyncio.sleep(0.1)
            site.compare(f"whether a wrong proof of {position} closes", True, liar.is_closed)


def _of(**more: Any) -> ReplicationConfig:
    return ReplicationConfig(Role.SYNC_MASTER, **more)


SLAVES_COMPARED: Final = Inspection(
    "slaves of a master", compared, {"store": SMALL}, replication=_of(fall_behind_bytes_max=6000)
)
SLAVES_MANY: Final = Inspection("many slaves", many, {"store": SMALL}, replication=_of())
SLAVES_AS_SHIPPED: Final = Inspection(
    "slaves as shipped", as_shipped, {"store": SMALL},
    replication=_of(log_check=LogCheck.AS_SHIPPED, in_sync_replicas=3),
)  # fmt: skip
SLAVES_PROVED: Final = Inspection(
    "proved slaves", proved, {"store": SMALL, "peer_access": PeerConfig(secret_file=_SECRET_FILE)},
    replication=_of(), files={_SECRET_FILE: _SECRET},
)  # fmt: skip
