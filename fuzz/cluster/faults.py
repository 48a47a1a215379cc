"""Faults of a simulated cluster: of its processes, machines, disks, clocks and network.

In a program each fault is four bytes: kind, target, start time and duration (in quarters of a second).
"""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, Final, NamedTuple

from mqproof.conformance.hosts.simulated import NAME_SERVERS, SLAVE, Cluster
from mqproof.conformance.suites.flush.steps import End
from mqproof.fuzz.target import Finding
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, Step
from mqproof.impl.runtime.simulated_internet import Link
from mqproof.impl.store.errors import StoreError

HEAD_BYTES: Final = 6
FAULT_BYTES: Final = 4
QUARTER_S: Final = 0.25
SESSION: Final = SessionConfig(route_refresh_ms=5000, heartbeat_ms=10_000)
"""The sessions of clients in a simulated cluster."""
_ORDER_S: Final = 4.0
_EXPIRY_S: Final = 3.0
_ROOM: Final = Space(1 << 40, 1 << 39)
_FULL: Final = Space(1 << 40, 1 << 30)


class FaultInjector:
    """Injects faults into a cluster, and ends all of them.

    `on_ending` is called with each broker that is about to end, and how. `on_clock_step` is called after the
    clock of a machine was changed.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_ending: Callable[[str, End], None] = lambda *_: None,
        on_clock_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.on_ending = on_ending
        self.on_clock_step = on_clock_step
        self.clocks_agree = True
        """Whether no clock was ever changed."""
        self._operator: Session | None = None

    async def strike(self, kind: int, selector: int, length: int) -> None:
        """Inject the fault of that number, from its beginning to its end."""
        await FAULTS[kind % len(FAULTS)](self, selector, seconds_of(length))

    async def end_all(self) -> None:
        """End all faults and start all nodes. Cancel the tasks that inject faults first. Raises Finding."""
        cluster = self.cluster
        cluster.internet.loss, cluster.internet.delay_s = 0.0, (0.0002, 0.001)
        cluster.internet.heal()
        for machine in cluster.machines.values():
            machine.disk.on_step, machine.disk.room = None, _ROOM
            machine.fsync.slowness = 1.0
        for node in cluster.nodes:
            cluster.go_on(node)
            if node in cluster.brokers and cluster.brokers[node].store.failure:
                self.end(node, End.KILL)  # the operator starts it again
        for node in (*NAME_SERVERS, *cluster.nodes):
            cluster.go_on(node)
            await self.start(node)

    async def order(self, node: str, code: RequestCode, fields: dict[str, str]) -> None:
        """Send an operator's request to a broker. The broker may not answer."""
        cluster = self.cluster
        if self._operator is None:
            self._operator = cluster.session("operator", SESSION)
            await self._operator.start()
        address = Address(cluster.machines[node].host, cluster.config(node).port)
        with suppress(RemotingError):
            await self._operator.remoting.invoke(address, new_request(code, fields), _ORDER_S)

    def node(self, selector: int) -> str:
        """Return the master for odd `selector`, otherwise any other machine."""
        nodes = [node for node in (*self.cluster.nodes, *NAME_SERVERS) if node != self.master]
        return self.master if selector % 2 else nodes[selector // 2 % len(nodes)]

    @property
    def master(self) -> str:
        """The current master, or the node configured as master if none serves."""
        return self.cluster.master or self.cluster.nodes[0]

    def broker(self, selector: int) -> str:
        nodes = self.cluster.nodes
        return nodes[selector % len(nodes)]

    def end(self, node: str, how: End) -> None:
        """End a node's process or its machine."""
        cluster = self.cluster
        if node in cluster.nodes:
            self.on_ending(node, how)  # also for a machine whose broker is down: it may lose stored data
        cluster.machines[node].disk.on_step = None
        {End.KILL: cluster.kill, End.OS_CRASH: cluster.crash, End.POWER_LOSS: cluster.lose_power}[how](node)

    async def start(self, node: str) -> None:
        """Start a node that is not running. A broker whose disk fails stays down. Raises Finding."""
        cluster = self.cluster
        if node in NAME_SERVERS:
            await cluster.start(node)
            return
        disk = cluster.machines[node].disk
        try:
            await cluster.start(node)
        except SimulatedCrashError:
            self.end(node, End.OS_CRASH)
        except (StoreError, OSError) as error:
            if disk.on_step is None:
                raise Finding("RecoveryEnds", f"{node} does not restart: {error}") from None
            self.end(node, End.KILL)

    async def cut(self, links: set[Link], seconds: float) -> None:
        self.cluster.internet.cut(links)
        await asyncio.sleep(seconds)
        self.cluster.internet.heal(links)

    def around(self, node: str) -> list[tuple[Link, Link]]:
        """Return the links between a machine and each other machine, as pairs (outgoing, incoming)."""
        return [self.cluster.links(node, other) for other in self.cluster.machines if other != node]


async def _down(faults: FaultInjector, node: str, how: End, seconds: float) -> None:
    faults.end(node, how)
    await asyncio.sleep(seconds)
    await faults.start(node)


async def _kill(faults: FaultInjector, selector: int, seconds: float) -> None:
    await _down(faults, faults.node(selector), End.KILL, seconds)


async def _lose_power(faults: FaultInjector, selector: int, seconds: float) -> None:
    await _down(faults, faults.broker(selector), End.POWER_LOSS, seconds)


async def _crash(faults: FaultInjector, selector: int, seconds: float) -> None:
    await _down(faults, faults.broker(selector), End.OS_CRASH, seconds)


async def _crash_all(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Fail all machines at the same time, by crash or power loss. Each restarts after its own delay."""
    how = End.POWER_LOSS if selector % 2 else End.OS_CRASH
    await asyncio.gather(
        *(
            _down(faults, node, how, seconds + 0.1 * (number * selector % 7))
            for number, node in enumerate(faults.cluster.nodes)
        )
    )


async def _restart(faults: FaultInjector, selector: int, _seconds: float) -> None:
    """Restart a broker within milliseconds, before other nodes can notice."""
    how = End.OS_CRASH if selector // 2 % 2 else End.KILL
    await _down(faults, faults.broker(selector), how, 0.005 * (1 + selector % 16))


async def _stop(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Shut a broker down cleanly, and start it again later."""
    node = faults.broker(selector)
    if not faults.cluster.is_serving(node) or faults.cluster.is_paused(node):
        return
    # Answers that the broker sends while it is still starting belong to the life that ends here.
    await faults.cluster.stop(node, lambda: faults.on_ending(node, End.SHUTDOWN))
    await asyncio.sleep(seconds)
    await faults.start(node)


async def _crash_at_step(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Crash the machine at one of the next steps of its disk."""
    node = faults.broker(selector)
    done = asyncio.Event()
    left = selector % 23

    def on_step(_: Step) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            done.set()
            faults.cluster.pause(node)  # no part of the node runs after this point
            raise SimulatedCrashError("at this step")

    faults.cluster.machines[node].disk.on_step = on_step
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await done.wait()
    await _down(faults, node, End.OS_CRASH, seconds / 4)


async def _disk_fails(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Make a broker's disk fail at one of its next steps, and at every later one until the fault ends.

    For some values of `selector` only syncs fail.
    """
    node = faults.broker(selector)
    syncs_only = selector // 4 % 2
    disk = faults.cluster.machines[node].disk
    left = selector % 23
    error = OSError(errno.ENOSPC if selector % 2 else errno.EIO, "the disk failed")

    def on_step(step: Step) -> None:
        nonlocal left
        left -= 1
        if left < 0 and (step.kind == "sync" or not syncs_only):
            raise error

    disk.on_step = on_step
    await asyncio.sleep(seconds)
    if disk.on_step is on_step:
        disk.on_step = None
        await _down(faults, node, End.POWER_LOSS if syncs_only else End.KILL, 0.5)


async def _disk_full(faults: FaultInjector, selector: int, seconds: float) -> None:
    disk = faults.cluster.machines[faults.broker(selector)].disk
    disk.room = _FULL
    await asyncio.sleep(seconds)
    disk.room = _ROOM


async def _slow_disk(faults: FaultInjector, selector: int, seconds: float) -> None:
    machine = faults.cluster.machines[faults.broker(selector)]
    machine.fsync.slowness = 2000.0 if selector // 2 % 2 else 100.0
    await asyncio.sleep(seconds)
    machine.fsync.slowness = 1.0


async def _isolate(faults: FaultInjector, selector: int, seconds: float) -> None:
    await faults.cut({link for pair in faults.around(faults.node(selector)) for link in pair}, seconds)


async def _deafen(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Cut all incoming links of a node: it can send but not receive."""
    await faults.cut({back for _, back in faults.around(faults.node(selector))}, seconds)


async def _mute(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Cut all outgoing links of a node: it can receive but not send."""
    await faults.cut({there for there, _ in faults.around(faults.node(selector))}, seconds)


async def _cut_link(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Cut the link between two machines, in one direction or both.

    In half of the cases they are master and slave.
    """
    machines = list(faults.cluster.machines)
    one, other = faults.master, machines[selector // 4 % len(machines)]
    if SLAVE in machines and selector // 2 % 2:
        other = SLAVE
    links = faults.cluster.links(one, other)
    await faults.cut(set(links) if selector % 2 else {links[selector // 8 % 2]}, seconds)


async def _reset(faults: FaultInjector, selector: int, _seconds: float) -> None:
    """Break the connections between two machines. They can be opened again."""
    machines = list(faults.cluster.machines)
    one, other = (
        faults.cluster.machines[name].host for name in (faults.master, machines[selector % len(machines)])
    )
    faults.cluster.internet.reset(one, other)


async def _pause(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Suspend a node's process and continue it later."""
    node = faults.node(selector)
    faults.cluster.pause(node)
    await asyncio.sleep(seconds)
    faults.cluster.go_on(node)


async def _step_clock(faults: FaultInjector, selector: int, seconds: float) -> None:
    faults.clocks_agree = False
    faults.on_clock_step()
    clock = faults.cluster.machines[faults.node(selector)].clock
    clock.skew_us += int(seconds * 1_000_000) * (1 if selector // 2 % 2 else -1)


async def expire(faults: FaultInjector, selector: int, seconds: float) -> None:
    """Delete the old segments of a broker's log, repeatedly."""
    end_s = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end_s:
        await faults.order(faults.broker(selector), RequestCode.DELETE_EXPIRED_COMMITLOG, {})
        await asyncio.sleep(_EXPIRY_S)


FAULTS: Final[tuple[Callable[[FaultInjector, int, float], Coroutine[Any, Any, None]], ...]] = (
    _kill,
    _lose_power,
    _crash,
    _crash_all,
    _restart,
    _stop,
    _crash_at_step,
    _disk_fails,
    _disk_full,
    _slow_disk,
    _isolate,
    _deafen,
    _mute,
    _cut_link,
    _reset,
    _step_clock,
    _pause,
)
"""The faults by their numbers in programs."""

STEP_CLOCK: Final = FAULTS.index(_step_clock)


def seconds_of(length: int) -> float:
    """Return the duration that the last byte of a fault means."""
    return (1 + length % 80) * QUARTER_S


class Head(NamedTuple):
    """What the first bytes of a program choose."""

    seed: int
    shape: int
    """The shape of the cluster."""
    sky: int
    """The losses and delays of the network, and the pace of the clients."""


def head_of(data: bytes) -> Head:
    """Return the head of a program. Missing bytes are read as zeros."""
    head = data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
    return Head(int.from_bytes(head[:4], "little"), head[4], head[5])


def faults_of(data: bytes, faults_max: int) -> list[tuple[int, ...]]:
    """Return the faults of a program, which follow its head. Missing bytes are read as zeros."""
    end = min(len(data), HEAD_BYTES + faults_max * FAULT_BYTES)
    return [
        tuple(data[at : at + FAULT_BYTES].ljust(FAULT_BYTES, b"\0"))
        for at in range(HEAD_BYTES, end, FAULT_BYTES)
    ]


def with_random_faults(seed: int, chance: Random, faults_max: int) -> bytes:
    """Return a program of any shape with one to `faults_max` faults of a cluster."""
    faults = chance.randint(1, faults_max)
    drawn = bytearray(seed.to_bytes(8, "little")[:4] + chance.randbytes(2 + FAULT_BYTES * faults))
    for at in range(HEAD_BYTES, len(drawn), FAULT_BYTES):
        drawn[at] %= len(FAULTS)
    return bytes(drawn)


def fault(name: str, selector: int, at: int, length: int) -> bytes:
    """Encode one fault as bytes; `at` and `length` are quarters of a second."""
    number = next(number for number, each in enumerate(FAULTS) if each.__name__ == f"_{name}")
    return bytes((number, selector, at, length))
