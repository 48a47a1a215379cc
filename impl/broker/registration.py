"""Registers this broker and its topics with every name server."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.address_server import AddressServer, AddressServerError
from mqproof.impl.remoting.bodies import ClusterInfo, RegisterBrokerBody
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    HeaderError,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    UnregisterBrokerRequest,
)
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)

_REGISTER_TIMEOUT_S: Final = 6.0
_SEEK_TIMEOUT_S: Final = 1.0
_UNREGISTER_TIMEOUT_S: Final = 3.0


class Registrar:
    """Registers with all name servers at once; none waits for another, and none needs to answer."""

    def __init__(self, services: Services, client: RemotingClient) -> None:
        self._services = services
        self._client = client
        given = services.config.name_servers
        self._source = given if isinstance(given, AddressServer) else None
        self._name_servers = () if isinstance(given, AddressServer) else tuple(given)
        self._silent: set[Address] = set()

    @property
    def is_fetched(self) -> bool:
        """Whether an address server provides the name servers; `fetch` must then be called periodically."""
        return self._source is not None

    async def fetch(self) -> None:
        """Fetch the list of name servers from the address server; if that fails, keep the current list."""
        assert self._source is not None
        try:
            self._name_servers = await self._source.fetch(self._services.runtime.network)
        except AddressServerError as error:
            _log.warning("the name servers are unchanged: %s", error)

    async def register(self) -> None:
        """Register once at every name server; log a failure once until the next success."""
        config, address = self._services.config, self._services.address
        header = RegisterBrokerRequest(
            broker_name=config.name,
            broker_addr=str(address),
            cluster_name=config.cluster,
            ha_server_addr=str(self._services.ha_address or Address(address.host, address.port + 1)),
            broker_id=config.broker_id,
            # The presence of this field lets a slave register its queues while its name has no master.
            enable_acting_master=False,
        )
        topics = self._services.topics.registered(config.permission)
        if (term := self._services.term()) > 0:
            version = replace(topics.data_version, state_version=term)
            topics = replace(topics, data_version=version)
        body = java_json.write(RegisterBrokerBody(topics), standard=True)
        fields = headers.write(header)
        await self._everywhere(
            lambda: new_request(RequestCode.REGISTER_BROKER, fields, body), _REGISTER_TIMEOUT_S
        )

    async def seek_master(self, known: Address | None) -> None:
        """Register if a name server knows another master of this broker's name than the known one.

        The response to the registration then names the port on which the master accepts slaves. A slave that
        has no master asks often, and this request is small, whereas a registration contains all topics.
        """
        name = self._services.config.name
        for address in self._name_servers:
            request = new_request(RequestCode.GET_BROKER_CLUSTER_INFO)
            try:
                answer = await self._client.invoke(address, request, _SEEK_TIMEOUT_S)
                info = java_json.read(ClusterInfo, answer.body or b"{}")
            except (RemotingError, java_json.BodyError):
                continue  # the periodic registration reports a name server that does not answer
            broker = info.broker_addr_table.get(name)
            master = broker.broker_addrs.get(0) if broker is not None else None
            if master is not None and master != str(known):
                await self.register()
                return

    async def unregister(self) -> None:
        """Unregister from every name server."""
        config = self._services.config
        header = UnregisterBrokerRequest(
            config.name, str(self._services.address), config.cluster, config.broker_id
        )
        fields = headers.write(header)
        await self._everywhere(
            lambda: new_request(RequestCode.UNREGISTER_BROKER, fields), _UNREGISTER_TIMEOUT_S
        )

    async def _everywhere(self, make: Callable[[], Command], timeout_s: float) -> None:
        calls: list[Awaitable[None]] = [
            self._register_at(address, make(), timeout_s) for address in self._name_servers
        ]
        await asyncio.gather(*calls)

    async def _register_at(self, address: Address, request: Command, timeout_s: float) -> None:
        try:
            answer = await self._client.invoke(address, request, timeout_s)
        except RemotingError as error:
            self._complain(address, str(error))
            return
        if answer.code != ResponseCode.SUCCESS:
            self._complain(address, f"{response_name(answer.code)}: {answer.remark}")
        else:
            self._silent.discard(address)
            if request.code == RequestCode.REGISTER_BROKER:
                self._registered(address, answer)

    def _registered(self, address: Address, answer: Command) -> None:
        try:
            self._services.on_registered(headers.read(RegisterBrokerResponse, answer.fields))
        except HeaderError as error:
            self._complain(address, str(error))

    def _complain(self, address: Address, why: str) -> None:
        if address not in self._silent:
            self._silent.add(address)
            _log.warning("name server %s does not know this broker: %s", address, why)
