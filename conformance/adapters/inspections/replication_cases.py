"""Acknowledgements as shipped by the rule of 4.9, times of both ends, large fillers, and short damaged logs.

See docs/reference/protocol/replication.md.
"""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.replication_streams import joined_slave
from mqproof.conformance.adapters.inspections.scripted_slave import ScriptedSlave
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.store_damages import LOG, SMALL, alter
from mqproof.conformance.adapters.inspections.traffic import make_topic, records, send
from mqproof.conformance.hosts.simulated import MASTER, SLAVE, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import LogCheck, ReplicationConfig, Role
from mqproof.impl.runtime.network import Address, Connection
from mqproof.impl.runtime.security.peer_network import PeerConfig

_LATE, _NONE_THERE = 12, 11
_SECRET: Final = "a secret of the peers"
_SECRET_FILE: Final = "/store/peer.secret"
_BODY_AT: Final = 88
_MASTER: Final = Address("10.0.6.1", 10912)
_HIGHEST: Final = 1 << 62


def _put(line: RawClient, now_ms: int) -> Answer:
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": False,
    }  # fmt: skip
    return line.put(CODES["SEND_MESSAGE_V2"], {key: written(each) for key, each in fields.items()}, b"m")


async def _sent(site: Site) -> Answer:
    waiting = _put(await site.client("a sender"), site.now_ms)
    await asyncio.sleep(0.1)
    return waiting


async def _shown(site: Site) -> dict[str, tuple[int, int, int, bool]]:
    """Return what the master shows of each slave: acknowledged, sent, behind, in sync."""
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS")).body)
    return {
        each["addr"].rpartition(":")[0]:
            (each["slaveAckOffset"], each["transferFromWhere"], each["diff"], each["inSync"])
        for each in shown["haConnectionInfo"]
    }  # fmt: skip


async def _reported(slave: ScriptedSlave, position: int) -> None:
    slave.report(position)
    await asyncio.sleep(0.1)


def _end(site: Site) -> int:
    (*_, last) = log_of(site)
    return last.commit_offset + len(last.raw)


async def shipped_by_49(site: Site) -> None:
    """As shipped, any report counts: the first one, one beyond the end, and that of a slave that left."""
    site.rule = chapters.SYNCHRONOUS_REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    await send(site, "t", expects=_NONE_THERE)
    end = _end(site)
    slave = await joined_slave(site, first=end)
    site.compare("a slave that begins at the end", {"10.0.5.1": (end, end, 0, True)}, await _shown(site))
    for back, code in ((1, _LATE), (0, 0), (_end(site), _LATE)):
        waiting = await _sent(site)
        site.compare("whether the send waits", False, waiting.done())
        await _reported(slave, _end(site) - back)
        site.compare(f"whether a report {back} before the end ends it", not back, waiting.done())
        site.compare(f"the answer after a report {back} before the end", code, (await waiting).code)
    await _reported(slave, _end(site))
    size = len(log_of(site)[-1].raw)
    ahead = await joined_slave(site, "10.0.5.2", first=_end(site) + 2 * size)
    waiting = await _sent(site)
    site.compare("whether a send waits after a report beyond the end", True, waiting.done())
    ahead.close()
    await asyncio.sleep(0.1)
    waiting = await _sent(site)
    site.compare("whether a send waits after the slave that reported left", True, waiting.done())
    waiting = await _sent(site)
    site.compare("whether a send beyond the report waits", False, waiting.done())
    await _reported(slave, _end(site))
    site.compare("the answer", 0, (await waiting).code)
    last = await joined_slave(site, "10.0.5.3", first=_HIGHEST)
    site.compare("whether the highest position closes", False, last.is_closed)
    waiting = await _sent(site)
    site.compare("whether a send waits after the highest position", True, waiting.done())
    await _reported(last, _HIGHEST + 1)
    site.compare("whether a higher one closes", True, last.is_closed)
    slave.close()
    await asyncio.sleep(0.1)
    await send(site, "t", expects=_NONE_THERE)
    await _aligned(site)


async def _aligned(site: Site) -> None:
    """A slave without a log receives the segment of the end, from its first byte on."""
    for _ in range(14):
        await send(site, "t", "x" * 400, expects=_NONE_THERE)
        slave = await joined_slave(site, "10.0.5.4", first=0)
        end, segment = _end(site), SMALL.commit_log_segment_bytes
        site.compare("the part of the log that an empty slave gets", (end - end % segment, end), (
            slave.begin, slave.end))  # fmt: skip
        slave.close()
        await asyncio.sleep(0.1)


