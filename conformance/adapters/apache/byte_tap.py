"""A port that passes everything on to a server, byte by byte, and keeps what went by in either direction."""

from mqproof.conformance.faults.relay import Relay, Way
from mqproof.impl.runtime.network import Address


class ByteTap(Relay):
    """Listens in a `with` block. Each connection has its own pair of records."""

    def __init__(self, server: Address) -> None:
        super().__init__(server, self._record)
        self.connections: list[tuple[bytearray, bytearray]] = []
        """What the client said and what the server said, by connection, in the order of their coming."""

    def _record(self) -> tuple[Way, Way]:
        said = (bytearray(), bytearray())
        self.connections.append(said)
        return _kept_in(said[0]), _kept_in(said[1])


def _kept_in(record: bytearray) -> Way:
    def way(received: bytes) -> list[bytes]:
        record.extend(received)
        return [received]

    return way
