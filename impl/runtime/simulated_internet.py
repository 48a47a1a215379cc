"""A simulated internet in memory: machines, and the behaviour of TCP on unreliable links between them.

Each machine has its own network (`SimulatedInternet.machine`); its connections come from its address. The
bytes of a connection arrive in order, and connections do not wait for one another. Everything follows from
`chance`.

- A lost segment is a late one, because TCP sends it again.
- Bytes for a link that is cut wait, and arrive when the link works again.
- A process that dies resets its connections.
- A machine that loses its power sends nothing. After it restarts, it answers bytes of old connections with a
  reset.

Each machine has at most one process, which has the machine's name (`SimulatedLoop.context_of`). While the
process is stopped its machine continues: connections are opened and bytes arrive. The process receives them
when it continues.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from random import Random
from typing import Any, Final

from mqproof.impl.runtime.network import Address, Connection, Listener, Network, Receiver, ReceiverFactory
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

_AGAIN_S: Final = 0.2
"""The delay before a lost segment is sent again; it doubles with each further attempt."""
_SYN_AGAIN_S: Final = 1.0
"""The delay before another attempt to open a connection."""

Link = tuple[str, str]
"""Source and target machine."""


class SimulatedInternet:
    """All machines and links.

    `loss` and `delay_s` may be changed at any time; a change affects what is sent afterwards.
    """

    def __init__(self, chance: Random) -> None:
        self.loss = 0.0
        """The probability that a segment does not arrive at an attempt."""
        self.delay_s = (0.0002, 0.001)
        """The shortest and the longest transit time of one segment."""
        self.sent = 0
        """The number of segments sent so far."""
        self.context = copy_context()
        """The context of no process, so that stopping a sender does not delay its segments in transit."""
        self._chance = chance
        self._cut: set[Link] = set()
        self._dark: set[str] = set()
        self._listeners: dict[Address, _Door] = {}
        self._ends: dict[_End, None] = {}
        self._ports = itertools.count(40_000)

    def machine(self, host: str) -> Network:
        """Return the network as seen by this machine."""
        return _Machine(self, host)

    # -- fault injection

    def cut(self, links: Iterable[Link]) -> None:
        """Cut these links: from now on nothing arrives on them."""
        self._cut.update(links)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """Repair these links, or all of them; the segments that waited for them are sent again."""
        self._cut.difference_update(list(self._cut if links is None else links))
        for end in list(self._ends):
            end.send_again()

    def reset(self, one: str, other: str) -> None:
        """Break every connection between two machines: both ends receive `closed`."""
        for end in [end for end in self._ends if (end.local.host, end.remote.host) == (one, other)]:
            end.abort()

    def forget_connections(self, one: str, other: str) -> None:
        """Make the network between two machines forget all their connections.

        Everything in transit and everything sent later is lost, and neither end receives `closed`.
        """
        for end in self._ends:
            if {end.local.host, end.remote.host} == {one, other}:
                end.lose()

    def lose_power(self, host: str) -> None:
        """Switch the machine off: its connections vanish, and no peer is notified."""
        self._dark.add(host)
        for address in [address for address in self._listeners if address.host == host]:
            del self._listeners[address]
        for end in [end for end in self._ends if end.local.host == host]:
            end.vanish()

    def power_on(self, host: str) -> None:
        """Switch the machine on again: it answers bytes of its old connections with a reset."""
        self._dark.discard(host)
        self.heal(())

    # -- called by the machines and the ends of connections

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether nothing that is sent from `source` to `target` arrives now."""
        return (source, target) in self._cut or target in self._dark

    def way_s(self) -> float:
        """Return the transit time of the next segment, and count it."""
        chance = self._chance
        self.sent += 1
        shortest_s, longest_s = self.delay_s
        seconds = shortest_s + (longest_s - shortest_s) * chance.random()
        if self.loss:
            again_s = _AGAIN_S
            while chance.random() < self.loss:
                seconds += again_s
                again_s *= 2
        return seconds

    def listen(self, address: Address, on_connection: ReceiverFactory) -> Listener:
        if not address.port:
            address = address._replace(port=next(self._ports))
        if address in self._listeners:
            raise OSError(f"{address} is in use")
        door = self._listeners[address] = _Door(address, on_connection, self._listeners)
        return door

    async def connect(self, source: str, target: Address, on_connection: ReceiverFactory) -> Connection:
        await asyncio.sleep(self.way_s())
        while self.is_cut(source, target.host) or self.is_cut(target.host, source):
            await asyncio.sleep(_SYN_AGAIN_S)
        door = self._listeners.get(target)
        if door is None:
            raise ConnectionRefusedError(f"no server listens on {target}")
        near = _End(self, Address(source, next(self._ports)), target)
        far = _End(self, target, near.local)
        near.peer, far.peer = far, near
        self._ends[near] = self._ends[far] = None
        far.process_hears(door.accept, far)
        near.receiver = on_connection(near)
        return near

    def forget(self, end: "_End") -> None:
        self._ends.pop(end, None)


