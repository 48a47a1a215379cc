"""A peer that acknowledges a master's log, does not store it, and does not have the peer secret."""

import asyncio
from typing import Final

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.feed import Feed, MastersLog
from mqproof.impl.replication.stream import read_transfer, write_position
from mqproof.impl.runtime.network import Connection, SimulatedNetwork
from mqproof.impl.runtime.security.peer_network import PeerIdentity, PeerNetwork

_HOST: Final = "master"
_SECRET: Final = b"the secret of the brokers"
_TURNS: Final = 20
"""More turns of the loop than a request, the log and its acknowledgement take."""


async def acknowledge(log: MastersLog, acks: Acks) -> None:
    """Let a stranger connect to a master with a peer secret, request the log and acknowledge all of it.

    The master's end believes every report that the network lets through.
    """
    network = SimulatedNetwork()
    identity = PeerIdentity(_SECRET, _HOST, "replication", bytes)
    feeds: list[_MastersEnd] = []

    def accepted(connection: Connection) -> "_MastersEnd":
        feeds.append(_MastersEnd(connection, Feed(log, acks, LogCheck.COMPARED)))
        return feeds[-1]

    listener = await PeerNetwork(network, identity).listen(_HOST, 0, accepted)
    connection = await network.connect(listener.address, _Stranger)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    connection.abort()
    listener.close()
    for end in feeds:
        end.feed.left()
    await asyncio.sleep(0)


class _MastersEnd:
    """Sends the log, if it is asked for it."""

    def __init__(self, connection: Connection, feed: Feed) -> None:
        self.feed = feed
        self._connection = connection

    def received(self, data: bytes) -> None:
        self.feed.received(data)
        while frame := self.feed.next_frame():
            self._connection.write(frame)

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None: ...


class _Stranger:
    """Requests the log from its beginning, and acknowledges each frame."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = bytearray()
        connection.write(write_position(0))

    def received(self, data: bytes) -> None:
        self._buffer += data
        while (transfer := read_transfer(self._buffer)) is not None:
            self._connection.write(write_position(transfer.position + len(transfer.body)))

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None: ...
