"""A master's side of replication: accepts slaves, streams the log to each, and answers waiting sends."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import ReplicationConfig
from mqproof.impl.replication.feed import Feed, MastersLog
from mqproof.impl.replication.stream import StreamError
from mqproof.impl.replication.waits import ReplicaWaits
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, Connection, Listener, Network
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.rate import Pace
from mqproof.impl.runtime.supervision import Supervisor
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

_TURN_BYTES_MAX: Final = 256 << 10
"""The most bytes sent to one slave before other slaves get their turn."""
_SLAVES_MAX: Final = 64
_SLAVES_OF_ADDRESS_MAX: Final = 16
"""The most connections from one address, so that one host cannot occupy all places."""
_SCANS_IN_HEARTBEAT: Final = 5


@dataclass(frozen=True, slots=True)
class SlaveState:
    """A connected slave, as its master sees it."""

    address: Address
    acknowledged: int
    """The position up to which it has acknowledged the log."""
    sent: int
    """The position up to which the log was sent to it."""
    bytes_per_s: int


class MasterServer:
    """A listener and one sender for each slave.

    Bytes that a slave cannot take yet are not read from the log, so a slow slave costs no memory.
    """

    def __init__(
        self,
        network: Network,
        log: MastersLog,
        config: ReplicationConfig,
        events: EventLog | None,
        supervisor: Supervisor | None = None,
        *,
        proved: bool = False,
    ) -> None:
        """With `proved`, the slaves have the peer secret, and prove the end of their logs."""
        self._proved = proved
        self.supervisor = supervisor or Supervisor()
        self.acks = Acks()
        self.waits = ReplicaWaits(self.acks, config)
        self._network = network
        self._master_log = log
        self._config = config
        self._events = events
        self._senders: dict[_Sender, None] = {}
        self._listener: Listener | None = None
        self._notices = Notices(_log)
        self._scan: asyncio.Task[None] | None = None

    def serves(self, slave: Address) -> bool:
        """Return whether there is a connection from that address."""
        return any(sender.connection.remote == slave for sender in self._senders)

    async def start(self, host: str, port: int) -> Address:
        """Listen on the port; port 0 is any free one. Raises OSError."""
        self._listener = await self._network.listen(host, port, self._accept)
        self._scan = self.supervisor.run("scan for silent slaves", self._keep_house())
        return self._listener.address

    async def stop(self) -> None:
        """Stop accepting slaves and close their connections."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._scan is not None:
            self._scan.cancel()
            await asyncio.gather(self._scan, return_exceptions=True)
            self._scan = None
        for sender in list(self._senders):
            sender.connection.close()

    def kill(self) -> None:
        """End as a killed process does, in a simulation: connections break and no send is answered."""
        if self._listener is not None:
            self._listener.close()
        if self._scan is not None:
            self._scan.cancel()
        for sender in list(self._senders):
            sender.connection.abort()

    def grown(self) -> None:
        """Wake all senders, because the log has grown."""
        for sender in self._senders:
            sender.wake()

    def _accept(self, connection: Connection) -> "_Sender":
        feed = Feed(self._master_log, self.acks, self._config.log_check, proved=self._proved)
        sender = _Sender(connection, feed, self)
        host = connection.remote.host
        of_host = [other for other in self._senders if other.connection.remote.host == host]
        crowd = of_host if len(of_host) >= _SLAVES_OF_ADDRESS_MAX else list(self._senders)
        is_full = crowd is of_host or len(crowd) >= _SLAVES_MAX
        idle = next((other for other in crowd if not other.has_acknowledged), None)
        if is_full and idle is None:
            self.complain(host, f"refused a slave on {host}: {len(crowd)} slaves are connected")
            connection.abort()
            return sender
        if is_full and idle is not None:
            idle.refuse("it has acknowledged nothing, and another slave needs its place")
            self.forget(idle)
        self._senders[sender] = None
        return sender

    def forget(self, sender: "_Sender") -> None:
        self._senders.pop(sender, None)

    def record(self, kind: Kind, slave: Address, position: int) -> None:
        """Log a transfer to a slave or its acknowledgement, and answer the sends that this completes."""
        if kind is Kind.HA_ACK:
            self.waits.acked()
        if self._events is not None:
            attrs = {"slave": str(slave), "role": str(self._config.logged_role)}
            self._events.emit(kind, commit_offset=position, attrs=attrs)

    def slaves(self) -> list[SlaveState]:
        """Return the connected slaves, in the order of their arrival."""
        return [sender.state() for sender in self._senders]

    def complain(self, host: str, complaint: str) -> None:
        """Log a complaint about a peer, seldom: a refused slave reconnects again and again."""
        self._notices.warn(host, complaint)

    async def _keep_house(self) -> None:
        config = self._config
        while True:
            await asyncio.sleep(config.heartbeat_ms / 1000 / _SCANS_IN_HEARTBEAT)
            now_s = asyncio.get_running_loop().time()
            for sender in list(self._senders):
                if now_s - sender.heard_s > config.housekeeping_ms / 1000:
                    sender.refuse(f"nothing heard for {config.housekeeping_ms} ms")
                elif now_s - sender.sent_s > config.heartbeat_ms / 1000:
                    sender.beat()


