"""What a server is given instead of the world: clock, disk, network, chance, and room for blocking calls."""

import asyncio
import os
import random
import resource
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from mqproof.impl.runtime.clock import Clock, SystemClock
from mqproof.impl.runtime.disk import Disk, RealDisk
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedClock, SimulatedLoop
from mqproof.impl.runtime.tls import Tls, TlsNetwork

if TYPE_CHECKING:
    from mqproof.impl.runtime.network import Network

T = TypeVar("T")

_CONNECTIONS_MAX: Final = 10_000
_FILES_MAX: Final = 1 << 20
"""No more are asked for, where the system names no bound."""


class Offload(Protocol):
    """Runs a blocking call (an fsync) while the event loop goes on."""

    def __call__(self, function: Callable[[], T]) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Runtime:
    clock: Clock
    disk: Disk
    network: "Network"
    random: random.Random
    offload: Offload
    memory_bytes: int = 16 << 30
    """What the machine has."""
    tls: Tls | None = None
    files_max: int = _FILES_MAX
    """What the process may have open, connections among them."""

    @property
    def connections_max(self) -> int:
        """What one listener takes: a process has three at most, and its files must never want for room. A
        store that may not open a file is read-only for good."""
        return min(_CONNECTIONS_MAX, self.files_max // 4)

    @property
    def remoting(self) -> "Network":
        """The network for RocketMQ's own connections, which may be TLS; all others are not."""
        return TlsNetwork(self.network, self.tls) if self.tls else self.network


def production(network: "Network", tls: Tls | None = None) -> Runtime:
    """The real world; blocking calls go to the running loop's thread pool. The process may open as many files
    from then on as the system allows it to."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    files_max = _raise_files_max()
    return Runtime(
        SystemClock(), RealDisk(), network, random.Random(), in_thread, memory_bytes, tls, files_max
    )


def _raise_files_max() -> int:
    """Shells commonly hand on a bound of 1024, which is not meant for servers, and a hard one far above."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, _FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # some systems allow less than they say
            return soft
    return wanted


def simulated(loop: SimulatedLoop, network: "Network", seed: int = 0, disk: Disk | None = None) -> Runtime:
    """A world in which everything follows from the seed. Give the disk to outlive a simulated crash."""
    chance = random.Random(seed)
    return Runtime(SimulatedClock(loop), disk or SimulatedDisk(), network, chance, SlowCalls(chance))


async def in_thread(function: Callable[[], T]) -> T:
    """Offload: in a thread of the running loop's pool."""
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def inline(function: Callable[[], T]) -> T:
    """Offload: here and now; no other coroutine runs meanwhile."""
    return function()


class SlowCalls:
    """Offload for simulations: the call happens at some instant of a random, virtual delay.

    Other coroutines run before and after that instant, as they do around a real fsync in its thread.
    """

    def __init__(self, chance: random.Random, delay_ms_max: float = 2.0) -> None:
        self._chance = chance
        self.delay_ms_max = delay_ms_max

    async def __call__(self, function: Callable[[], T]) -> T:
        await asyncio.sleep(self._chance.uniform(0, self.delay_ms_max / 1000))
        result = function()
        await asyncio.sleep(self._chance.uniform(0, self.delay_ms_max / 1000))
        return result
