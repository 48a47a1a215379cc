"""Registers this broker and its topics with every name server."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.address_server import AddressServer, AddressServerError
from mqproof.impl.remoting.bodies import BrokerData, ClusterInfo, RegisterBrokerBody
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
        self._masterless: set[Address] = set()
        """The name servers that knew no master of this broker's name when they were asked last."""

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
        filter_servers = self._services.filter_servers.addresses()
        body = java_json.write(RegisterBrokerBody(topics, filter_servers), standard=True)
        fields = headers.write(header)
        await self._everywhere(
            lambda: new_request(RequestCode.REGISTER_BROKER, fields, body), _REGISTER_TIMEOUT_S
        )

    async def seek_master(self, known: Address | None) -> None:
        """Register if a name server knows a master that this slave does not follow yet.

        That is another master than the known one, or a master that has registered again. The response to the
        registration then names the port on which the master accepts slaves. A slave that has no master asks
        often, and this request is small, whereas a registration contains all topics.
        """
        for asked in asyncio.as_completed([self._is_news(each, known) for each in self._name_servers]):
            if await asked:
                await self.register()  # at once: another name server may be silent
                return

    async def _master_at(self, address: Address) -> str | None:
        """Return the master that a name server knows; None if there is none, "" if no answer is readable."""
        try:
            broker = await self._broker_at(address)
        except RemotingError:
            return ""  # the periodic registration reports a name server that does not answer
        return broker.broker_addrs.get(0) if broker is not None else None

    async def _broker_at(self, name_server: Address) -> BrokerData | None:
        """Return what a name server knows of this broker's name. Raises RemotingError."""
        request = new_request(RequestCode.GET_BROKER_CLUSTER_INFO)
        answer = await self._client.invoke(name_server, request, _SEEK_TIMEOUT_S)
        try:
            info = java_json.read(ClusterInfo, answer.body or b"{}")
        except java_json.BodyError as error:
            raise RemotingError(str(error)) from None
        return info.broker_addr_table.get(self._services.config.name)

    async def _is_news(self, address: Address, known: Address | None) -> bool:
        master = await self._master_at(address)
        if master is None:
            self._masterless.add(address)
        if not master:
            return False
        returned = address in self._masterless
        self._masterless.discard(address)
        return returned or master != str(known)

    async def peers(self) -> tuple[Address, ...]:
        """Return the other brokers of this broker's name that the first answering name server knows."""
        own = str(self._services.address)
        for name_server in self._name_servers:
            try:
                broker = await self._broker_at(name_server)
                addresses = sorted(broker.broker_addrs.items()) if broker is not None else []
                return tuple(Address.parse(text) for _, text in addresses if text != own)
            except (RemotingError, ValueError):
                continue  # the periodic registration reports a name server that does not answer
        return ()

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
