"""Budgets: how much of a resource the peers of a server may use, in total, per address and per connection.

Without the shares, one peer could use all of a resource, and the server would serve no other one.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary, ref

from mqproof.impl.runtime.notices import Notices

_log = logging.getLogger(__name__)

ADDRESS_PERCENT: Final = 50
"""The default share of one address."""
CONNECTION_PERCENT: Final = 10
"""The default share of one connection."""
_COUNT_LEAST: Final = 1000
"""No share of things that are counted is smaller, unless the total is."""

UNANSWERED_BYTES_MAX: Final = 256 << 20
"""The most bytes of unanswered requests, over all connections of a server."""
INCOMPLETE_BYTES_MAX: Final = 256 << 20
"""The most bytes of incomplete frames, over all connections of a server."""
UNREAD_BYTES_MAX: Final = 256 << 20
"""The most bytes of answers that peers have not read, over all connections of a server."""


class Peer(Protocol):
    """A connection, compared by identity."""

    @property
    def remote(self) -> tuple[str, int]: ...


@dataclass(frozen=True, slots=True)
class Percentages:
    """The shares of one address and one connection, in percent of the total."""

    address: int = ADDRESS_PERCENT
    connection: int = CONNECTION_PERCENT


@dataclass(frozen=True, slots=True)
class Shares:
    """The limits of one resource."""

    total: int
    address: int
    connection: int


def shares_of(total: int, percent: Percentages, least: int = _COUNT_LEAST) -> Shares:
    """Return the limits of a resource; no share is below `least`, and none above the total."""

    def part(of_100: int) -> int:
        return min(total, max(total * of_100 // 100, least))

    return Shares(total, part(percent.address), part(percent.connection))


class Budget:
    """The use of one resource. `name` is its plural, for messages, such as `held pulls`.

    What is taken must be given back for the same peer.
    """

    def __init__(self, name: str, limits: Shares) -> None:
        self.name = name
        self.limits = limits
        self.used = 0
        self.refused = 0
        """The number of refusals."""
        self._addresses: dict[Any, int] = {}
        self._connections: dict[Any, int] = {}
        self._notices = Notices(_log)

    def refusal(self, peer: Peer, amount: int = 1) -> str | None:
        """Return why the peer may not take that much more, and log it once per interval; None if it may."""
        return self._refusal(peer, amount, self._connections.get(peer, 0))

    def take(self, peer: Peer, amount: int = 1) -> None:
        """Count an amount; `refusal` tells whether the limits allow it. A negative amount gives back."""
        self.used += amount
        _add(self._addresses, host_of(peer), amount)
        _add(self._connections, peer, amount)

    def _refusal(self, peer: Peer, amount: int, of_connection: int) -> str | None:
        address, limits = host_of(peer), self.limits
        for owner, used, most in (
            ("this connection", of_connection, limits.connection),
            (f"address {address}", self._addresses.get(address, 0), limits.address),
            ("all connections", self.used, limits.total),
        ):
            if used + amount > most:
                reason = f"{used} {self.name} of {owner}, at most {most} allowed"
                self.refused += 1
                host, port = peer.remote
                self._notices.warn(address, f"refused a request of {host}:{port}: {reason}")
                return reason
        return None


class NameBudget(Budget):
    """The names, such as those of topics, that peers have created. They outlive the connection.

    A name counts for its creator's address and connection until it is deleted.
    """

    def __init__(self, name: str, limits: Shares) -> None:
        super().__init__(name, limits)
        self._creators: dict[str, tuple[str, ref[Any]]] = {}
        """The address and the connection that created each name since the start."""
        self._of_connection: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def refusal(self, peer: Peer, amount: int = 1) -> str | None:
        return self._refusal(peer, amount, self._of_connection.get(peer, 0))

    def created(self, peer: Peer, names: Iterable[str]) -> None:
        """Count names that the peer created."""
        for name in names:
            if name not in self._creators:
                self._creators[name] = host_of(peer), ref(peer)
                _add(self._addresses, host_of(peer), 1)
                self._of_connection[peer] = self._of_connection.get(peer, 0) + 1
        self.used = len(self._creators)

    def deleted(self, names: Iterable[str]) -> None:
        """Free deleted names."""
        for name in names:
            if name in self._creators:
                host, creator = self._creators.pop(name)
                _add(self._addresses, host, -1)
                if (peer := creator()) is not None:
                    self._of_connection[peer] -= 1
        self.used = len(self._creators)


@dataclass(frozen=True, slots=True)
class ServerBudgets:
    """The budgets of one server, also if it listens on several ports."""

    connections: Budget
    unanswered: Budget
    incomplete: Budget
    unread: Budget

    def __iter__(self) -> Iterator[Budget]:
        return iter((self.connections, self.unanswered, self.incomplete, self.unread))


def server_budgets(
    connections_max: int, frame_bytes_max: int, percent: Percentages | None = None
) -> ServerBudgets:
    """Return the budgets of a server. A connection's share has room for one whole frame."""
    percent = percent or Percentages()
    connections = shares_of(connections_max, percent)
    return ServerBudgets(
        Budget("connections", Shares(connections.total, connections.address, 1)),
        Budget("bytes of unanswered requests", shares_of(UNANSWERED_BYTES_MAX, percent, frame_bytes_max)),
        Budget("bytes of incomplete frames", shares_of(INCOMPLETE_BYTES_MAX, percent, frame_bytes_max)),
        Budget("bytes of unread answers", shares_of(UNREAD_BYTES_MAX, percent, frame_bytes_max)),
    )


def host_of(peer: Peer) -> str:
    """Return the address for which the peer's use counts."""
    host = peer.remote[0]
    return network_of(host) if ":" in host else host


@lru_cache(maxsize=10_000)  # each send and pull counts for an address
def network_of(host: str) -> str:
    """Return an IPv4 address, or the network of 64 bits of an IPv6 address: one host can use all of that."""
    if ":" not in host:
        return host
    try:
        return ":".join(ip_address(host.partition("%")[0]).exploded.split(":")[:4]) + "::/64"
    except ValueError:
        return host


def _add(table: dict[Any, int], key: object, amount: int) -> None:
    left = table.get(key, 0) + amount
    assert left >= 0, f"{key} gave back more than it took"
    if left:
        table[key] = left
    else:
        table.pop(key, None)
