"""A name server, brokers with scripted answers, and an administrator, on a simulated network."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from mqproof.impl.admin.admin import Admin
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigs
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import RegisterBrokerRequest
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

T = TypeVar("T")

Answer = tuple[int, Mapping[str, str], bytes]
"""Response code, fields, body."""

OK: Answer = (ResponseCode.SUCCESS, {}, b"")


def refusal(code: ResponseCode) -> Answer:
    return (code, {}, b"")


class RoteBroker:
    """Answers each request code with its scripted answer and records the requests."""

    def __init__(self, name: str, answers: Mapping[RequestCode, Answer]) -> None:
        self.name = name
        self.answers = dict(answers)
        self.asked: list[Command] = []
        self.address = Address("", 0)

    def handle(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        self.asked.append(request)
        code, fields, body = self.answers.get(
            RequestCode(request.code), refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
        )
        return request.answer(code, dict(fields), body, remark=None if code == 0 else "by rote")

    def fields_of(self, code: RequestCode) -> list[dict[str, str]]:
        """Return the headers of the requests with this code."""
        return [request.fields for request in self.asked if request.code == code]

    def bodies_of(self, code: RequestCode) -> list[bytes]:
        return [request.body for request in self.asked if request.code == code]


class Site:
    """Two name servers that both know every broker."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.network = SimulatedNetwork()
        self.runtime = simulated(loop, self.network)
        self.client = RemotingClient(self.network)
        self.name_servers = [NameServer(NameServerConfig(port=0), self.runtime) for _ in range(2)]
        self.addresses: list[Address] = []
        self.servers: list[RemotingServer] = []

    async def __aenter__(self) -> "Site":
        self.addresses = [await server.start() for server in self.name_servers]
        self.admin = Admin(self.addresses, self.runtime)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.admin.session.stop()
        await self.client.close()
        for server in self.servers:
            await server.stop()
        for name_server in self.name_servers:
            await name_server.stop()

    async def add_broker(
        self,
        name: str,
        answers: Mapping[RequestCode, Answer],
        *topics: str | TopicConfig,
        id_: int = 0,
        cluster: str = "C",
    ) -> RoteBroker:
        """Add a broker that both name servers know, with topics T and %RETRY%G unless topics are given."""
        broker = RoteBroker(name, answers)
        server = RemotingServer(self.network, broker.handle)
        broker.address = await server.start("10.0.0.1", 0)
        self.servers.append(server)
        configs = [
            TopicConfig(each) if isinstance(each, str) else each for each in topics or ("T", "%RETRY%G")
        ]
        table = TopicConfigs(DataVersion(1), {config.topic_name: config for config in configs})
        header = RegisterBrokerRequest(name, str(broker.address), cluster, "10.0.0.1:1", id_)
        for address in self.addresses:
            await self.ask(
                address, RequestCode.REGISTER_BROKER, header, java_json.write(RegisterBrokerBody(table))
            )
        return broker

    async def ask(
        self, address: Address, code: RequestCode, header: headers.Header | None = None, body: bytes = b""
    ) -> Command:
        fields = headers.write(header) if header else {}
        return await self.client.invoke(address, new_request(code, fields, body), 3.0)


def play(scenario: Callable[[Site], Awaitable[T]]) -> T:
    """Run the scenario with a new `Site` on a simulated event loop, and return its result."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with Site(loop) as site:
            return await scenario(site)

    return run_simulated(main(), loop)
