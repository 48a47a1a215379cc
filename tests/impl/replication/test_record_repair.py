"""Tests the repair of damaged records from peers: a slave, a master, and the members of a group.

Source: docs/reference/protocol/storing.md, "Damaged files". Whole brokers run on simulated machines. A disk
is damaged, and what a consumer receives from that node is read from its store.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from mqproof.conformance.hosts.simulated import MASTER, MEMBERS, SLAVE, Cluster, Setup
from mqproof.conformance.subjects.pair import TOPIC, Pair, play
from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.record_repair import INTERVAL_S, RecordRepair
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.damage import DamageKind, Outcome
from mqproof.impl.store.entry_repair import LostRecord
from mqproof.impl.store.files import record

LOG = "/store/commitlog/00000000000000000000"
REPAIRED = DamageKind.RECORD, Outcome.REPAIRED
SKIPPED = DamageKind.RECORD, Outcome.SKIPPED


def _bodies(broker: Broker, topic: str = TOPIC) -> list[bytes]:
    """Return what a consumer receives from this broker, without the padding."""
    found = broker.store.get(topic, 0, 0).records
    return [record.decode(data).message.body.rstrip(b".") for data in found]


def _place(broker: Broker, offset: int, topic: str = TOPIC) -> tuple[int, int]:
    (unit,) = broker.store.units(topic, 0, offset, 1)
    return unit.commit_offset, unit.size


def _damage(cluster: Cluster, node: str, path: str, offset: int, data: bytes) -> None:
    cluster.machines[node].disk.damage(path, offset, data)


@pytest.mark.parametrize("node", [MASTER, SLAVE])
@pytest.mark.parametrize("lost_write", [False, True], ids=["bit flip", "lost write"])
def test_a_damaged_record_is_repaired_from_the_other_broker(
    node: str, lost_write: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(pair: Pair) -> None:
        await pair.followed()
        for number in range(4):
            assert await pair.send(f"m{number}") == "SEND_OK"
        await pair.followed()
        broker = pair.brokers[node]
        at, size = _place(broker, 1)
        before = broker.store.record_at(at)
        changed = bytes(size) if lost_write else b"?"
        _damage(pair, node, LOG, at if lost_write else at + 90, changed)
        assert _bodies(broker) == [b"m0", b"m2", b"m3"], "it is left out, and reported"
        await asyncio.sleep(2 * INTERVAL_S)
        assert _bodies(broker) == [b"m0", b"m1", b"m2", b"m3"]
        assert broker.store.record_at(at) == before
        assert broker.store.damage.counts[SKIPPED] == broker.store.damage.counts[REPAIRED] == 1
        assert broker.store.lost_records() == ()

    with caplog.at_level("WARNING", logger="mqproof.impl.store.damage"):
        play(scenario)
    assert [line.split(": ")[-1] for line in caplog.messages if "damaged record" in line] == [
        "skipped",
        "repaired",
    ]


def test_a_repaired_record_is_durable() -> None:
    async def scenario(pair: Pair) -> list[bytes]:
        await pair.followed()
        for number in range(3):
            await pair.send(f"m{number}")
        await pair.followed()
        at, _ = _place(pair.slave, 0)
        await asyncio.sleep(15)
        _damage(pair, SLAVE, LOG, at + 90, b"?")
        _bodies(pair.slave)
        await asyncio.sleep(2 * INTERVAL_S)
        pair.lose_power(SLAVE)
        await pair.start(SLAVE)
        return _bodies(pair.slave)

    assert play(scenario) == [b"m0", b"m1", b"m2"]


def test_a_peer_with_the_same_damage_cannot_repair_it_and_is_asked_less_and_less() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.followed()
        await pair.send("m0")
        await pair.followed()
        at, _ = _place(pair.slave, 0)
        for node in (MASTER, SLAVE):
            _damage(pair, node, LOG, at + 90, b"?")
            assert _bodies(pair.brokers[node]) == []
        await asyncio.sleep(10 * INTERVAL_S)
        for node in (MASTER, SLAVE):
            assert _bodies(pair.brokers[node]) == []
            assert pair.brokers[node].store.damage.counts[REPAIRED] == 0

    play(scenario)


def test_a_member_of_a_group_repairs_a_record_from_the_others() -> None:
    async def scenario() -> None:
        cluster = Cluster(loop, 1, Setup(elected=True))
        await cluster.start_all()
        session = cluster.session("client")
        await session.start()
        producer = Producer(session, ProducerConfig("PG"))
        while cluster.master is None:
            await asyncio.sleep(1)
        for number in range(3):
            await producer.send(Message("BenchmarkTest", f"m{number}".encode(), queue_id=0))
        await asyncio.sleep(10)
        for node in MEMBERS:
            broker = cluster.brokers[node]
            queue = next(each for each in range(1024) if broker.store.max_offset("BenchmarkTest", each))
            (unit,) = broker.store.units("BenchmarkTest", queue, 0, 1)
            path = broker.store._log.segments.path_of(unit.commit_offset)
            _damage(cluster, node, path, unit.commit_offset + 88, b"?")
            assert broker.store.get("BenchmarkTest", queue, 0, 1).records == ()
            await asyncio.sleep(2 * INTERVAL_S)
            (data,) = broker.store.get("BenchmarkTest", queue, 0, 1).records
            assert record.decode(data).message.body.startswith(b"m")
            assert broker.store.damage.counts[REPAIRED] == 1
        await session.stop()
        for node in MEMBERS:
            await cluster.stop(node)

    loop = SimulatedLoop()
    run_simulated(scenario(), loop)


@dataclass
class _Store:
    """A store whose records are right if they contain "right"."""

    lost: list[LostRecord]

    def lost_records(self) -> Sequence[LostRecord]:
        return tuple(self.lost)

    def restore_record(self, lost: LostRecord, data: bytes) -> bool:
        if data == b"right":
            self.lost.remove(lost)
        return data == b"right"


@dataclass
class _Peers:
    """Peers that answer requests for records, as a client sees them."""

    answers: dict[Address, bytes]
    asked: list[Address] = field(default_factory=list)

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        assert timeout_s == 3
        self.asked.append(address)
        if (body := self.answers[address]) == b"silent":
            raise RemotingError("no answer")
        return request.answer(ResponseCode.SUCCESS if body else ResponseCode.SYSTEM_ERROR, body=body)

    async def addresses(self) -> Sequence[Address]:
        return tuple(self.answers)


def _lost(count: int) -> list[LostRecord]:
    return [LostRecord("T", 0, number, 100 * number, 100) for number in range(count)]


def _repair(store: _Store, *answers: bytes) -> tuple[RecordRepair, _Peers]:
    peers = _Peers({Address(f"10.0.0.{number}", 1): body for number, body in enumerate(answers)})
    return RecordRepair(peers, store, peers.addresses), peers  # type: ignore[arg-type]


def _rounds(repair: RecordRepair, count: int) -> None:
    for _ in range(count):
        asyncio.run(repair.round())


def test_the_next_peer_is_asked_for_what_one_does_not_have() -> None:
    store = _Store(_lost(3))
    repair, peers = _repair(store, b"silent", b"wrong", b"", b"right", b"right")
    _rounds(repair, 1)
    assert store.lost == []
    assert len(peers.asked) == 1 + 3 + 3 + 3, "a silent peer is asked once, and the last one is not needed"


def test_rounds_that_repair_nothing_become_rare_until_another_record_is_lost() -> None:
    store = _Store(_lost(1))
    repair, peers = _repair(store, b"wrong")
    _rounds(repair, 100)
    assert len(peers.asked) == 6, "after 1, 3, 7, 15, 31 rounds"
    store.lost += _lost(2)[1:]
    _rounds(repair, 1)
    assert len(peers.asked) == 8


def test_a_round_is_left_out_at_most_60_times() -> None:
    repair, peers = _repair(_Store(_lost(1)), b"wrong")
    rounds: list[int] = []
    for number in range(1, 200):
        _rounds(repair, 1)
        if len(peers.asked) > len(rounds):
            rounds.append(number)
    assert rounds == [1, 3, 7, 15, 31, 63, 124, 185]


def test_a_repaired_record_ends_the_pause() -> None:
    store = _Store(_lost(1))
    repair, peers = _repair(store, b"wrong")
    _rounds(repair, 8)
    store.lost.clear()
    _rounds(repair, 1)
    store.lost += _lost(1)
    _rounds(repair, 3)
    assert len(peers.asked) == 3 + 2, "the pauses begin again with one round"
    peers.answers = dict.fromkeys(peers.answers, b"right")
    store.lost += _lost(3)[1:]
    _rounds(repair, 1)
    peers.answers = dict.fromkeys(peers.answers, b"wrong")
    store.lost += _lost(1)
    asked = len(peers.asked)
    _rounds(repair, 1)
    assert len(peers.asked) == asked + 1, "after a repair, the next round is not left out"


def test_a_round_asks_for_16_records() -> None:
    repair, peers = _repair(_Store(_lost(17)), b"wrong")
    _rounds(repair, 1)
    assert len(peers.asked) == 16


def test_a_round_that_failed_is_repeated_at_once() -> None:
    store = _Store(_lost(1))
    repair, peers = _repair(store, b"right")

    async def fail() -> Sequence[Address]:
        raise RemotingError("no name server")

    repair._peers = fail
    with pytest.raises(RemotingError):
        _rounds(repair, 1)
    repair._peers = peers.addresses
    _rounds(repair, 1)
    assert store.lost == []


def test_records_that_no_peer_has_do_not_keep_the_others_waiting() -> None:
    class Some(_Store):
        def restore_record(self, lost: LostRecord, data: bytes) -> bool:
            return super().restore_record(lost, b"right" if lost.queue_offset >= 30 else data)

    store = Some(_lost(40))
    repair, _ = _repair(store, b"wrong")
    _rounds(repair, 20)
    assert [each.queue_offset for each in store.lost] == list(range(30))


def test_a_sound_store_asks_no_peer() -> None:
    repair, peers = _repair(_Store([]), b"right")
    _rounds(repair, 3)
    assert peers.asked == []


@pytest.mark.parametrize("node", [MASTER, SLAVE])
@pytest.mark.parametrize("behind", [0, 1], ids=["last record", "record before"])
def test_a_slave_follows_again_after_the_damaged_end_of_either_log(
    node: str, behind: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its master's record differs from its own: that must not look like another history."""

    async def scenario(pair: Pair) -> None:
        await pair.followed()
        for number in range(4):
            assert await pair.send(f"m{number}") == "SEND_OK"
        await pair.followed()
        at, _ = _place(pair.brokers[node], 3 - behind)
        _damage(pair, node, LOG, at + 90, b"?")
        client = pair.slave.replicas.client
        assert client is not None
        pair.cut()
        await asyncio.sleep(30)
        pair.heal()
        await asyncio.sleep(30)
        assert client.refused == ""
        assert client.is_following
        assert _bodies(pair.brokers[node]) == [b"m0", b"m1", b"m2", b"m3"]
        assert await pair.send("m4") == "SEND_OK"

    with caplog.at_level("WARNING", logger="mqproof.impl"):
        play(scenario)
    if behind == 0 or node == SLAVE:
        outcomes = [line.split(": ")[-1] for line in caplog.messages if "damaged record" in line]
        assert outcomes == ["skipped", "repaired"]
