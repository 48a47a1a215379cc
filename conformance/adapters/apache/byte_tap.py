"""A port that forwards all bytes to a server, and records the bytes in both directions."""

from mqproof.conformance.faults.relay import Relay, Way
from mqproof.impl.runtime.network import Address


class ByteTap(Relay):
    """A relay that records all bytes; it listens in a `with` block.

    Each connection has its own pair of records.
    """

    def __init__(self, server: Address) -> None:
        super().__init__(server, self._record)
        self.connections: list[tuple[bytearray, bytearray]] = []
        """The bytes from the client and from the server, by connection, in the order of the connections."""

    def _record(self) -> tuple[Way, Way]:
        received = (bytearray(), bytearray())
        self.connections.append(received)
        return _kept_in(received[0]), _kept_in(received[1])


def _kept_in(record: bytearray) -> Way:
    def way(received: bytes) -> list[bytes]:
        record.extend(received)
        return [received]

    return way
