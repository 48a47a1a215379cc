"""Machines and the links between them, in memory: what TCP makes of a bad network.

Each machine has a network of its own (`SimulatedInternet.machine`); its connections come from its address.
Bytes of a connection arrive in order. A lost segment is one that is late, for TCP sends it again; bytes for a
link that is cut wait and arrive when it is there again; a process that dies resets its connections; a machine
that loses its power says nothing, and answers with a reset what comes to it in its next life. Connections do
not wait for one another. Everything follows from `chance`.

Each machine has one process at most, of its name (`SimulatedLoop.context_of`). While that is stopped its
machine goes on: connections are opened, and bytes arrive, of which the process hears when it goes on.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from random import Random
from typing import Any, Final

from mqproof.impl.runtime.network import Address, Connection, Listener, Network, Receiver, ReceiverFactory
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

_AGAIN_S: Final = 0.2
"""After so long a lost segment is sent again, then after twice that, and so on."""
_SYN_AGAIN_S: Final = 1.0
"""The same of a connection that is to be opened."""

Link = tuple[str, str]
"""From one machine to another."""


class SimulatedInternet:
    """All machines. `loss` and `delay_s` may be changed at any time, and count for what is sent then."""

    def __init__(self, chance: Random) -> None:
        self.loss = 0.0
        """The share of segments that do not arrive at the first attempt."""
        self.delay_s = (0.0002, 0.001)
        """Shortest and longest way of one segment."""
        self.sent = 0
        """Segments so far."""
        self.context = copy_context()
        """Of no process: what is on its way is not held up by whoever sent it."""
        self._chance = chance
        self._cut: set[Link] = set()
        self._dark: set[str] = set()
        self._listeners: dict[Address, _Door] = {}
        self._ends: dict[_End, None] = {}
        self._ports = itertools.count(40_000)

    def machine(self, host: str) -> Network:
        """The network as this machine sees it."""
        return _Machine(self, host)

    # -- what goes wrong

    def cut(self, links: Iterable[Link]) -> None:
        """From now on nothing arrives on these links."""
        self._cut.update(links)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """These links, or all, work again: what waited for them arrives."""
        self._cut.difference_update(list(self._cut if links is None else links))
        for end in list(self._ends):
            end.send_again()

    def reset(self, one: str, other: str) -> None:
        """Every connection between two machines breaks: both ends hear `closed`."""
        for end in [end for end in self._ends if (end.local.host, end.remote.host) == (one, other)]:
            end.abort()

    def forget_connections(self, one: str, other: str) -> None:
        """What is between two machines knows none of their connections any more: what was on its way and all
        that follows is lost, and neither end is told."""
        for end in self._ends:
            if {end.local.host, end.remote.host} == {one, other}:
                end.lose()

    def lose_power(self, host: str) -> None:
        """The machine is gone, with its connections; nobody is told."""
        self._dark.add(host)
        for address in [address for address in self._listeners if address.host == host]:
            del self._listeners[address]
        for end in [end for end in self._ends if end.local.host == host]:
            end.vanish()

    def power_on(self, host: str) -> None:
        """The machine answers again: with a reset, to whom it knew before."""
        self._dark.discard(host)
        self.heal(())

    # -- what its machines ask

    def is_cut(self, source: str, target: str) -> bool:
        """Whether nothing that was sent arrives now."""
        return (source, target) in self._cut or target in self._dark

    def way_s(self) -> float:
        """How long the next segment takes."""
        chance = self._chance
        self.sent += 1
        seconds = chance.uniform(*self.delay_s)
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
            raise ConnectionRefusedError(f"nobody listens on {target}")
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
        else:  # closed before its process came to it
            end.refuse()

    def close(self) -> None:
        if self._listeners.get(self.address) is self:  # a later one may have the address by now
            del self._listeners[self.address]


class _End:
    """One end of a connection, and the way from here to the other."""

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
        self._sent: deque[tuple[float, Callable[[], None]]] = deque()
        """What is on its way, in its order: when it may arrive, and what it does then."""
        self._is_stuck = False
        """The first of it could not arrive."""
        self._is_lost = False
        """Nothing that is sent from here arrives any more."""

    # -- the connection of its owner

    def write(self, data: bytes) -> None:
        if self._open:
            self._send(self.peer.deliver, data)

    def close(self) -> None:
        self.abort()  # what was written is on its way, and arrives before the end does

    def abort(self) -> None:
        if self._open:
            self._send(self.peer.end)  # first: an end is forgotten when nothing of it is on its way
            self._end()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        unread, self._unread = self._unread, []
        for data in unread:
            self._loop.call_soon(self.deliver, data)

    # -- what the network does

    def process_hears(self, what: Callable[..., None], *args: Any) -> None:
        """Something happens at this end, of which its process hears now, or when it goes on."""
        if self._loop.is_stopped(self.local.host):
            self._loop.call_soon(what, *args, context=self._context)
        else:
            self._context.run(what, *args)

    def accepted(self, on_connection: ReceiverFactory) -> None:
        if self._open:
            self.receiver = on_connection(self)

    def refuse(self) -> None:
        """Nobody takes this connection."""
        if self._open:
            self._open = False
            self._send(self.peer.end)

    def deliver(self, data: bytes) -> None:
        if self._vanished:  # a machine that knows nothing of this connection
            self._send(self.peer.end)
        elif self._open and self._reading and self.receiver:
            self.receiver.received(data)
        elif self._open:
            self._unread.append(data)

    def end(self) -> None:
        """The other side closed."""
        if self._open:
            self._end()

    def lose(self) -> None:
        self._is_lost, self._is_stuck = True, False
        self._sent.clear()

    def vanish(self) -> None:
        """The machine lost its power; what is on the wire arrives, what waits for a link does not."""
        self._open, self._vanished = False, True
        if self._is_stuck:
            self._sent.clear()
            self._is_stuck = False

    def send_again(self) -> None:
        """A link may be there again."""
        if self._is_stuck:
            self._is_stuck = False
            now_s = self._loop.time()
            self._sent = deque((now_s + self._internet.way_s(), arrival) for _, arrival in self._sent)
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
        """Something is to happen at the other end."""
        if self._is_lost:
            return
        arrival = partial(self.peer.process_hears, what, *args)
        self._sent.append((self._loop.time() + self._internet.way_s(), arrival))
        if len(self._sent) == 1 and not self._is_stuck:
            self._next()

    def _next(self) -> None:
        if self._sent:
            self._loop.call_at(self._sent[0][0], self._arrive, context=self._internet.context)
        elif not (self._open or self._vanished):  # who has vanished may yet have to say so
            self._internet.forget(self)

    def _arrive(self) -> None:
        if not self._sent:  # the machine vanished
            return
        if self._internet.is_cut(self.local.host, self.remote.host):
            self._is_stuck = True
            return
        _, arrival = self._sent.popleft()
        try:
            arrival()
        finally:  # also when the machine dies of it
            self._next()
