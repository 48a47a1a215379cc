"""A running broker whose files are altered, and a peer of its name that has the log, or claims to.

See docs/reference/protocol/storing.md, "Damaged files".
"""

import asyncio
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.inspections.kept_messages import (
    CLUSTER,
    Kept,
    fill,
    flushed,
    forgive_lost,
    same,
    seen,
)
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.store_damages import (
    SMALL,
    alter,
    alter_entry,
    entry_place,
    log_path,
)
from mqproof.conformance.adapters.inspections.strange_brokers import body_of
from mqproof.conformance.adapters.inspections.traffic import make_topic, pull, records, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import RESPONSE, Frame, encode, take
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address, Connection
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

_PEER: Final = Address("10.0.7.1", 10911)
_BODY_AT: Final = 88
_ROUND_S: Final = 6
"""Longer than the pause between two rounds of requests."""


class _Peer:
    """Answers requests for records with what an inspection says."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.answers: dict[int, bytes] = {}
        """The answers by commit offset; it has no other records."""
        self.asked: list[tuple[int, int]] = []
        """The time and the commit offset of each request."""
        self.held: list[Frame] | None = None
        """The requests that wait; None while each is answered at once."""
        self._connection: Connection | None = None
        self._buffer = bytearray()

    async def open(self) -> "_Peer":
        await self.site.cluster.internet.machine(_PEER.host).listen(_PEER.host, _PEER.port, self._accept)
        await self.register()
        return self

    async def register(self) -> None:
        """Register as a slave of the broker at each name server, which forgets silent ones."""
        fields: dict[str, Any] = {
            "brokerName": "broker-a", "brokerAddr": str(_PEER), "clusterName": CLUSTER, "brokerId": 1,
            "haServerAddr": "", "compressed": False, "bodyCrc32": 0,
        }  # fmt: skip
        for to in self.site.cluster.names:
            line = await self.site.client("peer", to=to)
            await self.site.ask("REGISTER_BROKER", body_of([]), by=line, **fields)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for request in held:
            self._answer(request)

    def _accept(self, connection: Connection) -> "_Peer":
        self._connection = connection
        self._buffer.clear()
        return self

    def received(self, data: bytes) -> None:
        self._buffer += data
        while frame := take(self._buffer):
            if frame.code == CODES["VIEW_MESSAGE_BY_ID"]:
                self.asked.append((self.site.now_ms, int(frame.fields["offset"])))
                if self.held is not None:
                    self.held.append(frame)
                    continue
            self._answer(frame)

    def _answer(self, request: Frame) -> None:
        assert self._connection is not None, "a request came"
        body = self.answers.get(int(request.fields.get("offset", "-1")))
        code = 1 if body is None else 0
        self._connection.write(encode(Frame(code, request.opaque, RESPONSE, body=body or b"")))

    def write_paused(self) -> None:
        pass

    def write_resumed(self) -> None:
        pass

    def closed(self) -> None:
        pass


async def repaired(site: Site) -> None:
    """Damage records and entries of a running broker; see what is delivered, requested and written."""
    site.rule = chapters.DAMAGED_FILES
    await site.cluster.stop(SLAVE)
    kept = await fill(site)
    peer = await _Peer(site).open()
    disk = site.cluster.machines[MASTER].disk
    plain = kept.counted("plain", 1)
    await _entries(site, kept, disk, plain)
    await _pauses(site, kept, peer, disk, plain[1])
    await _wrong_answers(site, kept, peer, disk, plain)
    await _together(site, kept, peer, disk, plain)
    await _durable(site, kept, peer, disk, plain[8])
    await _scrubbed(site, peer, disk, plain)
    await _late(site, peer, disk, kept.counted("plain", 0)[2])


def _bytes_of(disk: SimulatedDisk, record: StoredRecord) -> bytes:
    at = record.commit_offset % SMALL.commit_log_segment_bytes
    return disk.written(log_path(record.commit_offset))[at : at + len(record.raw)]


def _entry_of(disk: SimulatedDisk, record: StoredRecord) -> bytes:
    path, at = entry_place(record.topic, record.queue_id, record.queue_offset)
    return disk.written(path)[at : at + 20]


def _break(disk: SimulatedDisk, record: StoredRecord) -> None:
    alter(disk, record, _BODY_AT, bytes([record.raw[_BODY_AT] ^ 1]))


async def _entries(site: Site, kept: Kept, disk: SimulatedDisk, plain: list[StoredRecord]) -> None:
    """Damaged entries are repaired when they are read; consumers receive each message in one pull."""
    for damaged, at, data in (
        (plain[3:5], 0, bytes(20)), (plain[3:4], 7, b"\x77"), (plain[-1:], 11, b"\x77"),
        (plain[:1], 8, b"\xff"), (plain[2:3], 19, b"\x77"), (plain[6:9], 0, b"\xff" * 20),
    ):  # fmt: skip
        before = [_entry_of(disk, each) for each in damaged]
        for each in damaged:
            alter_entry(disk, each, at, data)
        answer = await pull(site, "plain", plain[0].queue_offset, 1)
        found = [each.queue_offset for each in read_records(answer.body)]
        if at != 19:
            site.compare("the first messages across damaged entries", list(range(len(found))), found)
        same(site, "with damaged entries", kept, await seen(site))
        tag = damaged[0].properties.get("TAGS", "tag1")
        answer = await pull(site, "plain", 0, 1, subscription=tag)
        observed = [each.raw for each in read_records(answer.body)]
        expected = [each.raw for each in plain if each.properties.get("TAGS") == tag]
        site.compare(f"whether the messages of {tag} are those", True, expected[: len(observed)] == observed)
        site.compare("the repaired entries", before, [_entry_of(disk, each) for each in damaged])


async def _pauses(site: Site, kept: Kept, peer: _Peer, disk: SimulatedDisk, record: StoredRecord) -> None:
    """A record that no peer has is left out, and requested less and less often."""
    _break(disk, record)
    same(site, "with a damaged record", kept.without([record]), await seen(site))
    began_s, times = site.now_ms // 1000, []
    for _ in range(15):
        await asyncio.sleep(10)
        await peer.register()
    times = [each // 1000 - began_s for each, _ in peer.asked]
    site.compare("the requested records", {record.commit_offset}, {each for _, each in peer.asked})
    gaps = [later - one for one, later in pairwise(times)]
    site.compare("the seconds between the requests", [10, 20, 40], gaps[:3])
    peer.answers[record.commit_offset] = record.raw


async def _wrong_answers(
    site: Site, kept: Kept, peer: _Peer, disk: SimulatedDisk, plain: list[StoredRecord]
) -> None:
    """Only the record that the entry describes is written."""
    record, other = plain[7], plain[6]
    shorter = len(record.raw) - 1
    for what, answer in (
        ("no bytes", b""), ("another record", other.raw), ("a part", record.raw[:-1]),
        ("more", record.raw + b"\0"),
        ("another queue", record.raw[:15] + b"\0" + record.raw[16:]),
        ("another offset", record.raw[:27] + b"\x63" + record.raw[28:]),
        ("another place", record.raw[:35] + b"\0" + record.raw[36:]),
        ("another body", record.raw[:_BODY_AT] + b"\xff" + record.raw[_BODY_AT + 1 :]),
        ("a smaller size", shorter.to_bytes(4, "big") + record.raw[4:-1]),
        ("another tag", record.raw.replace(b"TAGS\x01tag", b"TAGS\x01taG")),
    ):  # fmt: skip
        _break(disk, record)
        broken = _bytes_of(disk, record)
        peer.answers[record.commit_offset] = answer
        await pull(site, "plain", record.queue_offset, 1, maxMsgNums=1, expects=None)
        for _ in range(2):
            await asyncio.sleep(_ROUND_S)
        is_kept = answer == record.raw or _bytes_of(disk, record) == broken
        site.compare(f"whether {what} is not written", True, is_kept)
        peer.answers[record.commit_offset] = record.raw
        await _until_whole(site, peer, disk, record)
    same(site, "with repaired records", kept, await seen(site))


async def _until_whole(site: Site, peer: _Peer, disk: SimulatedDisk, record: StoredRecord) -> None:
    for _ in range(70):
        if _bytes_of(disk, record) == record.raw:
            return
        await peer.register()
        await asyncio.sleep(5)
    site.report(f"the record at {record.commit_offset} is not repaired")


async def _together(
    site: Site, kept: Kept, peer: _Peer, disk: SimulatedDisk, plain: list[StoredRecord]
) -> None:
    """The search for an entry passes over a damaged record; once it is repaired, a search finds it."""
    before, record = plain[4], plain[5]
    peer.answers[record.commit_offset] = record.raw
    _break(disk, record)
    alter_entry(disk, before, 0, bytes(20))
    for each in (before, record):
        await pull(site, "plain", each.queue_offset, 1, maxMsgNums=1, expects=None)
    await _until_whole(site, peer, disk, record)
    alter_entry(disk, record, 0, bytes(20))
    same(site, "with an entry of a repaired record", kept, await seen(site))


async def _durable(site: Site, kept: Kept, peer: _Peer, disk: SimulatedDisk, record: StoredRecord) -> None:
    """A repaired record is on the disk at once."""
    peer.answers[record.commit_offset] = record.raw
    _break(disk, record)
    await pull(site, "plain", record.queue_offset, 1, expects=None)
    for _ in range(200):
        if _bytes_of(disk, record) == record.raw:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.01)
    await site.lose_power()
    await peer.register()
    same(site, "after a repair and a power loss", kept, await seen(site))


async def _scrubbed(site: Site, peer: _Peer, disk: SimulatedDisk, plain: list[StoredRecord]) -> None:
    """A scrub finds what no client reads."""
    record, listed = plain[4], plain[9]
    before = _entry_of(disk, listed)
    peer.answers[record.commit_offset] = record.raw
    _break(disk, record)
    alter_entry(disk, listed, 7, b"\x77")
    for _ in range(8):
        await asyncio.sleep(10)
        await peer.register()
    site.compare("whether an idle record is whole", True, _bytes_of(disk, record) == record.raw)
    site.compare("an idle entry", before, _entry_of(disk, listed))


async def _late(site: Site, peer: _Peer, disk: SimulatedDisk, record: StoredRecord) -> None:
    """An answer after the topic was deleted changes nothing."""
    peer.answers[record.commit_offset] = record.raw
    peer.held = []
    _break(disk, record)
    await pull(site, "plain", record.queue_offset, 0, expects=None)
    forgive_lost(site)
    await asyncio.sleep(_ROUND_S)
    site.compare("whether the record was requested", True, bool(peer.held))
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="plain")
    broken = _bytes_of(disk, record)
    peer.release()
    await asyncio.sleep(_ROUND_S)
    site.compare("whether a record of a deleted topic stays", True, broken == _bytes_of(disk, record))


_DAMAGED: Final = 20
_A_ROUND: Final = 16
"""So many records are requested in one round."""


async def many_repairs(site: Site) -> None:
    """Damage more records than one round requests: the next round begins behind those of the last one."""
    site.rule = chapters.DAMAGED_FILES
    await site.cluster.stop(SLAVE)
    await make_topic(site, "t")
    for number in range(_DAMAGED + 1):
        await send(site, "t", f"{number:02}" * 20, of={"WAIT": "false"})
    await flushed()
    disk = site.cluster.machines[MASTER].disk
    stored = (await _stored(site))[:_DAMAGED]
    peer = await _Peer(site).open()
    site.watch.judges_answers = False  # messages are left out until they are repaired
    for each in stored:
        _break(disk, each)
    for each in stored:
        await pull(site, "t", each.queue_offset, maxMsgNums=1, expects=None)
    await asyncio.sleep(50)
    places = [each.commit_offset for each in stored]
    rounds = _rounds(peer)
    site.compare("the seconds between rounds that repair nothing", [10, 20], [
        later - one for one, later in pairwise(rounds)][:2])  # fmt: skip
    again = [*places, *places]
    for number, asked in enumerate(list(rounds.values())[:3]):
        begin = number * _A_ROUND % _DAMAGED
        site.compare(f"the records requested in round {number}", again[begin : begin + _A_ROUND], asked)
    peer.answers = {each.commit_offset: each.raw for each in stored}
    peer.asked.clear()
    for _ in range(10):
        await peer.register()
        await asyncio.sleep(10)
    whole = [_bytes_of(disk, each) == each.raw for each in stored]
    site.compare("whether the records are repaired", [True] * _DAMAGED, whole)
    rounds = _rounds(peer)
    site.compare("the numbers of requests in rounds that repair", [_A_ROUND, _DAMAGED - _A_ROUND], [
        len(each) for each in rounds.values()])  # fmt: skip
    site.compare("the seconds between rounds that repair", [5], [
        later - one for one, later in pairwise(rounds)])  # fmt: skip
    await _found_meanwhile(site, peer, disk, stored)


async def _stored(site: Site) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    while more := await records(site, "t", len(found)):
        found += more
    return found


def _rounds(peer: _Peer) -> dict[int, list[int]]:
    """Return the requested records of each round, by its second."""
    rounds: dict[int, list[int]] = {}
    for time_ms, place in peer.asked:
        rounds.setdefault(time_ms // 1000, []).append(place)
    return rounds


async def _found_meanwhile(site: Site, peer: _Peer, disk: SimulatedDisk, stored: list[StoredRecord]) -> None:
    """A newly damaged record ends the pause behind one that no peer has."""
    first, second = stored[3], stored[5]
    peer.answers = {second.commit_offset: second.raw}
    peer.asked.clear()
    _break(disk, first)
    await pull(site, "t", first.queue_offset, maxMsgNums=1, expects=None)
    for _ in range(4):
        await peer.register()
        await asyncio.sleep(10)
    count = len(peer.asked)
    _break(disk, second)
    await pull(site, "t", second.queue_offset, maxMsgNums=1, expects=None)
    await asyncio.sleep(6)
    asked = {place for _, place in peer.asked[count:]}
    site.compare("the records requested at once", {first.commit_offset, second.commit_offset}, asked)
    site.compare("whether the second is repaired", True, _bytes_of(disk, second) == second.raw)


_TAGGED: Final = 130


async def damaged_tags(site: Site) -> None:
    """A damaged tag code in a whole block of compared entries is found again."""
    site.rule = chapters.DAMAGED_FILES
    await make_topic(site, "t")
    for number in range(_TAGGED):
        await send(site, "t", f"{number}", of={"TAGS": f"tag{number % 7}"})
    await flushed()
    disk = site.cluster.machines[MASTER].disk
    for damaged in (None, 8, 99, 0, 105):
        if damaged is not None:
            disk.damage("/store/consumequeue/t/0/00000000000000000000", damaged * 20 + 19, b"\x77")
        for tag in range(7):
            offset, found = 0, []
            while offset < _TAGGED:
                answer = await pull(site, "t", offset, expects=None, subscription=f"tag{tag}")
                found += [int(each.body) for each in read_records(answer.body)] if not answer.code else []
                offset = int(answer.fields["nextBeginOffset"])
            expected = [number for number in range(_TAGGED) if number % 7 == tag]
            site.compare(f"the messages of tag{tag} with {written(damaged)} altered", expected, found)


REPAIRED: Final = Inspection(
    "repaired records", repaired, {"store": SMALL, "cluster": CLUSTER},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip
MANY_REPAIRS: Final = Inspection(
    "many repairs", many_repairs, {"store": SMALL, "cluster": CLUSTER},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip
DAMAGED_TAGS: Final = Inspection("damaged tags", damaged_tags)