async def times_of_slaves(site: Site) -> None:
    """When a master sends heartbeats, and when it closes a connection; both as they are configured."""
    site.rule = chapters.REPLICATION
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    await send(site, "t", of={"WAIT": "false"})
    loop = asyncio.get_running_loop()
    slave = await joined_slave(site, first=0)
    slave.report(slave.end)
    began_s, seen_s = loop.time(), list[float]()
    while not slave.is_closed and loop.time() < began_s + 9:
        count = len(slave.heartbeats)
        await asyncio.sleep(0.02)
        if len(slave.heartbeats) > count:
            seen_s.append(loop.time() - began_s)
    gaps = [later - one for one, later in pairwise([0.0, *seen_s])]
    wrong = [f"{each:.2f}" for each in gaps if not 0.97 <= each <= 1.25]
    site.compare("the gaps between heartbeats that are not 1 s, or a scan longer", [], wrong)
    closed_s = loop.time() - began_s
    site.compare(f"whether a silent slave is closed after 6 s: {closed_s:.2f}", True, 6.0 <= closed_s <= 6.25)
    talking = await joined_slave(site, "10.0.5.2", first=0)
    for number in range(20):
        await send(site, "t", f"{number}", of={"WAIT": "false"})
        await _reported(talking, talking.end)
        await asyncio.sleep(0.7)
    site.compare("the heartbeats while entries are sent", [], talking.heartbeats)
    site.compare("whether a slave that reports is closed", False, talking.is_closed)
    await asyncio.sleep(1.3)
    site.compare("the heartbeats after the last entry", [talking.end], talking.heartbeats)
    silent = await joined_slave(site, "10.0.5.3")
    await asyncio.sleep(3)
    site.compare("the heartbeats before a first report", ([], b""), (silent.heartbeats, bytes(silent.log)))
    await asyncio.sleep(3.2)
    site.compare("whether one that never reports is closed", True, silent.is_closed)


