"""The targets of the routing suite: our name server, its mutants, running ones, and Apache's.

Ours runs in simulated time. Start with `targets`, which turns the name passed to `--target` into a factory.
"""

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.apache.fault_controls import of_name_server
from mqproof.conformance.adapters.python_class import adapter
from mqproof.conformance.adapters.routing.simulated_peers import Player
from mqproof.conformance.engine.fault_commands import NO_COMMANDS, FaultCommands
from mqproof.conformance.engine.targets import (
    APACHE,
    IMPL,
    MUTANT,
    PYTHON,
    REMOTING,
    TargetError,
    UnknownTargetError,
    mutant_named,
)
from mqproof.conformance.faults.controls import FaultControl, FaultControls, Place, by_shell
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.suites.routing.target import Broker, Capability, NameServerTarget, Route, Times
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, AsyncioNetwork, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, production, simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.spec.events import Event

if TYPE_CHECKING:
    from mqproof.conformance.adapters.apache.servers import ApacheServer

T = TypeVar("T")
Factory = Callable[[], NameServerTarget]

NODE: Final = "namesrv"
_UNHEARD_S: Final = 1.0
_NEEDS: Final[Mapping[Capability, tuple[FaultControl, FaultControl]]] = {
    Capability.RESTART: (FaultControl.NAMESRV_KILL, FaultControl.NAMESRV_START),
    Capability.ISOLATE: (FaultControl.NAMESRV_ISOLATE, FaultControl.NAMESRV_REJOIN),
}
_CONFIG: Final = NameServerConfig()
TIMES: Final = Times(_CONFIG.broker_expiry_ms / 1000, _CONFIG.scan_interval_ms / 1000)
"""RocketMQ's defaults, which ours has too. A broker may request another expiry; the brokers here do not."""


@contextmanager
def targets(
    name: str, *, slave_speaks: bool = True, controls: FaultCommands = NO_COMMANDS
) -> Iterator[Factory]:
    """Yield the factory of the target with the given name.

    The names are `impl`, `remoting://HOST:PORT`, `apache:LINE`, `mutant:NAME` and `python:MODULE:CLASS`. The
    servers run within the block. For a running name server, `slave_speaks` says that it is a 5.x release, and
    `controls` are the fault commands.

    Raises:
        UnknownTargetError: the name is none of these. TargetError: the name server did not start.
    """
    if name == IMPL:
        yield ImplNameServer
    elif name.startswith(MUTANT):
        from mqproof.conformance.mutants.routing import MUTANTS

        mutant = mutant_named(name, MUTANTS)
        yield lambda: MutantNameServer(mutant)
    elif name.startswith(REMOTING):
        try:
            address = Address.parse(name.removeprefix(REMOTING))
        except ValueError:
            raise UnknownTargetError(f"{name!r}: remoting://HOST:PORT of a name server expected") from None
        fault_controls = by_shell(controls)
        yield lambda: RunningNameServer(
            name, address, slave_speaks=slave_speaks, fault_controls=fault_controls
        )
    elif name.startswith(PYTHON):
        yield adapter(name, NameServerTarget)
    elif name.startswith(APACHE):
        with _apache(name.removeprefix(APACHE)) as (release, server):
            slave_speaks, address = not release.startswith("4."), Address(*server.address)
            fault_controls = of_name_server(server)
            yield lambda: RunningNameServer(
                name, address, slave_speaks=slave_speaks, fault_controls=fault_controls
            )
    else:
        raise UnknownTargetError(
            f"{name!r} is not a target of the suite routing, expected impl, remoting://HOST:PORT,"
            " apache:LINE, mutant:NAME or python:MODULE:CLASS"
        )


@contextmanager
def _apache(line: str) -> "Iterator[tuple[str, ApacheServer]]":
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of
    from mqproof.conformance.adapters.apache.servers import ApacheServerError, name_server, running

    release = release_of(line)
    with tempfile.TemporaryDirectory(prefix="mqproof-routing-") as folder, ExitStack() as stack:
        try:
            server = name_server(release, Path(folder))
            stack.enter_context(running(server))
        except (ApacheMissingError, ApacheServerError) as error:
            raise TargetError(str(error)) from None
        yield release, server


