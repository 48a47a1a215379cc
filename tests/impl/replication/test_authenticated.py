"""Tests a master and a slave that share a secret, against peers that do not have it or lie.

Method: simulated brokers; the strangers speak the replication stream as a slave does.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.subjects.pair import Pair
from mqproof.impl.admin.admin import Admin, UnreachableError
from mqproof.impl.admin.members import transfer_leadership
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.dledger.config import Membership, Peer
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck, ReplicationConfig, Role
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import Follow
from mqproof.impl.replication.stream import (
    StreamError,
    read_transfer,
    tail_checksum,
    write_position,
    write_proved_position,
)
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.network import Address, Connection
from mqproof.impl.runtime.security.peer_network import PeerConfig, PeerIdentity, PeerNetwork
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.broker.group import IDS, PEERS, Group
from tests.impl.replication.site import RECORD_BYTES_MAX, filled, message, store

T = TypeVar("T")
SECRET = b"0123456789abcdef"
PATH = "/secret"


class SecretPair(Pair):
    """A pair whose brokers share a secret, unless `secret` is empty."""

    def __init__(self, loop: SimulatedLoop, secret: bytes, slaves_secret: bytes) -> None:
        self.has_secret = bool(secret)
        super().__init__(loop)
        for node, content in ((MASTER, secret), (SLAVE, slaves_secret)):
            write_durably(self.machines[node].disk, PATH, content)

    def config(self, node: str) -> BrokerConfig:
        access = PeerConfig(PATH) if self.has_secret else PeerConfig()
        return replace(super().config(node), peer_access=access)


def _play(
    scenario: Callable[[SecretPair], Awaitable[T]], secret: bytes = SECRET, slaves_secret: bytes = SECRET
) -> T:
    loop = SimulatedLoop()

    async def main() -> T:
        async with SecretPair(loop, secret, slaves_secret) as pair:
            return await scenario(pair)

    return run_simulated(main(), loop)


class Liar:
    """A peer that acknowledges everything that it receives, and keeps nothing."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.buffer = bytearray()
        self.received_bytes = 0
        self.is_closed = False

    def begin(self) -> None:
        self.connection.write(write_position(0))

    def received(self, data: bytes) -> None:
        self.received_bytes += len(data)
        self.buffer += data
        while (transfer := read_transfer(self.buffer)) is not None:
            self.connection.write(self.acknowledgement(transfer.position + len(transfer.body)))

    def acknowledgement(self, position: int) -> bytes:
        return write_position(position)

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        self.is_closed = True


async def _strangers(pair: SecretPair, count: int) -> list[Liar]:
    """Connect that many liars from another machine to the port of slaves."""
    machine = pair.machines.get("stranger") or pair.add_machine("stranger")
    ha = pair.brokers[MASTER].replicas.ha_address
    assert ha is not None
    made: list[Liar] = []

    def connected(connection: Connection) -> Liar:
        made.append(Liar(connection))
        made[-1].begin()
        return made[-1]

    for _ in range(count):
        await machine.runtime().network.connect(ha, connected)
    return made


def test_a_master_and_a_slave_with_one_secret_replicate() -> None:
    async def scenario(pair: SecretPair) -> tuple[list[str], list[str]]:
        statuses = [await pair.send(name) for name in ("before", "m0", "m1")]
        await pair.followed()
        statuses.append(await pair.send("m2"))
        await pair.followed()
        return statuses[-1:], pair.names_in(SLAVE)

    assert _play(scenario) == (["SEND_OK"], ["before", "m0", "m1", "m2"])


def test_a_slave_counts_again_after_a_restart_with_its_log() -> None:
    async def scenario(pair: SecretPair) -> tuple[str, list[str]]:
        await pair.followed()
        await pair.send("m0")
        await pair.stop(SLAVE)
        await pair.send("m1")
        await pair.start(SLAVE)
        await pair.followed()
        return await pair.send("m2"), pair.names_in(SLAVE)

    assert _play(scenario) == ("SEND_OK", ["m0", "m1", "m2"])


def test_trust_1_a_stranger_that_acknowledges_does_not_count() -> None:
    """SEND_OK under SYNC_MASTER means that a slave has the message. A stranger keeps nothing."""

    async def scenario(pair: SecretPair) -> tuple[str, int, bool]:
        await pair.followed()
        await pair.send("m0")
        await pair.stop(SLAVE)
        await asyncio.sleep(30)
        strangers = await _strangers(pair, 3)
        await asyncio.sleep(1)
        status = await pair.send("m1")
        return status, sum(one.received_bytes for one in strangers), all(one.is_closed for one in strangers)

    assert _play(scenario) == ("SLAVE_NOT_AVAILABLE", 0, True)


def test_without_a_secret_a_stranger_counts_as_in_released_brokers() -> None:
    """The contrast to the test above: the port is open by default, and the start of the broker says so."""

    async def scenario(pair: SecretPair) -> str:
        await pair.stop(SLAVE)
        await asyncio.sleep(30)
        await _strangers(pair, 1)
        await asyncio.sleep(1)
        return await pair.send("m0")

    assert _play(scenario, b"", b"") == "SEND_OK"


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_strangers_do_not_keep_out_the_slave(secret: bytes) -> None:
    async def scenario(pair: SecretPair) -> tuple[str, list[str]]:
        await pair.followed()
        await pair.stop(SLAVE)
        await _strangers(pair, 100)
        await asyncio.sleep(1)
        await pair.start(SLAVE)
        await pair.followed()
        return await pair.send("m0"), pair.names_in(SLAVE)

    assert _play(scenario, secret, secret) == ("SEND_OK", ["m0"])


