"""Our broker in each scene of the suite hostile: its limits, accounts, secret and consumer.

The servers run on loopback in a thread of this process. The limits are those of the configuration unless
`is_small`: then few connections and names reach them, so that a defect is found in less time.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hostile.attack import Names, Scene, Signer
from mqproof.conformance.hostile.seen import Reading, Victim
from mqproof.conformance.hosts.loopback_servers import LoopbackServers, loopback_servers
from mqproof.conformance.hosts.processes import free_ports
from mqproof.conformance.wire.server_connection import Address
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.dledger.config import Membership, Peer
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address as NetworkAddress
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.security.peer_network import PeerConfig

_NAME: Final = "broker-a"
_SECRET: Final = b"the secret of the suite hostile"
ADMINISTRATOR: Final = Signer("administrator", "secret-of-the-administrator")
STRANGER: Final = Signer("stranger", "secret-of-the-stranger")
ACCOUNTS: Final = f"""\
accounts:
- accessKey: {ADMINISTRATOR.access_key}
  secretKey: {ADMINISTRATOR.secret_key}
  admin: true
- accessKey: {STRANGER.access_key}
  secretKey: {STRANGER.secret_key}
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
"""
"""The file of the accounts of the scene: an administrator, and a stranger without rights."""
_SMALL: Final = Names("", "", connections=1510, names=410, pulls=410)
_SMALL_MAX: Final = 400
_SMALL_FILES_MAX: Final = 12_000
"""A quarter of them may be connections, and half of those of one address."""


@contextmanager
def attacked(scene: Scene, *, is_small: bool = False) -> Iterator[Victim]:
    """Yield our servers of the scene, which run within the block."""
    base = BrokerConfig(name=_NAME, port=0)
    if is_small:
        base = replace(base, topics_max=_SMALL_MAX, groups_max=_SMALL_MAX, holds_max=_SMALL_MAX)
    known = _SMALL if is_small else Names("", "")
    files_max = _SMALL_FILES_MAX if is_small else None
    ports: list[int] = free_ports(3) if scene in (Scene.SLAVES, Scene.MEMBERS) else []

    def configs(folder: Path) -> Sequence[BrokerConfig]:
        return _CONFIGS[scene](base, folder, ports)

    with expected_warnings("mqproof.impl"), loopback_servers(configs, files_max) as servers:
        yield _victim(scene, servers, known, ports)


def _victim(scene: Scene, servers: LoopbackServers, known: Names, ports: list[int]) -> Victim:
    addresses = tuple(Address(one.host, one.port) for one in servers.addresses)
    victim = Victim(addresses, known=known)
    match scene:
        case Scene.ACCOUNTS:
            known = replace(known, account=STRANGER, administrator=ADMINISTRATOR)
            return replace(victim, administrator=ADMINISTRATOR, known=known)
        case Scene.SLAVES:
            return replace(victim, ports=(Address("127.0.0.1", ports[0]),))
        case Scene.MEMBERS:
            members = tuple(Address("127.0.0.1", port) for port in ports)
            return replace(victim, ports=members, known=replace(known, group=_NAME))
        case Scene.CONSUMER:
            return replace(victim, read=_Reader(servers.name_server).read)
    return victim


def _plain(base: BrokerConfig, _: Path, __: list[int]) -> Sequence[BrokerConfig]:
    return (base,)


def _with_accounts(base: BrokerConfig, folder: Path, _: list[int]) -> Sequence[BrokerConfig]:
    path = _private(folder / "plain_acl.yml", ACCOUNTS.encode())
    return (replace(base, acl_enabled=True, acl_path=path),)


def _with_secret(base: BrokerConfig, folder: Path, ports: list[int]) -> Sequence[BrokerConfig]:
    access = PeerConfig(_private(folder / "secret", _SECRET))
    replication = ReplicationConfig(Role.SYNC_MASTER, ha_port=ports[0])
    return (replace(base, replication=replication, peer_access=access),)


def _in_group(base: BrokerConfig, _: Path, ports: list[int]) -> Sequence[BrokerConfig]:
    peers = tuple(Peer(f"n{number}", NetworkAddress("127.0.0.1", port)) for number, port in enumerate(ports))
    return tuple(
        replace(base, membership=Membership(is_member=True, peers=peers, self_id=peer.id)) for peer in peers
    )


def _private(path: Path, content: bytes) -> str:
    path.touch(0o600)
    path.write_bytes(content)
    return str(path)


_CONFIGS: Final = {
    Scene.BROKER: _plain,
    Scene.ACCOUNTS: _with_accounts,
    Scene.SLAVES: _with_secret,
    Scene.MEMBERS: _in_group,
    Scene.CONSUMER: _plain,
}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads with a pull consumer of ours."""

    name_server: NetworkAddress

    def read(self, topic: str, begin: int, end: int) -> Reading:
        return asyncio.run(self._read(topic, begin, end))

    async def _read(self, topic: str, begin: int, end: int) -> Reading:
        answers: list[tuple[tuple[int, int], ...]] = []
        session = Session((self.name_server,), production(AsyncioNetwork()))
        await session.start()
        try:
            consumer = PullConsumer(session, "hostile_reader")
            queue = MessageQueue(topic, _NAME, 0)
            while begin < end:
                result = await consumer.pull(queue, begin, max_count=end - begin)
                answers.append(
                    tuple((stored.queue_offset, len(stored.message.body)) for stored in result.messages)
                )
                if result.next_offset <= begin:
                    break
                begin = result.next_offset
        finally:
            await session.stop()
        return Reading(tuple(answers))