class _Machine:
    def __init__(self, internet: SimulatedInternet, host: str) -> None:
        self._internet = internet
        self._host = host

    async def listen(self, host: str, port: int, on_connection: ReceiverFactory) -> Listener:
        if host != self._host:
            raise OSError(f"{host} is not an address of {self._host}")
        return self._internet.listen(Address(host, port), on_connection)

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        return await self._internet.connect(self._host, address, on_connection)


class _Door:
    def __init__(
        self, address: Address, on_connection: ReceiverFactory, listeners: "dict[Address, _Door]"
    ) -> None:
        self.address = address
        self.on_connection = on_connection
        self._listeners = listeners

    def accept(self, end: "_End") -> None:
        if self._listeners.get(self.address) is self:
            end.accepted(self.on_connection)
        else:  # the listener closed before its process received the connection
            end.refuse()

    def close(self) -> None:
        if self._listeners.get(self.address) is self:  # a later listener may have the address by now
            del self._listeners[self.address]


class _End:
    """One end of a connection, with the segments on their way from here to the other end."""

    peer: "_End"
    receiver: Receiver | None = None

    def __init__(self, internet: SimulatedInternet, local: Address, remote: Address) -> None:
        self.local = local
        self.remote = remote
        self._internet = internet
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop), "of a simulation"
        self._loop = loop
        self._context = loop.context_of(local.host)
        self._open = True
        self._vanished = False
        self._reading = True
        self._unread: list[bytes] = []
        self._sent: deque[tuple[float, Callable[..., None], tuple[Any, ...]]] = deque()
        """The segments in transit, in order: the time of arrival, the action then, and its arguments."""
        self._is_stuck = False
        """Whether the first segment in transit could not arrive because its link is cut."""
        self._is_lost = False
        """Whether everything sent from here is lost."""

    # -- the connection, as its owner uses it

    unsent_bytes = 0  # what was written is in transit

    def write(self, data: bytes) -> None:
        if self._open:
            self._send(self.peer.deliver, data)

    def close(self) -> None:
        self.abort()  # what was written is in transit, and arrives before the end does

    def abort(self) -> None:
        if self._open:
            self._send(self.peer.end)  # first, because an end is forgotten when it has nothing in transit
            self._end()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        unread, self._unread = self._unread, []
        for data in unread:
            self._loop.call_soon(self.deliver, data)

    # -- events from the network

    def process_hears(self, what: Callable[..., None], *args: Any) -> None:
        """Call `what` at this end in the context of its process: now, or when the process continues."""
        if self._loop.is_stopped(self.local.host):
            self._loop.call_soon(what, *args, context=self._context)
        else:
            self._context.run(what, *args)

    def accepted(self, on_connection: ReceiverFactory) -> None:
        if self._open:
            self.receiver = on_connection(self)

    def refuse(self) -> None:
        """Refuse this connection: no listener accepts it."""
        if self._open:
            self._open = False
            self._send(self.peer.end)

    def deliver(self, data: bytes) -> None:
        if self._vanished:  # the machine lost its power and does not know this connection
            self._send(self.peer.end)
        elif self._open and self._reading and self.receiver:
            self.receiver.received(data)
        elif self._open:
            self._unread.append(data)

    def end(self) -> None:
        """End this side, because the other side closed."""
        if self._open:
            self._end()

    def lose(self) -> None:
        self._is_lost, self._is_stuck = True, False
        self._sent.clear()

    def vanish(self) -> None:
        """Lose this end with the power of its machine.

        Segments in transit still arrive, but those that wait for a cut link are dropped.
        """
        self._open, self._vanished = False, True
        if self._is_stuck:
            self._sent.clear()
            self._is_stuck = False

    def send_again(self) -> None:
        """Send the waiting segments again, because a link may work again."""
        if self._is_stuck:
            self._is_stuck = False
            now_s = self._loop.time()
            way_s = self._internet.way_s
            self._sent = deque((now_s + way_s(), what, args) for _, what, args in self._sent)
            self._next()

    def _end(self) -> None:
        self._open = False
        if not self._sent:
            self._internet.forget(self)
        self._loop.call_soon(self._closed, context=self._context)

    def _closed(self) -> None:
        if self.receiver and not self._vanished:
            self.receiver.closed()

    def _send(self, what: Callable[..., None], *args: Any) -> None:
        """Schedule an action at the other end, after the transit time."""
        if self._is_lost:
            return
        self._sent.append((self._loop.time() + self._internet.way_s(), what, args))
        if len(self._sent) == 1 and not self._is_stuck:
            self._next()

    def _next(self) -> None:
        if self._sent:
            self._loop.call_at(self._sent[0][0], self._arrive, context=self._internet.context)
        elif not (self._open or self._vanished):  # an end that vanished may still have to send a reset
            self._internet.forget(self)

    def _arrive(self) -> None:
        if not self._sent:  # the machine lost its power
            return
        if self._internet.is_cut(self.local.host, self.remote.host):
            self._is_stuck = True
            return
        _, what, args = self._sent.popleft()
        try:
            self.peer.process_hears(what, *args)
        finally:  # also when the arrival kills the machine
            self._next()