def test_a_slave_with_another_secret_does_not_follow() -> None:
    async def scenario(pair: SecretPair) -> tuple[str, list[str]]:
        await asyncio.sleep(60)
        return await pair.send("m0"), pair.names_in(SLAVE)

    assert _play(scenario, SECRET, b"another secret....") == ("SLAVE_NOT_AVAILABLE", [])


# The proof of the log.


def test_a_proof_of_the_masters_log_is_accepted_and_counts() -> None:
    master, slave = filled(5), store()
    acks = Acks()
    feed = Feed(master, acks, LogCheck.COMPARED, proved=True)
    follow = Follow(slave, RECORD_BYTES_MAX, LogCheck.COMPARED, proves=True)
    feed.received(follow.report())
    assert acks.slaves == 1, "an empty log has nothing to prove"
    while frame := feed.next_frame():
        feed.received(follow.received(frame))
    assert acks.highest == master.log_end == slave.log_end


def test_a_slave_with_a_log_counts_from_its_first_acknowledgement_on() -> None:
    master, acks = filled(5), Acks()
    slave = filled(3)
    feed = Feed(master, acks, LogCheck.COMPARED, proved=True)
    follow = Follow(slave, RECORD_BYTES_MAX, LogCheck.COMPARED, proves=True)
    feed.received(follow.report())
    assert acks.slaves == 0
    frame = feed.next_frame()
    feed.received(follow.received(frame))
    assert (acks.slaves, acks.highest) == (1, master.log_end)


@pytest.mark.parametrize("reports", [1, 2])
def test_a_wrong_proof_ends_the_connection(reports: int) -> None:
    master, acks = filled(5), Acks()
    feed = Feed(master, acks, LogCheck.COMPARED, proved=True)
    start = master.log_last_record
    assert start is not None
    if reports == 2:
        feed.received(write_proved_position(start, tail_checksum(master, start)))
        feed.next_frame()
    position = start if reports == 1 else master.log_end
    with pytest.raises(StreamError, match="differs from this master's before"):
        feed.received(write_proved_position(position, tail_checksum(master, position) ^ 1))
    assert (acks.slaves, acks.highest) == (0, 0)


def test_the_proof_covers_the_end_of_the_log_within_a_segment() -> None:
    log = filled(40, size=100)
    end, segment = log.log_end, log.log_segment_bytes
    assert end > segment
    assert tail_checksum(log, 0) == 0
    assert tail_checksum(log, 5) == zlib.crc32(log.log_read(0, 5))
    assert tail_checksum(log, segment) == zlib.crc32(log.log_read(segment - 1024, 1024))
    assert tail_checksum(log, segment + 10) == zlib.crc32(log.log_read(segment, 10))
    longer = filled(41, size=100)
    longer.append(message(99))
    assert tail_checksum(log, longer.log_end) != tail_checksum(longer, longer.log_end)


# Groups.


class SecretGroup(Group):
    def config(self, id_: str) -> BrokerConfig:
        return replace(super().config(id_), peer_access=PeerConfig(PATH))


def test_members_with_one_secret_elect_a_leader_and_strangers_are_refused() -> None:
    loop = SimulatedLoop()

    async def main() -> str:
        group = SecretGroup(loop, 0, ())
        for disk in group.disks.values():
            write_durably(disk, PATH, SECRET)
        async with group:
            sent = await group.send("hello")
            for secret, purpose in ((b"another secret....", "group broker-a"), (SECRET, "group other")):
                stranger = PeerIdentity(secret, "x", purpose, group.runtime.random.randbytes)
                with pytest.raises(OSError, match="do both ends have the same peer secret"):
                    await PeerNetwork(group.network, stranger).connect(PEERS[0].address, Liar)
            leader = await group.master()
            to = next(id_ for id_ in IDS if id_ != leader)
            broker = Address("10.0.0.1", 10_911 + 10 * IDS.index(leader))
            write_durably(group.runtime.disk, PATH, SECRET)
            async with Admin([group.names], group.runtime) as admin:
                with pytest.raises(UnreachableError):
                    await transfer_leadership(admin, broker, to)
                assert await transfer_leadership(admin, broker, to, PeerConfig(PATH)) == leader
            return sent.status

    assert run_simulated(main(), loop) == "SEND_OK"


# What a configuration may combine.


@pytest.mark.parametrize(
    "fields",
    [
        {"replication": ReplicationConfig(Role.SYNC_MASTER)},
        {"replication": ReplicationConfig(Role.ASYNC_MASTER)},
        {"membership": Membership(True, "g", (Peer("n0", Address("127.0.0.1", 1)),), "n0")},
    ],
)
def test_access_control_and_an_open_port_are_refused_together(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="set peerSecretFile or peerAddresses"):
        BrokerConfig(acl_enabled=True, **fields)
    BrokerConfig(acl_enabled=True, peer_access=PeerConfig(PATH), **fields)
    BrokerConfig(acl_enabled=True, peer_access=PeerConfig(peer_addresses=("10.0.0.1",)), **fields)
    BrokerConfig(acl_enabled=False, **fields)


def test_access_control_without_such_a_port_needs_no_secret() -> None:
    BrokerConfig(acl_enabled=True)
    BrokerConfig(acl_enabled=True, broker_id=1, replication=ReplicationConfig(Role.SLAVE))


def test_slaves_cannot_prove_a_log_that_is_not_compared() -> None:
    replication = ReplicationConfig(Role.SYNC_MASTER, log_check=LogCheck.AS_SHIPPED)
    with pytest.raises(ValueError, match="slaves must prove their logs"):
        BrokerConfig(replication=replication, peer_access=PeerConfig(PATH))
