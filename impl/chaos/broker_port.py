"""One listening port of the proxy, in front of one server, and the faults that concern all its connections.

A broker that restarts accepts no connection for a while. A master that changes has another port afterwards: a
port listens on two addresses in turn, and the routes name the current one.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from mqproof.impl.chaos.capture import CaptureWriter, NodeChange, Opened, Recorded
from mqproof.impl.chaos.committed_offsets import CommittedOffsets, OffsetKey
from mqproof.impl.chaos.draws import Draws, Firing, Subject
from mqproof.impl.chaos.fault_table import Point
from mqproof.impl.chaos.group_changes import NAMES, GroupChanges
from mqproof.impl.chaos.relayed_connection import ClientSide, Memory, RelayedConnection
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ConsumerIds
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime.network import Address, Connection, Listener, Network, Receiver

_log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 10_000
MEMORIES_MAX: Final = 10_000
_SWITCH_MS: Final = 200
"""How long no master serves while it changes."""
_RESTARTS: Final = frozenset({"broker_restart", "broker_switch", "offsets_go_back"})

Answered = Callable[[int, Command, Callable[[Command], None]], Command | None]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all ports of a proxy share."""

    network: Network
    draws: Draws
    capture: CaptureWriter | None
    host: str
    advertised_host: str
    answered: Answered
    """Changes the addresses in the answer of a name server."""
    injected: Callable[[Firing, int], None]
    """Records a fault that took effect on a connection."""
    next_connection: Callable[[], int]


@dataclass
class BrokerPort:
    """A port, and its connections. The name of a name server's port is empty."""

    shared: Shared
    name: str
    broker_id: int
    upstream: Address
    wanted_port: int = 0
    _listeners: list[Listener] = field(default_factory=list)
    _current: int = 0
    """Which of the listeners accepts connections."""
    _is_down: bool = False
    _timers: list[asyncio.TimerHandle] = field(default_factory=list)
    _connections: dict[RelayedConnection, None] = field(default_factory=dict)
    _offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    _memories: dict[Subject, Memory] = field(default_factory=dict)
    _groups: GroupChanges = field(init=False)

    def __post_init__(self) -> None:
        self._groups = GroupChanges(self._notify)
        self.network = self.shared.network
        self.draws = self.shared.draws
        self.capture = self.shared.capture
        planned = {fault.kind.name for fault in self.draws.plan.faults}
        self.tracks_offsets = "offsets_go_back" in planned and bool(self.name)
        self._switches = "broker_switch" in planned and self.broker_id == 0 and bool(self.name)

    async def listen(self) -> Address:
        """Listen. Returns the address for clients. Raises OSError."""
        for number in range(2 if self._switches else 1):
            listener = await self.network.listen(
                self.shared.host,
                self.wanted_port if number == 0 else 0,
                partial(self._accept, number),
            )
            self._listeners.append(listener)
        return self.address

    @property
    def address(self) -> Address:
        """The address for clients, as it is now."""
        return Address(self.shared.advertised_host, self._listeners[self._current].address.port)

    def close(self) -> None:
        """Listen no more, and close all connections."""
        self.calm()
        for listener in self._listeners:
            listener.close()
        self._hang_up()

    def calm(self) -> None:
        """End all faults that are in progress."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._groups.end()
        if self._is_down:
            self._serve_again()

    def _accept(self, number: int, connection: Connection) -> Receiver:
        relayed_number = self.shared.next_connection()
        relayed = RelayedConnection(self, connection, relayed_number)
        if self._is_down or number != self._current or len(self._connections) >= CONNECTIONS_MAX:
            relayed.close()
            return ClientSide(relayed)
        self._connections[relayed] = None
        if self.capture is not None:
            opened = Opened(self.name, self.broker_id, str(connection.remote))
            self.capture.write_object(Recorded.OPENED, relayed_number, opened)
        return ClientSide(relayed)

    def _hang_up(self) -> None:
        for relayed in list(self._connections):
            relayed.close()

    def _notify(self, group: str) -> None:
        for relayed in list(self._connections):
            relayed.notify(group)

    # What the connections ask.

    def forget(self, connection: RelayedConnection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            if self.capture is not None:
                self.capture.write(Recorded.CLOSED, connection.number, b"")

    def injected(self, firing: Firing, connection: int) -> None:
        self.shared.injected(firing, connection)

    def answered(self, code: int, answer: Command, resume: Callable[[Command], None]) -> Command | None:
        return self.shared.answered(code, answer, resume)

    def memory(self, subject: Subject) -> Memory:
        memory = self._memories.get(subject)
        if memory is None:
            memory = Memory()
            if len(self._memories) < MEMORIES_MAX:
                self._memories[subject] = memory
        return memory

    def committed(self, key: OffsetKey, offset: int, *, only_forward: bool) -> None:
        now_s = asyncio.get_running_loop().time()
        self._offsets.commit(key, offset, now_s, only_forward=only_forward)

    def committed_as_seen(self, key: OffsetKey) -> int | None:
        return self._offsets.seen(key)

    def members(self, firing: Firing | None, group: str, answer: Command) -> Command:
        """Return the answer to a query of a group's members, as the faults change it."""
        if answer.code != ResponseCode.SUCCESS or not self.draws.has(Point.MEMBERS):
            return answer
        ids = java_json.read(ConsumerIds, answer.body).consumer_id_list
        if firing is not None and (firing.name not in NAMES or not self._groups.begin(firing, ids)):
            self.draws.had_no_effect(firing)
        seen = self._groups.members(group, ids)
        if seen == ids:
            return answer
        return msgspec.structs.replace(answer, body=java_json.write(ConsumerIds(seen), standard=True))

    def act(self, firing: Firing) -> bool:
        """Restart the broker or change the master, if the fault does that. Returns whether it does."""
        if firing.name not in _RESTARTS or self.broker_id < 0:
            return False
        if self._is_down:
            return True
        if firing.name == "broker_switch":
            if not self._switches:
                return False
            self._current = 1 - self._current
        if firing.name == "offsets_go_back":
            self._offsets.crash(asyncio.get_running_loop().time())
        self._note("kill")
        self._is_down = True
        delay_ms = _SWITCH_MS if firing.name == "broker_switch" else firing.delay_ms
        self._timers = [asyncio.get_running_loop().call_later(delay_ms / 1000, self._serve_again)]
        # The other connections close after the one on which the fault acts.
        asyncio.get_running_loop().call_soon(self._hang_up)
        return True

    def _serve_again(self) -> None:
        self._is_down = False
        self._note("start")

    def _note(self, kind: str) -> None:
        if self.capture is not None:
            self.capture.write_object(Recorded.NODE, 0, NodeChange(kind, self.name))
