"""A slave whose master sends it other bytes than it should.

See docs/reference/protocol/replication.md, "Replication stream" and "Divergence of the logs".
"""

import asyncio
import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.store_damages import LOG, LOG_SEGMENT, SMALL
from mqproof.conformance.adapters.inspections.traffic import make_topic, pull, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address, Connection

_PORT: Final = Address("10.0.6.1", 10912)
_BEGIN: Final = 2 * LOG_SEGMENT
"""Where the log of the scripted master begins."""
_COPIED_S: Final = 11
"""Longer than the pause between two copies of the tables."""


class _Line:
    """A connection of the slave."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.reports: list[int] = []
        self.is_closed = False
        self._buffer = b""

    def send(self, position: int, body: bytes = b"", size: int | None = None) -> None:
        self.connection.write(struct.pack(">qi", position, len(body) if size is None else size) + body)

    def received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 8:
            self.reports.append(int.from_bytes(self._buffer[:8], "big", signed=True))
            self._buffer = self._buffer[8:]

    def write_paused(self) -> None:
        pass

    def write_resumed(self) -> None:
        pass

    def closed(self) -> None:
        self.is_closed = True


class _Master:
    """The port of slaves of a master that sends what an inspection says."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.lines: list[_Line] = []

    async def open(self) -> "_Master":
        await self.site.cluster.internet.machine(_PORT.host).listen(_PORT.host, _PORT.port, self._accept)
        return self

    def _accept(self, connection: Connection) -> _Line:
        self.lines.append(_Line(connection))
        return self.lines[-1]

    async def line(self, expected: int) -> _Line:
        """Return the next connection of the slave, after its first report."""
        for _ in range(40):
            if self.lines and self.lines[-1].reports and not self.lines[-1].is_closed:
                break
            await asyncio.sleep(0.05)
        else:
            self.site.report("the slave does not connect")
            return _Line(self.lines[-1].connection)
        self.site.compare("the first report of the slave", expected, self.lines[-1].reports[0])
        return self.lines[-1]

    async def refused(
        self, expected: int, position: int, body: bytes, what: str, size: int | None = None
    ) -> None:
        """Send a transfer that the slave must refuse; it closes the connection and stores nothing."""
        line = await self.line(expected)
        line.send(position, body, size)
        await asyncio.sleep(0.1)
        self.site.compare(f"the slave after {what}: closed, reports", (True, [expected]),
                          (line.is_closed, line.reports))  # fmt: skip


def _altered(record: StoredRecord, at: int, data: bytes) -> bytes:
    return record.raw[:at] + data + record.raw[at + len(data) :]


def _without_topic(record: StoredRecord) -> bytes:
    """Return the record with an empty topic, of the right size."""
    name = record.topic.encode()
    at = record.raw.rindex(bytes([len(name)]) + name)
    raw = record.raw[:at] + b"\0" + record.raw[at + 1 + len(name) :]
    return len(raw).to_bytes(4, "big") + raw[4:]


async def strange_masters(site: Site) -> None:
    """A slave stores only the records that follow, and compares its last record on each connection."""
    site.rule = chapters.REPLICATION
    log, records = await _made(site)
    master = await _Master(site).open()
    first, second = records[0], records[1]
    line = await master.line(0)
    for position in (0, 0):
        line.send(position)
    await asyncio.sleep(6)
    site.compare("the slave after heartbeats", (False, [0, 0]), (line.is_closed, line.reports))
    line.send(_BEGIN + 1, first.raw)
    await asyncio.sleep(0.1)
    site.compare("whether a strange begin closes", True, line.is_closed)
    for what, position, body, size in _impossible(first):
        await master.refused(0, position, body, what, size)
    line = await master.line(0)
    line.send(_BEGIN, first.raw[:50])
    await asyncio.sleep(0.1)
    site.compare("the reports after a part", [0], line.reports)
    line.send(_BEGIN + 50, first.raw[50:] + second.raw[:7])
    await asyncio.sleep(0.1)
    end = second.commit_offset
    site.compare("the reports after a record", [0, end], line.reports)
    line.send(end)
    await asyncio.sleep(0.1)
    site.compare("whether a heartbeat within a record closes", True, line.is_closed)
    await _compared(site, master, records)
    await _rest(site, master, log, records)
    await _diverged(site, master, records)


