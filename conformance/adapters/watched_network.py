"""A network that shows the frames of its connections to a watch."""

from mqproof.conformance.answers.watch import Watch, WatchedConnection
from mqproof.impl.runtime.network import Address, Connection, Listener, Network, Receiver, ReceiverFactory


class WatchedNetwork:
    """The network of a suite's clients. What others open to them is not watched."""

    def __init__(self, network: Network, watch: Watch) -> None:
        self._network = network
        self._watch = watch

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        return await self._network.listen(host, port, on_connection)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        shown: list[_Shown] = []

        def accept(connection: Connection) -> Receiver:
            frames = self._watch.connection(str(connection.local), str(address))
            shown.append(_Shown(connection, frames))
            return _Showing(on_connection(shown[0]), frames)

        await self._network.connect(address, accept)
        return shown[0]


class _Shown:
    """The client's end of a connection; shows what is written."""

    def __init__(self, connection: Connection, frames: WatchedConnection) -> None:
        self._connection = connection
        self._frames = frames
        self.local = connection.local
        self.remote = connection.remote
        self.close = connection.close
        self.abort = connection.abort
        self.pause_reading = connection.pause_reading
        self.resume_reading = connection.resume_reading

    @property
    def unsent_bytes(self) -> int:
        return self._connection.unsent_bytes

    def write(self, data: bytes) -> None:
        self._frames.sent(data)
        self._connection.write(data)


class _Showing:
    """The receiver of a connection; shows what arrives before the client receives it."""

    def __init__(self, receiver: Receiver, frames: WatchedConnection) -> None:
        self._receiver = receiver
        self._frames = frames
        self.write_paused = receiver.write_paused
        self.write_resumed = receiver.write_resumed
        self.closed = receiver.closed

    def received(self, data: bytes) -> None:
        self._frames.received(data)
        self._receiver.received(data)
