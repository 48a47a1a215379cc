"""Where the broker under test runs: ours in simulated time, any that runs already, Apache's.

A ground has a name server, a broker of it, and an event loop with a runtime on which the suite's clients run.
"""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from conformance.planting import Defect, planted
from conformance.silence import silenced
from conformance.target import TargetError
from conformance.targets import APACHE, IMPL, MUTANT, REMOTING, UnknownTargetError
from impl.broker.broker import Broker
from impl.broker.config import BrokerConfig
from impl.namesrv.config import NameServerConfig
from impl.namesrv.server import NameServer
from impl.runtime.network import Address, AsyncioNetwork, SimulatedNetwork
from impl.runtime.runtime import Runtime, production, simulated
from impl.runtime.simulated_loop import SimulatedLoop
from impl.store.config import StoreConfig
from impl.store.delay import parse_levels

T = TypeVar("T")

DELAY_LEVELS: Final = "1s 2s 1s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s"
"""Of brokers that are started here: nobody waits for hours."""
LOCK_LEASE_MS: Final = 3000
_SEGMENT_BYTES: Final = 1024
"""Small, so that a run fills several, and old ones expire."""

CONFIG: Final = BrokerConfig(
    store_directory="/store",
    queue_lock_ms=LOCK_LEASE_MS,
    store=StoreConfig(
        commit_log_segment_bytes=_SEGMENT_BYTES,
        consume_queue_segment_bytes=20 * 1000,
        index_slots=16,
        index_entries=64,
        file_reserved_ms=60_000,
        delay_levels_ms=parse_levels(DELAY_LEVELS),
    ),
)
"""Of our broker; what counts of it is set at Apache's as well."""


class Ground(Protocol):
    """`open` is the first call, `close` the last; a ground may be opened again afterwards."""

    @property
    def name(self) -> str:
        """Of the target, as given to `--target`."""
        ...

    @property
    def is_simulated(self) -> bool:
        """Time passes only when nothing else happens."""
        ...

    @property
    def delay_levels_s(self) -> tuple[float, ...]:
        """How long messages of each delay level wait, level 1 first."""
        ...

    @property
    def lock_lease_s(self) -> float:
        """So long the broker keeps a queue's lock that is not renewed."""
        ...

    @property
    def runtime(self) -> Runtime: ...

    @property
    def name_server(self) -> Address: ...

    def open(self) -> None:
        """Raises TargetError."""
        ...

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...


class SimulatedGround:
    """Ours, in this process; perhaps with a defect while it is open."""

    is_simulated = True
    delay_levels_s = tuple(ms / 1000 for ms in CONFIG.store.delay_levels_ms)
    lock_lease_s = LOCK_LEASE_MS / 1000

    def __init__(self, name: str = IMPL, defect: Defect | None = None, config: BrokerConfig = CONFIG) -> None:
        self.name = name
        self._defect = defect
        self._config = config
        self._loop: SimulatedLoop | None = None
        self._held = ExitStack()

    def open(self) -> None:
        self._held.enter_context(silenced("impl"))
        if self._defect is not None:
            self._held.enter_context(planted(self._defect))
        self._loop = SimulatedLoop()
        self.runtime = simulated(self._loop, SimulatedNetwork())
        self.run(self._start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "open comes first"
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        with self._held:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(_ended(tasks))
            loop.close()

    async def _start(self) -> None:
        self.name_server = await NameServer(NameServerConfig(), self.runtime).start()
        config = replace(self._config, name_servers=(self.name_server,))
        self.broker = Broker(config, self.runtime)
        await self.broker.start()


class RunningGround:
    """One that runs already, and goes on running."""

    is_simulated = False

    def __init__(self, name: str, name_server: Address, config: BrokerConfig) -> None:
        """`config`: how it is configured, as far as it matters here."""
        self.name = name
        self.name_server = name_server
        self.delay_levels_s = tuple(ms / 1000 for ms in config.store.delay_levels_ms)
        self.lock_lease_s = config.queue_lock_ms / 1000
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.runtime = production(AsyncioNetwork())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "open comes first"
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        try:
            loop.run_until_complete(asyncio.sleep(0))  # the transports hear that they are closed
        finally:
            loop.close()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


class OnGround:
    """What targets that are a broker on a ground have alike: how they come and go."""

    def __init__(self, ground: Ground) -> None:
        self.name = ground.name
        self._ground = ground
        self._is_open = False

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._ground.run(self._leave())
        finally:
            self._ground.close()

    def _arrive(self) -> None:
        self._ground.open()
        self._is_open = True
        self._ground.run(self._open())

    async def _open(self) -> None:
        """Find the broker, and make what the suite needs there."""
        raise NotImplementedError

    async def _leave(self) -> None:
        """Delete it, and hang up."""
        raise NotImplementedError


@contextmanager
def grounds(name: str, defects: Mapping[str, Defect]) -> Iterator[Callable[[], Ground]]:
    """The factory of grounds called `impl`, `remoting://HOST:PORT`, `apache:LINE` or `mutant:NAME`, one of
    these defects. What it needs runs within the block.

    Raises:
        UnknownTargetError: the name is none of these. TargetError: the servers did not come up.
    """
    if name == IMPL:
        yield SimulatedGround
    elif name.startswith(MUTANT):
        if (defect := defects.get(name.removeprefix(MUTANT))) is None:
            known = ", ".join(defects)
            raise UnknownTargetError(f"{name!r} is no mutant of this suite, expected one of {known}")
        yield lambda: SimulatedGround(name, defect)
    elif name.startswith(REMOTING):
        try:
            address = Address.parse(name.removeprefix(REMOTING))
        except ValueError:
            raise UnknownTargetError(f"{name!r}: remoting://HOST:PORT of a name server expected") from None
        yield lambda: RunningGround(name, address, BrokerConfig())
    elif name.startswith(APACHE):
        with _apache(name.removeprefix(APACHE)) as address:
            yield lambda: RunningGround(name, address, CONFIG)
    else:
        raise UnknownTargetError(
            f"{name!r} is no target of this suite, expected reference, impl, remoting://HOST:PORT,"
            " apache:LINE, mutant:NAME or python:MODULE:CLASS"
        )


@contextmanager
def _apache(line: str) -> Iterator[Address]:
    """The address of a name server of Apache's that has a broker."""
    # Imported late: nobody else needs them.
    from conformance.targets.apache import servers
    from conformance.targets.apache.artifacts import ApacheMissingError, release_of

    release = release_of(line)
    with tempfile.TemporaryDirectory(prefix="mqproof-suite-") as folder, ExitStack() as stack:
        try:
            names = servers.name_server(release, Path(folder))
            properties = {"messageDelayLevel": DELAY_LEVELS}
            jvm = (*servers.SMALL_JVM, f"-Drocketmq.broker.rebalance.lockMaxLiveTime={LOCK_LEASE_MS}")
            broker = servers.broker(release, Path(folder), names.address, properties=properties, jvm=jvm)
            stack.enter_context(servers.running(names, broker))
        except (ApacheMissingError, servers.ApacheServerError) as error:
            raise TargetError(str(error)) from None
        yield Address(*names.address)