def _impossible(first: StoredRecord) -> Sequence[tuple[str, int, bytes, int | None]]:
    raw, beyond = first.raw, (1 << 62) + LOG_SEGMENT
    return (
        ("a position beyond the highest", beyond, raw, None),
        ("a record beyond the highest", beyond, _altered(first, 28, beyond.to_bytes(8, "big")), None),
        ("a negative position", -LOG_SEGMENT, raw, None),
        ("a negative size", _BEGIN, b"", -1),
        ("a size above the limit", _BEGIN, b"", (4 << 20) + 1),
        ("a wrong checksum", _BEGIN, _altered(first, 8, b"\0\1\2\3"), None),
        ("a wrong body", _BEGIN, _altered(first, 90, b"\xff"), None),
        ("a wrong magic", _BEGIN, _altered(first, 4, b"\xff"), None),
        ("a small size", _BEGIN, _altered(first, 0, b"\0\0\0\x10"), None),
        (
            "a size that leaves no room",
            _BEGIN,
            _altered(first, 0, (LOG_SEGMENT - 7).to_bytes(4, "big")),
            None,
        ),
        ("a negative queue", _BEGIN, _altered(first, 12, b"\xff"), None),
        ("a negative queue offset", _BEGIN, _altered(first, 20, b"\xff"), None),
        ("another commit offset", _BEGIN, _altered(first, 28, bytes(8)), None),
        ("a negative body size", _BEGIN, _altered(first, 84, b"\xff"), None),
        ("an empty topic", _BEGIN, _without_topic(first), None),
        ("garbage", _BEGIN, b"\x5a" * 200, None),
        ("zeros", _BEGIN, bytes(200), None),
    )


async def _made(site: Site) -> tuple[bytes, list[StoredRecord]]:
    """Return the log of a real master from its third segment on, and its records."""
    await make_topic(site, "t")
    for number in range(60):
        values = {} if number % 3 else {"TAGS": f"tag{number}", "KEYS": f"k{number}"}
        await send(site, "t", f"{number:03}" * number, of=values)
    found: list[StoredRecord] = []
    while True:
        answer = await pull(site, "t", len(found), expects=None)
        if answer.code:
            break
        found += read_records(answer.body)
    disk = site.cluster.machines[MASTER].disk
    log = b"".join(disk.written(path).ljust(LOG_SEGMENT, b"\0") for path in disk.files(LOG))
    records = [each for each in found if each.commit_offset >= _BEGIN]
    return log[: records[-1].commit_offset + len(records[-1].raw)], records


async def _compared(site: Site, master: _Master, records: list[StoredRecord]) -> None:
    """On a later connection the slave begins with its last record, and compares it."""
    first, second = records[0], records[1]
    line = await master.line(first.commit_offset)
    line.send(first.commit_offset + 1, first.raw[1:])
    await asyncio.sleep(0.1)
    site.compare("whether another position closes", True, line.is_closed)
    line = await master.line(first.commit_offset)
    line.send(first.commit_offset, first.raw[:30])
    await asyncio.sleep(0.1)
    line.send(first.commit_offset + 30, first.raw[30:])
    await asyncio.sleep(0.1)
    end = second.commit_offset
    site.compare("the reports after the same record", [first.commit_offset, end], line.reports)
    await asyncio.sleep(6)
    site.compare("the reports of a silent slave", [first.commit_offset, end, end], line.reports)
    await _shows(site, end)
    await asyncio.sleep(16)
    site.compare("whether a silent master is left", True, line.is_closed)


async def _shows(site: Site, end: int) -> None:
    at = Address(site.cluster.machines[SLAVE].host, site.broker.port)
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS", to=at)).body)
    client = shown["haClientRuntimeInfo"]
    site.compare("the state of the slave", (str(_PORT), end, True), (
        client["masterAddr"], client["maxOffset"], client["activated"]))  # fmt: skip
    for name, ago_ms in (("lastReadTimestamp", 6000), ("lastWriteTimestamp", 1000)):
        late_ms = site.now_ms - client[name]
        site.compare(f"whether {name} is {ago_ms} ms ago: {late_ms}", True, abs(late_ms - ago_ms) < 1200)


async def _rest(site: Site, master: _Master, log: bytes, records: list[StoredRecord]) -> None:
    """The rest of the log arrives in strange portions, with the fillers of its segments."""
    first, end = records[0], len(log)
    line = await master.line(first.commit_offset)
    line.send(first.commit_offset, first.raw)
    position = records[1].commit_offset
    for size in (3, 700, 1, 5000, 1 << 15):
        line.send(position, log[position : position + size])
        position = min(position + size, end)
        await asyncio.sleep(0.1)
    site.compare("the end after all portions", end, line.reports[-1])
    await asyncio.sleep(_COPIED_S)
    at = Address(site.cluster.machines[SLAVE].host, site.broker.port)
    slave = await site.client(to=at)
    offset = records[0].queue_offset
    found: list[bytes] = []
    answer = await site.ask("GET_MIN_OFFSET", by=slave, topic="t", queueId=0)
    site.compare("the first offset at the slave", str(offset), answer.fields["offset"])
    while True:
        answer = await pull(site, "t", offset + len(found), expects=None, by=slave)
        if answer.code:
            break
        found += [each.raw for each in read_records(answer.body)]
    site.compare("the records at the slave", len(records), len(found))
    site.compare("whether the slave has all records", True, found == [each.raw for each in records])
    line.send(end + 1, b"x")
    await asyncio.sleep(0.1)
    site.compare("whether a gap closes", True, line.is_closed)


