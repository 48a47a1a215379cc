"""Chooses the name server that a client uses: one at a time, until its connection closes, then the next.

The name servers may disagree, and their responses are not compared. See docs/reference/protocol/clients.md,
"Name servers and routes".
"""

import asyncio
import logging
import random
from collections.abc import Iterable
from typing import Final

from mqproof.impl.remoting.address_server import AddressServer, AddressServerError, NameServers
from mqproof.impl.remoting.channel import ConnectError, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.runtime.network import Address, Network

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 3.0
_WARNING_INTERVAL_S: Final = 60.0


class NameServerChoice:
    """The known name servers, and the one in use."""

    def __init__(
        self, client: RemotingClient, network: Network, name_servers: NameServers, chance: random.Random
    ) -> None:
        self._client = client
        self._network = network
        self._chance = chance
        self._source = name_servers if isinstance(name_servers, AddressServer) else None
        self._addresses: list[Address] = []
        self._current = 0
        self._has_answered = False
        self._warned_s: float | None = None
        """The loop time of the last warning that no name server responds; None while one responds."""
        if not isinstance(name_servers, AddressServer):
            assert name_servers, "a client needs a name server"
            self.become(name_servers)

    @property
    def is_fetched(self) -> bool:
        """Whether the addresses come from an address server, which must be queried again periodically."""
        return self._source is not None

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses known so far."""
        return tuple(self._addresses)

    async def known(self) -> list[Address]:
        """Return every name server, starting with the one in use; at least one.

        Raises:
            ConnectError: no address is known yet, and the address server returns none now.
        """
        if not self._addresses and self._source is not None:
            try:
                self.become(await self._source.fetch(self._network))
            except AddressServerError as error:
                raise ConnectError(f"no name server is known: {error}") from None
        return self._addresses[self._current :] + self._addresses[: self._current]

    def become(self, addresses: Iterable[Address]) -> None:
        """Replace the list of name servers. The one in use stays in use if the new list contains it."""
        addresses = set(addresses)
        if addresses == set(self._addresses):
            return
        asked = self._addresses[self._current] if self._addresses else None
        self._addresses = sorted(addresses)
        self._chance.shuffle(self._addresses)
        if asked in addresses:
            self._current = self._addresses.index(asked)
        else:
            self._current, self._has_answered = 0, False

    async def refresh(self) -> None:
        """Query the address server, if there is one. If the query fails, the known addresses stay."""
        if self._source is None:
            return
        try:
            self.become(await self._source.fetch(self._network))
        except AddressServerError as error:
            _log.warning("the name servers are unchanged: %s", error)

    async def invoke(
        self, code: RequestCode, fields: dict[str, str], body: bytes = b"", timeout_s: float = _TIMEOUT_S
    ) -> Command:
        """Return the first response, trying each name server once.

        Raises:
            RemotingError: no name server responds, or no address is known.
        """
        try:
            answer = await self._first_answer(code, fields, body, timeout_s)
        except RemotingError as error:
            self._warn(error)
            raise
        self._warned_s = None
        return answer

    async def _first_answer(
        self, code: RequestCode, fields: dict[str, str], body: bytes, timeout_s: float
    ) -> Command:
        await self.known()
        if self._has_answered and not self._client.is_connected(self._addresses[self._current]):
            self._turn_from(self._addresses[self._current])
        failure: RemotingError | None = None
        for _ in range(len(self._addresses)):
            address = self._addresses[self._current]
            try:
                answer = await self._client.invoke(address, new_request(code, fields, body), timeout_s)
            except RemotingError as error:
                failure = error
                self._turn_from(address)
            else:
                self._has_answered = True
                return answer
        assert failure is not None
        raise failure

    def _warn(self, error: RemotingError) -> None:
        """Log that no name server responds: at the first failure, and then at most once a minute."""
        now_s = asyncio.get_running_loop().time()
        if self._warned_s is None or now_s - self._warned_s >= _WARNING_INTERVAL_S:
            self._warned_s = now_s
            tried = ";".join(map(str, self._addresses)) or "none known"
            _log.warning("no name server responds (%s): %s", tried, error)

    def _turn_from(self, address: Address) -> None:
        """Switch to the next name server, unless another request has switched already."""
        if self._addresses[self._current] == address:
            self._current = (self._current + 1) % len(self._addresses)
            self._has_answered = False