class _Sender:
    """Receives from and sends to one slave."""

    def __init__(self, connection: Connection, feed: Feed, server: MasterServer) -> None:
        self.connection = connection
        self._feed = feed
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.heard_s = self.sent_s = self._loop.time()
        self._acknowledged = 0
        self._pace = Pace(self._loop.time())
        self.has_acknowledged = False
        """Whether it has acknowledged a position. A slave that follows soon has."""
        self._takes = True
        self._awake = False
        self._open = True

    def wake(self) -> None:
        """Schedule a send, so that everything appended in one turn of the event loop goes out together."""
        if not self._awake and self._takes and self._open:
            self._awake = True
            self._loop.call_soon(self._server.supervisor.guarded("feed of a slave", self._send))

    def state(self) -> SlaveState:
        rate = round(self._pace.rate(self._loop.time()))
        return SlaveState(self.connection.remote, self._acknowledged, self._feed.sent or 0, rate)

    def beat(self) -> None:
        if self._open and self._takes and (frame := self._feed.heartbeat()):
            self.sent_s = self._loop.time()
            self.connection.write(frame)

    def refuse(self, why: str) -> None:
        """Close the connection and log the reason."""
        self._open = False
        host = self.connection.remote.host
        self._server.complain(host, f"closing the connection to a slave on {host}: {why}")
        self.connection.abort()

    # Methods of the Receiver protocol.

    def received(self, data: bytes) -> None:
        if not self._open:
            return
        self.heard_s = self._loop.time()
        try:
            acknowledged = self._feed.received(data)
        except StreamError as error:
            self.refuse(str(error))
            return
        if acknowledged is not None:
            if not self.has_acknowledged:
                _log.warning("the slave %s follows", self.connection.remote)
            self.has_acknowledged = True
            self._acknowledged = max(self._acknowledged, acknowledged)
            self._server.record(Kind.HA_ACK, self.connection.remote, acknowledged)
        self.wake()

    def write_paused(self) -> None:
        self._takes = False

    def write_resumed(self) -> None:
        self._takes = True
        self.wake()

    def closed(self) -> None:
        if self.has_acknowledged:
            _log.warning("the slave %s has left", self.connection.remote)
        self._open = False
        self._feed.left()
        self._server.forget(self)

    def _send(self) -> None:
        self._awake = False
        room = _TURN_BYTES_MAX
        try:
            while self._open and self._takes and room > 0 and (frame := self._feed.next_frame()):
                self.connection.write(frame)
                room -= len(frame)
        except StreamError as error:
            self.refuse(str(error))
            return
        if room < _TURN_BYTES_MAX:
            assert self._feed.sent is not None
            self.sent_s = self._loop.time()
            self._pace.add(_TURN_BYTES_MAX - room, self.sent_s)
            self._server.record(Kind.HA_TRANSFER, self.connection.remote, self._feed.sent)
            self.wake()