class _Played:
    """The common part of all targets: a player on an event loop."""

    times = TIMES

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None

    def register(self, broker: Broker, topics: Sequence[str], over: Broker | None = None) -> None:
        self._run(self._player.register(broker, topics, over))

    def unregister(self, broker: Broker) -> None:
        self._run(self._player.unregister(broker))

    def hang_up(self, broker: Broker) -> None:
        self._run(self._player.hang_up(broker))

    def wipe_write(self, name: str) -> None:
        self._run(self._player.wipe_write(name))

    def route(self, topic: str) -> Route | None:
        return self._run(self._player.route(topic))

    def cluster(self) -> dict[str, frozenset[int]]:
        return self._run(self._player.cluster())

    def publish(self, topic: str) -> frozenset[str]:
        return self._run(self._player.publish(topic))

    def wait(self, seconds: float) -> None:
        self._run(self._player.wait(seconds))

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        try:
            loop.run_until_complete(self._ended())
            loop.run_until_complete(asyncio.sleep(0))  # let the transports process the close
        finally:
            loop.close()

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def _play(self, address: Address, runtime: Runtime) -> None:
        async def made() -> Player:
            return Player(address, runtime, f"conform_{secrets.token_hex(6)}_")

        self._player = self._run(made())

    async def _ended(self) -> None:
        await self._player.stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "call open first"
        return simulated_loops.run(self._loop, work)


class ImplNameServer(_Played):
    """Our name server in this process, in simulated time, with our client.

    `events` collects its event log.
    """

    capabilities = frozenset(Capability)

    def __init__(self, name: str = IMPL) -> None:
        super().__init__(name)
        self.events: list[Event] = []

    def open(self) -> None:
        loop = SimulatedLoop()
        self._open(loop)
        self._network = SimulatedNetwork()
        self._runtime = simulated(loop, self._network)
        self.events.clear()
        self._log = EventLog(self.events.append, NODE, self._runtime.clock)
        self._address = self._run(self._started(0))
        self._play(self._address, self._runtime)

    def restart(self) -> None:
        async def killed() -> None:
            self._server.kill()
            await asyncio.sleep(0)

        self._run(killed())
        self._run(self._started(self._address.port))
        self._run(self._player.again())

    def register_isolated(self, broker: Broker, topics: Sequence[str]) -> None:
        self._network.silence(self._address)
        self._run(self._player.register_unheard(broker, topics, _UNHEARD_S))
        self._network.heal(self._address)

    async def _started(self, port: int) -> Address:
        self._server = NameServer(NameServerConfig(port=port), self._runtime, self._log)
        return await self._server.start()

    async def _ended(self) -> None:
        await super()._ended()
        await self._server.stop()


class MutantNameServer(ImplNameServer):
    """Our name server with a defect while it is open."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(f"{MUTANT}{mutant.name}")
        self._mutant = mutant
        self._injected = ExitStack()

    def open(self) -> None:
        self._injected.enter_context(injected(self._mutant))
        super().open()

    def close(self) -> None:
        with self._injected:
            super().close()


class RunningNameServer(_Played):
    """A name server that was already running, and keeps running; `fault_controls` stop or isolate it."""

    def __init__(
        self,
        name: str,
        address: Address,
        *,
        slave_speaks: bool,
        fault_controls: FaultControls = MappingProxyType({}),
    ) -> None:
        super().__init__(name)
        can = {capability for capability, needed in _NEEDS.items() if fault_controls.keys() >= set(needed)}
        self.capabilities = frozenset(can | ({Capability.SLAVE_SPEAKS} if slave_speaks else set()))
        self._address = address
        self._fault_controls = fault_controls
        self._undo: FaultControl | None = None

    def open(self) -> None:
        self._open(asyncio.new_event_loop())
        self._play(self._address, production(AsyncioNetwork()))
        self.cluster()  # raises TargetError if it does not answer

    def restart(self) -> None:
        self._undo = FaultControl.NAMESRV_START
        self._apply(FaultControl.NAMESRV_KILL)
        self._put_back()
        self._run(self._player.again())
        self._run(self._player.answers())

    def register_isolated(self, broker: Broker, topics: Sequence[str]) -> None:
        self._undo = FaultControl.NAMESRV_REJOIN
        self._apply(FaultControl.NAMESRV_ISOLATE)
        self._run(self._player.register_unheard(broker, topics, _UNHEARD_S))
        self._put_back()
        self._run(self._player.answers())

    def close(self) -> None:
        try:
            self._put_back()
        finally:
            super().close()

    def _put_back(self) -> None:
        """Undo the current fault: an example may have been interrupted at any point."""
        undo, self._undo = self._undo, None
        if undo is not None:
            self._apply(undo)

    def _apply(self, control: FaultControl) -> None:
        self._fault_controls[control](Place("", "", str(self._address)))
