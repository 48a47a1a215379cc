"""The requests of an administrator.

Queries go to one name server, changes to all of them, and requests to brokers go to their addresses. Every
operation raises RefusalError when a server refuses, UnreachableError when no server responds, and ClientError
when a response is malformed. See docs/reference/protocol/administration.md, "Administration commands".
"""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from msgspec import structs

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ClientError, NoRouteError, RefusalError
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.address_server import NameServers
from mqproof.impl.remoting.bodies import ClusterInfo, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import LANGUAGE, Command, new_request
from mqproof.impl.remoting.headers import RouteRequest
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

MASTER_ID: Final = 0

_TIMEOUT_S: Final = 5.0

_T = TypeVar("_T")
_HeaderT = TypeVar("_HeaderT", bound=headers.Header)


class UnreachableError(ClientError):
    """No server responded. The message has the address and the request."""


class Admin:
    """Connections to name servers and brokers. `async with` closes them at the end."""

    def __init__(
        self, name_servers: NameServers, runtime: Runtime, credentials: Credentials | None = None
    ) -> None:
        self.session = Session(name_servers, runtime, credentials=credentials)
        self.runtime = runtime

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.stop()

    async def ask(
        self,
        broker: Address,
        code: RequestCode,
        header: headers.Header | None = None,
        body: bytes = b"",
        *,
        more: Mapping[str, str] | None = None,
        language: str = LANGUAGE,
    ) -> Command:
        """Send a request to a broker or any other server, and return its successful response within 5 s.

        `more` are fields beside the header. `language` is the client language that the request reports.
        """
        fields = {**(headers.write(header) if header else {}), **(more or {})}
        request = structs.replace(new_request(code, fields, body), language=language)
        try:
            answer = await self.session.remoting.invoke(broker, request, _TIMEOUT_S)
        except RemotingError as error:
            raise UnreachableError(f"{code.name}: {error}") from None
        return _good(code, broker, answer)

    async def ask_name_server(
        self, code: RequestCode, header: headers.Header | None = None, body: bytes = b""
    ) -> Command:
        """Return the successful response of the first name server that responds at all."""
        fields = headers.write(header) if header else {}
        try:
            answer = await self.session.name_servers.invoke(code, fields, body, _TIMEOUT_S)
        except RemotingError as error:
            raise UnreachableError(f"{code.name}: {error}") from None
        return _good(code, "the name server", answer)

    async def ask_all_name_servers(
        self, code: RequestCode, header: headers.Header | None = None, body: bytes = b""
    ) -> dict[Address, Command]:
        """Send a request to every name server, because they do not synchronise. Returns their responses.

        If one does not respond or refuses, an error is raised. The name servers before it have then processed
        the request.
        """
        try:
            known = await self.session.name_servers.known()
        except RemotingError as error:
            raise UnreachableError(f"{code.name}: {error}") from None
        return {address: await self.ask(address, code, header, body) for address in sorted(known)}

    async def route(self, topic: str) -> TopicRoute:
        """Return the route of a topic. Raises NoRouteError when the name server does not know the topic."""
        try:
            answer = await self.ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest(topic))
        except RefusalError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                raise NoRouteError(f"the name server knows no topic {topic}") from None
            raise
        return read_body(TopicRoute, answer)

    async def cluster_info(self) -> ClusterInfo:
        """Return every broker that the name server knows."""
        answer = await self.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        return read_body(ClusterInfo, answer)

    async def masters(self, cluster: str, *, slaves: bool = False) -> list[Address]:
        """Return the masters of a cluster, sorted by broker name, or all its brokers with `slaves`.

        Raises ClientError when there are none.
        """
        info = await self.cluster_info()
        brokers = [info.broker_addr_table[name] for name in sorted(info.cluster_addr_table.get(cluster, []))]
        found = [
            address
            for broker in brokers
            for id_, address in sorted(broker.broker_addrs.items())
            if slaves or id_ == MASTER_ID
        ]
        if not found:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise ClientError(
                f"no {'broker' if slaves else 'master'} in cluster {cluster}; the clusters are: {known}"
            )
        return [address_of(text) for text in found]

    async def names_at(self, addresses: Iterable[Address]) -> list[str]:
        """Return the names of the brokers at these addresses, sorted."""
        wanted = set(map(str, addresses))
        brokers = (await self.cluster_info()).broker_addr_table
        return sorted(
            name for name, data in brokers.items() if wanted.intersection(data.broker_addrs.values())
        )

    async def masters_of(self, topic: str, cluster: str | None = None) -> dict[str, Address]:
        """Return the masters that have queues of a topic, by broker name.

        Where a master is missing, it is the slave with the lowest id. With a cluster, returns all its
        brokers, even if the name server does not know the topic.
        """
        route = await self.route(cluster or topic)  # brokers have a topic with the name of their cluster
        queued = {data.broker_name for data in route.queue_datas}
        return {
            broker.broker_name: address_of(broker.broker_addrs[min(broker.broker_addrs)])
            for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name)
            if broker.broker_addrs and broker.broker_name in queued
        }


def read_body(kind: type[_T], answer: Command) -> _T:
    """Return the body of a response. Raises ClientError when it is not a `kind`."""
    try:
        return java_json.read(kind, answer.body)
    except ValueError as error:
        raise ClientError(f"the answer is invalid: {error}") from None


def read_header(kind: type[_HeaderT], answer: Command) -> _HeaderT:
    """Return the header of a response. Raises ClientError when it is not a `kind`."""
    try:
        return headers.read(kind, answer.fields)
    except ValueError as error:
        raise ClientError(f"the answer is invalid: {error}") from None


def address_of(text: str) -> Address:
    """Return an address that a name server reported. Raises ClientError when it is invalid."""
    try:
        return Address.parse(text)
    except ValueError as error:
        raise ClientError(f"the name server's answer is invalid: {error}") from None


def _good(code: RequestCode, server: Address | str, answer: Command) -> Command:
    if answer.code == ResponseCode.SUCCESS:
        return answer
    remark = answer.remark or "no remark"
    raise RefusalError(f"{server} refuses {code.name}: {response_name(answer.code)}: {remark}", answer.code)
