"""The locks of queues that are consumed in order. A pure table in memory; time is passed in.

See docs/reference/protocol/groups.md, "Queue locks".
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mqproof.impl.remoting.bodies import MessageQueue


@dataclass(frozen=True, slots=True)
class _Lease:
    client_id: str
    ends_ms: int


class QueueLockTable:
    """Leases by group and queue. Any client may take a queue whose lease has expired."""

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._leases: dict[str, dict[MessageQueue, _Lease]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now_ms: int
    ) -> list[MessageQueue]:
        """Take or renew the queues that no other client holds; return those that the client holds now."""
        leases = self._leases.setdefault(group, {})
        held = []
        for queue in queues:
            lease = leases.get(queue)
            if lease is None or lease.client_id == client_id or lease.ends_ms < now_ms:
                leases[queue] = _Lease(client_id, now_ms + self._lease_ms)
                held.append(queue)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Release the client's leases of these queues; those of other clients stay."""
        leases = self._leases.get(group, {})
        for queue in queues:
            lease = leases.get(queue)
            if lease is not None and lease.client_id == client_id:
                del leases[queue]

    def drop_expired(self, now_ms: int) -> None:
        """Remove expired leases, because clients need not unlock their queues, and groups without leases."""
        for group, leases in list(self._leases.items()):
            for queue in [queue for queue, lease in leases.items() if lease.ends_ms < now_ms]:
                del leases[queue]
            if not leases:
                del self._leases[group]