async def _diverged(site: Site, master: _Master, records: list[StoredRecord]) -> None:
    """Another record in the place of the last one stops the slave, until it is started again."""
    last = records[-1]
    for body in (_altered(last, len(last.raw) - 1, b"\1"), b""):
        line = await master.line(last.commit_offset)
        line.send(last.commit_offset, body)
        await asyncio.sleep(0.1)
        site.compare("whether another last record closes", True, line.is_closed)
        count = len(master.lines)
        await asyncio.sleep(10)
        site.compare("the connections of a slave that stopped", count, len(master.lines))
        await site.cluster.stop(SLAVE)
        await site.cluster.start(SLAVE)
        site.hang_up()
    line = await master.line(last.commit_offset)
    line.send(last.commit_offset, last.raw)
    await asyncio.sleep(0.1)
    end = last.commit_offset + len(last.raw)
    site.compare("the reports after a restart", [last.commit_offset, end], line.reports)


async def unknown_deletions(site: Site) -> None:
    """A slave knows a deletion beyond its end, and its master loses it: the slave asks before it follows."""
    site.rule = chapters.REPLICATION
    site.watch.judges_answers = False  # the answers contradict each other after the power loss
    master, at = await _Master(site).open(), Address(site.cluster.machines[SLAVE].host, site.broker.port)
    await make_topic(site, "t")
    await make_topic(site, "o")
    for number in range(4):
        await send(site, "o", f"{number}" * 400)
    await site.cluster.stop(MASTER)
    await site.cluster.start(MASTER)
    await asyncio.sleep(2)
    for number in range(5):
        await send(site, "t", f"lost {number}" * 60)
    log = _log_of(site)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
    line = await master.line(0)
    first = int.from_bytes(log[:4], "big")
    line.send(0, log[:first])
    for _ in range(3):
        await asyncio.sleep(8)
        line.send(first)
    site.compare("the deletion beyond the slave's end", len(log), _deletion(site, SLAVE))
    site.hang_up()
    await site.lose_power()
    await make_topic(site, "t")
    for number in range(3):
        await send(site, "t", f"new {number}" * 60)
    log = _log_of(site)
    await site.cluster.stop(MASTER)
    count = len(master.lines)
    line.connection.close()
    await asyncio.sleep(8)
    site.compare("the reports of a slave whose master does not answer", [], [
        each for other in master.lines[count:] for each in other.reports])  # fmt: skip
    site.compare("whether it tries again", True, len(master.lines) > count + 1)
    await site.cluster.start(MASTER)
    await asyncio.sleep(5)
    line = await master.line(1)
    line.send(1, log[1:])
    await asyncio.sleep(1)
    site.compare("the report of the slave", len(log), line.reports[-1])
    await asyncio.sleep(_COPIED_S)
    slave = await site.client(to=at)
    for topic, bodies in (("o", [f"{number}" * 400 for number in range(4)]),
                          ("t", [f"new {number}" * 60 for number in range(3)])):  # fmt: skip
        answer = await pull(site, topic, expects=None, by=slave)
        found = [each.body.decode() for each in read_records(answer.body)] if not answer.code else []
        site.compare(f"the messages of {topic} at the slave", bodies, found)


def _log_of(site: Site) -> bytes:
    disk = site.cluster.machines[MASTER].disk
    log = b"".join(disk.written(path).ljust(LOG_SEGMENT, b"\0") for path in disk.files(LOG))
    (*_, last) = log_of(site)
    return log[: last.commit_offset + len(last.raw)]


def _deletion(site: Site, node: str) -> int | None:
    text = site.cluster.machines[node].disk.written("/store/config/deletedTopics.json").rstrip(b"\0")
    table: dict[str, int] = json.loads(text)
    return table.get("t")


_SELDOM: Final = replace(
    SMALL, flush_log_interval_ms=3_600_000, flush_log_thorough_interval_ms=3_600_000,
    checkpoint_interval_ms=3_600_000, flush_queues_interval_ms=3_600_000,
)  # fmt: skip
UNKNOWN_DELETIONS: Final = Inspection(
    "unknown deletions", unknown_deletions, {"store": _SELDOM},
    replication=ReplicationConfig(Role.ASYNC_MASTER, ha_master=_PORT),
)  # fmt: skip
STRANGE_MASTERS: Final = Inspection(
    "strange masters", strange_masters, {"store": SMALL},
    replication=ReplicationConfig(Role.ASYNC_MASTER, ha_master=_PORT),
)  # fmt: skip