class _Refusing:
    """A port of slaves that closes each connection; it keeps the times."""

    def __init__(self, site: Site) -> None:
        self.loop = asyncio.get_running_loop()
        self.times_s: list[float] = []
        self.reports: list[float] = []
        self.stays = False
        self._connection: Connection | None = None
        self._network = site.cluster.internet.machine(_MASTER.host)

    async def open(self) -> "_Refusing":
        await self._network.listen(_MASTER.host, _MASTER.port, self._accept)
        return self

    def _accept(self, connection: Connection) -> "_Refusing":
        self.times_s.append(self.loop.time())
        self.reports = []
        self._connection = connection
        if not self.stays:
            self.loop.call_soon(connection.close)
        return self

    def send(self, data: bytes) -> None:
        assert self._connection is not None, "the slave has connected"
        self._connection.write(data)

    def close(self) -> None:
        assert self._connection is not None, "the slave has connected"
        self._connection.close()

    def received(self, data: bytes) -> None:
        self.reports += [self.loop.time()] * (len(data) // 8)

    def write_paused(self) -> None:
        pass

    def write_resumed(self) -> None:
        pass

    def closed(self) -> None:
        self.times_s.append(-self.loop.time())


async def times_of_masters(site: Site) -> None:
    """When a slave connects again, reports, and gives up a silent master."""
    site.rule = chapters.REPLICATION
    loop = asyncio.get_running_loop()
    port = await _Refusing(site).open()
    await asyncio.sleep(8)
    opened = [each for each in port.times_s if each > 0]
    gaps = {round(later - one, 1) for one, later in pairwise(opened)}
    site.compare("the seconds between connections that fail", {1.0}, gaps)
    port.stays = True
    await asyncio.sleep(1.1)
    opened_s, count = port.times_s[-1], len(port.times_s)
    await asyncio.sleep(19.8 - (loop.time() - opened_s))
    site.compare("whether a silent master is left within 20 s", count, len(port.times_s))
    reported = [round(each - opened_s) for each in port.reports]
    site.compare("the seconds of the reports", [0, 6, 12, 18], reported)
    await asyncio.sleep(1.4)
    closed_s = -port.times_s[count] - opened_s if len(port.times_s) > count else 0.0
    site.compare(f"whether it is left after 20 s: {closed_s:.2f}", True, 20.0 <= closed_s <= 21.1)
    await asyncio.sleep(1.1)
    port.send((0).to_bytes(12, "big"))
    await asyncio.sleep(0.1)
    port.close()
    closed_s = loop.time()
    await asyncio.sleep(1.2)
    again_s = port.times_s[-1] - closed_s
    site.compare(f"whether a slave that followed is back after 0.5 s: {again_s:.2f}", True,
                 0.49 <= again_s <= 0.71)  # fmt: skip


async def large_fillers(site: Site) -> None:
    """Segments end with fillers larger than one transfer; the slave has every message behind them."""
    site.rule = chapters.REPLICATION
    await make_topic(site, "t")
    sizes = (50_000, 45_000, 60_000, 70_000, 33_000, 100, 90_000, 126_000, 10, 100_000)
    for size in sizes:
        await send(site, "t", b"x" * size)
    await asyncio.sleep(12)
    disks = {node: site.cluster.machines[node].disk for node in (MASTER, SLAVE)}
    logs = {
        node: [disk.written(path).rstrip(b"\0") for path in disk.files(LOG)] for node, disk in disks.items()
    }
    site.compare("the number of segments", 5, len(logs[MASTER]))
    site.compare("whether the logs are equal", True, logs[MASTER] == logs[SLAVE])
    site.broker = Address(site.cluster.machines[SLAVE].host, site.broker.port)
    found: list[int] = []
    while more := await records(site, "t", len(found)):
        found += [len(each.body) for each in more]
    site.compare("the messages of the slave", list(sizes), found)


async def short_ends(site: Site) -> None:
    """Damage one record of a short log at the master; the slave follows when it has repaired the record."""
    site.rule = chapters.DAMAGED_FILES
    site.watch.judges_answers = False  # the slave may be behind its master
    await make_topic(site, "t")
    await asyncio.sleep(2)
    for number in range(4):
        await send(site, "t", f"{number}" * 20)
    disk = site.cluster.machines[MASTER].disk
    for place in (3, 2, 1, 0):
        record = log_of(site)[place]
        await site.cluster.stop(SLAVE)
        await asyncio.sleep(0.5)
        alter(disk, record, _BODY_AT, bytes([record.raw[_BODY_AT] ^ 1]))
        await site.cluster.start(SLAVE)
        await asyncio.sleep(16)
        at = record.commit_offset
        whole = disk.written(f"{LOG}/{0:020}")[at : at + len(record.raw)] == record.raw
        site.compare(f"whether record {place} of four is repaired", True, whole)
        await send(site, "t", "more")
        site.compare("the end of the log", True, _end(site) < 1024 + 300 * (4 - place))
    site.compare("the logs", log_of(site), log_of(site, SLAVE))


_SLOW_LOG: Final = replace(STORE, commit_log_segment_bytes=1 << 17)
SHIPPED_BY_49: Final = Inspection(
    "slaves as shipped in 4.9", shipped_by_49, {"store": SMALL},
    replication=ReplicationConfig(Role.SYNC_MASTER, log_check=LogCheck.AS_SHIPPED),
)  # fmt: skip
SLAVE_TIMES: Final = Inspection(
    "times of slaves", times_of_slaves, {"store": SMALL},
    replication=ReplicationConfig(Role.SYNC_MASTER, heartbeat_ms=1000, housekeeping_ms=6000),
)  # fmt: skip
MASTER_TIMES: Final = Inspection(
    "times of masters", times_of_masters,
    replication=ReplicationConfig(Role.ASYNC_MASTER, ha_master=_MASTER),
)  # fmt: skip
LARGE_FILLERS: Final = Inspection(
    "large fillers", large_fillers, {"store": _SLOW_LOG}, replication=ReplicationConfig(Role.SYNC_MASTER)
)
SHORT_ENDS: Final = Inspection(
    "short proved logs", short_ends,
    {"store": SMALL, "peer_access": PeerConfig(secret_file=_SECRET_FILE)},
    replication=ReplicationConfig(Role.SYNC_MASTER), files={_SECRET_FILE: _SECRET},
)  # fmt: skip
