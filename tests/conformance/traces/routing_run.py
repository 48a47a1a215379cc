"""Simulated runs with faults: two name servers, a master with its slave, another master, and a client."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import RouteRequest, UpdateTopicRequest
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import StoreConfig
from mqproof.spec.events import Event

_SERVERS = {"ns-0": Address("127.0.0.1", 9876), "ns-1": Address("127.0.0.1", 9877)}
_STORE = StoreConfig(
    commit_log_segment_bytes=1 << 13, consume_queue_segment_bytes=20_000, index_slots=10, index_entries=100
)
_BROKERS = {"a": ("b-a", 0, 10911), "a-slave": ("b-a", 1, 10921), "b": ("b-b", 0, 10931)}
"""Broker name, id and port."""


class _Site:
    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.chance = random.Random(seed)
        self.network = SimulatedNetwork(delay_s=0.001)
        self.events: list[Event] = []
        self.client = RemotingClient(self.network)
        self.servers: dict[str, NameServer] = {}
        self.brokers: dict[str, Broker] = {}
        self.silent: Address | None = None
        self._loop = loop
        self._seed = seed
        self._disks = {node: SimulatedDisk() for node in _BROKERS}
        clock = self.runtime().clock
        self._logs = {node: EventLog(self.events.append, node, clock) for node in _SERVERS}

    def runtime(self, disk: SimulatedDisk | None = None) -> Runtime:
        return simulated(self._loop, self.network, self._seed, disk or SimulatedDisk())

    async def start_server(self, node: str) -> None:
        config = NameServerConfig(port=_SERVERS[node].port)
        self.servers[node] = NameServer(config, self.runtime(), self._logs[node])
        await self.servers[node].start()

    async def start_broker(self, node: str) -> None:
        name, number, port = _BROKERS[node]
        role = Role.SLAVE if number else Role.ASYNC_MASTER
        config = BrokerConfig(
            name=name,
            broker_id=number,
            port=port,
            name_servers=tuple(_SERVERS.values()),
            store_directory="/store",
            store=_STORE,
        )
        config = replace(config, replication=ReplicationConfig(role=role))
        self.brokers[node] = Broker(config, self.runtime(self._disks[node]))
        await self.brokers[node].start()

    def kill(self, node: str) -> None:
        self.brokers.pop(node).kill()
        self._disks[node].crash_process()

    async def request(self, address: Address, code: int, header: headers.Header) -> None:
        """Send one request; its answer does not matter."""
        with suppress(RemotingError):
            await self.client.invoke(address, new_request(code, headers.write(header)), 3.0)

    async def stop(self) -> None:
        await self.client.close()
        for broker in self.brokers.values():
            await broker.stop()
        for server in self.servers.values():
            await server.stop()


async def _step(site: _Site) -> None:
    chance = site.chance
    down = [node for node in _BROKERS if node not in site.brokers]
    masters = [node for node in site.brokers if _BROKERS[node][1] == 0]
    faults = ("kill", "stop", "start", "start", "server", "silence", "lost")
    match chance.choice(("topic", "sleep", *faults)):
        case "topic" if masters:
            address = Address("127.0.0.1", _BROKERS[chance.choice(masters)][2])
            header = UpdateTopicRequest(chance.choice("TU"), "TBW102", 4, 4, 6)
            await site.request(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        case "sleep":
            await asyncio.sleep(chance.choice((5, 40, 140)))
        case "kill" if site.brokers:
            site.kill(chance.choice(sorted(site.brokers)))
        case "stop" if site.brokers:
            await site.brokers.pop(chance.choice(sorted(site.brokers))).stop()
        case "start" if down:
            await site.start_broker(chance.choice(down))
        case "server":
            node = chance.choice(sorted(site.servers))
            await site.servers.pop(node).stop()
            await asyncio.sleep(0.1)
            await site.start_server(node)
        case "silence" if site.silent is None:
            site.silent = chance.choice(sorted(_SERVERS.values()))
            site.network.silence(site.silent)
        case "lost" if site.silent and site.brokers:
            # The isolated name server does not see the closed connection, and must detect it itself.
            site.kill(chance.choice(sorted(site.brokers)))
            site.network.heal(site.silent)
            site.silent = None


async def _live(site: _Site, steps: int) -> None:
    for node in _SERVERS:
        await site.start_server(node)
    for node in _BROKERS:
        await site.start_broker(node)
    for _ in range(steps):
        await _step(site)
        for address in _SERVERS.values():
            for topic in ("T", "U", "TBW102"):
                await site.request(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest(topic))
        await asyncio.sleep(site.chance.choice((0.1, 3, 31)))
    await site.stop()


def run(seed: int, steps: int = 16) -> list[Event]:
    """Return the name servers' events of one run; the seed determines everything."""
    loop = SimulatedLoop()
    site = _Site(loop, seed)
    with expected_warnings("mqproof.impl"):
        run_simulated(_live(site, steps), loop)
    return site.events
