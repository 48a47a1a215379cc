"""A path from our client to a server, through a loopback port where it can be disturbed."""

import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import Final

from mqproof.conformance.faults.relay import Relay
from mqproof.conformance.suites.flush.target import Fault
from mqproof.impl.runtime.network import Address, Connection, Listener, Network, ReceiverFactory

DELAY_S: Final = 0.1
FAULTS: Final = frozenset({Fault.CUT, Fault.DELAY, Fault.LOSE_REQUESTS, Fault.LOSE_ANSWERS})
"""The faults that a link can inject."""


class Link(Relay):
    """A relay that forwards everything, unless a fault is active."""

    def __init__(self, server: Address) -> None:
        super().__init__(server, lambda: (partial(self._way, False), partial(self._way, True)))
        self._lock = threading.Lock()
        self._fault: Fault | None = None

    def disturb(self, fault: Fault) -> None:
        with self._lock:
            self._fault = fault

    def calm(self) -> None:
        """End the fault and close the connections that lost bytes.

        The bytes after the loss cannot be decoded.
        """
        with self._lock:
            fault, self._fault = self._fault, None
        if fault in (Fault.LOSE_REQUESTS, Fault.LOSE_ANSWERS):
            self.hang_up()

    def _way(self, from_server: bool, received: bytes) -> Iterable[bytes]:
        with self._lock:
            fault = self._fault
        match fault:
            case Fault.CUT if from_server:
                raise ConnectionResetError("cut, instead of an answer")
            case Fault.LOSE_REQUESTS if not from_server:
                return ()
            case Fault.LOSE_ANSWERS if from_server:
                return ()
            case Fault.DELAY:
                time.sleep(DELAY_S)
        return (received,)


class LinkedNetwork:
    """A network with links in front of some servers.

    Other servers are connected directly. A refused connection to them is reported unchanged.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._links: dict[Address, Link] = {}

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        return await self._network.listen(host, port, on_connection)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        link = self._links.get(address)
        return await self._network.connect(link.address if link else address, on_connection)

    def link(self, address: Address) -> Link:
        """Return the link in front of that server; new connections to the server go through it."""
        if address not in self._links:
            self._links[address] = Link(address).__enter__()
        return self._links[address]

    def close(self) -> None:
        for link in self._links.values():
            link.__exit__(None, None, None)
        self._links.clear()
