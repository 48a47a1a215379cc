"""The filter servers of a broker, which it reports to the name servers.

See docs/reference/protocol/filters.md, "Filter servers".
"""

from collections.abc import Hashable
from typing import Final

FILTER_SERVERS_MAX: Final = 16
SILENT_S: Final = 30.0
"""A filter server that has not registered for this long is forgotten. It registers every 10 s."""


class FilterServersFullError(Exception):
    """The broker has as many filter servers as it may have."""


class FilterServers:
    """The addresses by connection: a filter server is forgotten when its connection ends."""

    def __init__(self) -> None:
        self._servers: dict[Hashable, tuple[str, float]] = {}

    def addresses(self) -> list[str]:
        return sorted({address for address, _ in self._servers.values()})

    def register(self, connection: Hashable, address: str, now_s: float) -> bool:
        """Record a filter server. Returns whether the addresses are others than before.

        Raises FilterServersFullError.
        """
        before = self.addresses()
        if connection not in self._servers and len(self._servers) >= FILTER_SERVERS_MAX:
            raise FilterServersFullError(f"{len(self._servers)} filter servers are registered")
        self._servers[connection] = (address, now_s)
        return self.addresses() != before

    def closed(self, connection: Hashable) -> bool:
        """Forget the filter server of a connection. Returns whether there was one."""
        return self._servers.pop(connection, None) is not None

    def drop_silent(self, now_s: float) -> bool:
        """Forget the filter servers that are silent. Returns whether there were any."""
        silent = [key for key, (_, last_s) in self._servers.items() if now_s - last_s > SILENT_S]
        for key in silent:
            del self._servers[key]
        return bool(silent)
