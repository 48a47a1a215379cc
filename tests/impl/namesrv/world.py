"""A name server and one client over a simulated network."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigs
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import RegisterBrokerRequest, RouteRequest
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.spec.events import Event, Kind
from tests.impl.left import nothing_left
from tests.impl.no_defects import no_defects

T = TypeVar("T")

BROKER = ("b-a", "10.0.0.1:10911", "C")


class World:
    """A name server with one client. `disk` has the files of a previous name server."""

    def __init__(
        self, loop: SimulatedLoop, config: NameServerConfig | None = None, disk: SimulatedDisk | None = None
    ) -> None:
        self.loop = loop
        self.network = SimulatedNetwork()
        self.disk = disk or SimulatedDisk()
        runtime = simulated(loop, self.network, disk=self.disk)
        self.events: list[Event] = []
        events = EventLog(self.events.append, "namesrv", runtime.clock)
        self.server = NameServer(config or NameServerConfig(port=0), runtime, events)
        self.client = RemotingClient(self.network)
        self.address = Address("", 0)

    async def __aenter__(self) -> "World":
        self.address = await self.server.start()
        return self

    async def __aexit__(self, failure: type[BaseException] | None, *_: object) -> None:
        await self.client.close()
        await self.server.stop()
        if failure is None:
            await nothing_left(self.loop, self.disk)

    async def ask(self, code: int, header: headers.Header | None = None, body: bytes = b"") -> Command:
        fields = headers.write(header) if header else {}
        return await self.client.invoke(self.address, new_request(code, fields, body), 3.0)

    async def register(
        self, *topics: str | TopicConfig, broker: tuple[str, str, str] = BROKER, **more: Any
    ) -> Command:
        """Register a broker with the given topics, or with topic T."""
        name, address, cluster = broker
        version = more.pop("version", 1)
        filter_servers = more.pop("filter_servers", [])
        id_ = more.pop("id", 0)
        header = RegisterBrokerRequest(name, address, cluster, f"{address}9", id_, **more)
        configs = [TopicConfig(topic) if isinstance(topic, str) else topic for topic in topics or ("T",)]
        table = TopicConfigs(DataVersion(version), {config.topic_name: config for config in configs})
        body = java_json.write(RegisterBrokerBody(table, filter_servers))
        return await self.ask(RequestCode.REGISTER_BROKER, header, body)

    async def route_code(self) -> int:
        return (await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest("T"))).code

    def broker_events(self) -> list[Event]:
        """Return the events about brokers."""
        return [event for event in self.events if "broker" in event.attrs]

    def kinds(self) -> list[Kind]:
        return [event.kind for event in self.broker_events()]


def play(
    scenario: Callable[[World], Awaitable[T]],
    config: NameServerConfig | None = None,
    disk: SimulatedDisk | None = None,
) -> T:
    """Run a scenario in a new world."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with World(loop, config, disk) as world:
            return await scenario(world)

    with no_defects():
        return run_simulated(main(), loop)
