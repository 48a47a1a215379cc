"""The environment of a server: clock, disk, network, randomness, and a way to run blocking calls."""

import asyncio
import os
import random
import resource
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from mqproof.impl.runtime.clock import Clock, SystemClock
from mqproof.impl.runtime.disk import Disk, RealDisk
from mqproof.impl.runtime.security.peer_network import PeerConfig, PeerIdentity, PeerNetwork, read_secret
from mqproof.impl.runtime.security.tls import Tls, TlsNetwork
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedClock, SimulatedLoop
from mqproof.impl.runtime.supervision import Supervisor

if TYPE_CHECKING:
    from mqproof.impl.runtime.network import Network

T = TypeVar("T")

_CONNECTIONS_MAX: Final = 10_000
_FILES_MAX: Final = 1 << 20
"""The limit on open files that is requested where the system has no limit."""


class Offload(Protocol):
    """Runs a blocking call (an fsync) while the event loop continues."""

    def __call__(self, function: Callable[[], T]) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Runtime:
    clock: Clock
    disk: Disk
    network: "Network"
    random: random.Random
    offload: Offload
    memory_bytes: int = 16 << 30
    """The memory of the machine."""
    tls: Tls | None = None
    files_max: int = _FILES_MAX
    """How many files, connections included, the process may have open."""
    nonce: Callable[[int], bytes] = os.urandom
    """Returns random bytes that a peer cannot predict."""
    supervisor: Supervisor = field(default_factory=Supervisor)
    """Runs the tasks that must live as long as the servers of the process."""

    has_threads: bool = False
    """Whether blocking calls may run in threads; in a simulation they run in the loop."""

    @property
    def connections_max(self) -> int:
        """The most connections that one listener accepts.

        A process has at most three listeners, and must always be able to open its files: a store that cannot
        open a file becomes read-only permanently.
        """
        return min(_CONNECTIONS_MAX, self.files_max // 4)

    @property
    def remoting(self) -> "Network":
        """The network for RocketMQ's own connections, which may use TLS; other connections do not."""
        return TlsNetwork(self.network, self.tls) if self.tls else self.network

    def peers(self, config: PeerConfig, name: str, purpose: str) -> PeerNetwork:
        """Return the network between brokers, as configured. Peers with a secret use TLS as clients do.

        Raises ConfigError: the secret cannot be read.
        """
        secret = read_secret(self.disk, config.secret_file) if config.secret_file else None
        inner = self.network if secret is None else self.remoting
        return PeerNetwork(inner, PeerIdentity(secret, name, purpose, self.nonce), config.peer_addresses)


def production(network: "Network", tls: Tls | None = None) -> Runtime:
    """Return the production runtime; blocking calls run in the running loop's thread pool.

    From then on the process may open as many files as the system allows.
    """
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    files_max = _raise_files_max()
    return Runtime(
        SystemClock(),
        RealDisk(),
        network,
        random.Random(),
        in_thread,
        memory_bytes,
        tls,
        files_max,
        has_threads=True,
    )


def _raise_files_max() -> int:
    """Raise the soft limit on open files and return the new limit.

    Shells commonly set a soft limit of 1024, which is too low for servers, and a much higher hard limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, _FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # some systems allow less than they report
            return soft
    return wanted


def simulated(loop: SimulatedLoop, network: "Network", seed: int = 0, disk: Disk | None = None) -> Runtime:
    """Return a runtime in which everything follows from the seed.

    Pass `disk` to keep its content across simulated crashes.
    """
    chance = random.Random(seed)
    runtime = Runtime(
        SimulatedClock(loop),
        disk or SimulatedDisk(),
        network,
        chance,
        SlowCalls(chance),
        nonce=chance.randbytes,
    )
    runtime.supervisor.on_failure = loop.task_failed
    return runtime


async def in_thread(function: Callable[[], T]) -> T:
    """Offload that runs the call in a thread of the running loop's pool."""
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def inline(function: Callable[[], T]) -> T:
    """Offload that runs the call immediately; no other coroutine runs meanwhile."""
    return function()


class SlowCalls:
    """Offload for simulations: the call happens at some moment within a random, virtual delay.

    Other coroutines run before and after that moment, as they do around a real fsync in its thread.
    """

    def __init__(self, chance: random.Random, delay_ms_max: float = 2.0) -> None:
        self._chance = chance
        self.delay_ms_max = delay_ms_max

    async def __call__(self, function: Callable[[], T]) -> T:
        await asyncio.sleep(self._chance.uniform(0, self.delay_ms_max / 1000))
        result = function()
        await asyncio.sleep(self._chance.uniform(0, self.delay_ms_max / 1000))
        return result
