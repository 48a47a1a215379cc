"""Runs workloads on clusters of all kinds, and injects faults meanwhile.

`run` is used by `mqproof workload` and by the workload suite. Our simulated broker is killed, stopped, loses
its machine, is isolated, silenced or slowed down, or has a full disk. For any other cluster, the faults are
those of our links to it and of the available fault controls.
"""

import asyncio
import errno
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mqproof.conformance.adapters.apache.fault_controls import of_broker
from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.adapters.simulated_loops import failures_reported
from mqproof.conformance.adapters.workload.workload_clients import Clients, groups
from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.engine.targets import APACHE, IMPL, MUTANT, REMOTING, TargetError, mutant_named
from mqproof.conformance.engine.time_bounds import bounded
from mqproof.conformance.faults.controls import FaultControl, FaultControls, Place, by_shell
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.faults.link import FAULTS, LinkedNetwork
from mqproof.conformance.history.lines import Line, SetupValue
from mqproof.conformance.history.recorder import Historian
from mqproof.conformance.history.workload import Workload
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.suites.flush.target import Fault
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.network import Address, AsyncioNetwork, SimulatedNetwork
from mqproof.impl.runtime.runtime import SlowCalls, production, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode, StoreConfig

Progress = Callable[[str], None]
NO_CONTROLS: Final = FaultCommands()


def run(
    target: str,
    workload: Workload,
    progress: Progress = lambda _: None,
    controls: FaultCommands = NO_CONTROLS,
) -> list[Line]:
    """Return the history of a workload on the target.

    The targets are `impl` (simulated), `mutant:NAME`, `remoting://HOST:PORT` of a name server, and
    `apache:LINE`, which is started for the run. `controls` are the fault commands for a running cluster.

    Raises:
        ValueError: no such target. TargetError: the cluster cannot be used. EndlessError: our simulated
            cluster never ends.
    """
    if target == IMPL:
        return _simulated(workload, progress)
    if target.startswith(MUTANT):
        from mqproof.conformance.mutants.workload import MUTANTS  # imports this module

        with injected(mutant_named(target, MUTANTS)):
            return _simulated(workload, progress)
    if target.startswith(APACHE):
        with _apache(target.removeprefix(APACHE)) as (address, fault_controls):
            return asyncio.run(_remote(address, fault_controls, workload, progress))
    if not target.startswith(REMOTING):
        expected = f"impl, {MUTANT}NAME, {REMOTING}HOST:PORT of a name server, or {APACHE}LINE"
        raise ValueError(f"{target!r}: {expected} expected")
    try:
        address = Address.parse(target.removeprefix(REMOTING))
    except ValueError as error:
        raise ValueError(f"{target!r}: {error}") from None
    return asyncio.run(_remote(address, by_shell(controls), workload, progress))


# A running cluster.


async def _remote(
    address: Address, fault_controls: FaultControls, workload: Workload, progress: Progress
) -> list[Line]:
    """Run the workload on new topics and groups, which are not deleted."""
    prefix = f"w{time.time_ns():x}"
    began = time.time_ns() - time.monotonic_ns()
    setup = SetupValue(
        name=f"{REMOTING}{address}", seed=workload.seed, flush_mode="ASYNC_FLUSH", replication="async",
        groups=groups(prefix), skew_ms=5,
    )  # fmt: skip
    historian = Historian(lambda: began + time.monotonic_ns(), setup)
    network = LinkedNetwork(AsyncioNetwork())
    try:
        runtime = production(network)
        caller = Caller(address, runtime)
        await caller.start()
        await caller.stop()
        network.link(caller.broker)  # before the first connection to the broker
        place = Place(caller.broker_name, str(caller.broker), str(address))
        with tempfile.TemporaryDirectory() as directory, expected_warnings("mqproof.impl"):
            clients = Clients(address, runtime, historian, workload, prefix, directory, same_clock=False)
            await clients.run(_FaultInjector(network, fault_controls, place), progress)
    finally:
        network.close()
    return historian.lines


class _EvenChoice:
    """Draws kinds; none is drawn again before all have been drawn."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self._left: list[str] = []

    def draw(self, chance: random.Random) -> str:
        self._left = self._left or list(self._kinds)
        kind = chance.choice(self._left)
        self._left.remove(kind)
        return kind


class _FaultInjector:
    """Injects into one broker the faults of links and fault controls."""

    _PAIRS: Final = MappingProxyType({
        "kill": (FaultControl.KILL, FaultControl.START, "start"),
        "shutdown": (FaultControl.STOP, FaultControl.START, "start"),
        "isolate": (FaultControl.ISOLATE, FaultControl.REJOIN, "heal"),
        "pause": (FaultControl.FREEZE, FaultControl.THAW, "resume"),
    })  # fmt: skip

    def __init__(self, network: LinkedNetwork, fault_controls: FaultControls, place: Place) -> None:
        self._link = network.link(Address.parse(place.address))
        self._fault_controls = fault_controls
        self._place = place
        able = [
            kind for kind, (begin, end, _) in self._PAIRS.items() if {begin, end} <= fault_controls.keys()
        ]
        self._kinds = _EvenChoice((*able, *sorted(FAULTS)))

    async def strike(self, historian: Historian, chance: random.Random) -> None:
        kind = self._kinds.draw(chance)
        historian.fault(kind, self._place.broker)
        if kind in FAULTS:
            self._link.disturb(Fault(kind))
            await asyncio.sleep(chance.uniform(0.5, 3))
            self._link.calm()
            historian.fault("heal", self._place.broker)
            return
        begin, end, closer = self._PAIRS[kind]
        await asyncio.to_thread(self._fault_controls[begin], self._place)
        try:
            await asyncio.sleep(chance.uniform(0.5, 3))
        finally:
            await asyncio.to_thread(self._fault_controls[end], self._place)
        historian.fault(closer, self._place.broker)


@contextmanager
def _apache(line: str) -> Iterator[tuple[Address, FaultControls]]:
    """Yield the address of an Apache name server, and the fault controls of its broker."""
    from mqproof.conformance.adapters.apache import servers  # only this function needs it
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of

    release = release_of(line)
    with tempfile.TemporaryDirectory(prefix="mqproof-workload-") as folder, ExitStack() as stack:
        try:
            names = servers.name_server(release, Path(folder))
            broker = servers.broker(release, Path(folder), names.address)
            stack.enter_context(servers.running(names, broker))
        except (ApacheMissingError, servers.ApacheServerError) as error:
            raise TargetError(str(error)) from None
        yield names.address, of_broker(broker)


# Our simulated cluster.


class _World:
    """A name server and a broker in simulated time; the nemesis stops and restarts the broker."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.network = SimulatedNetwork(delay_s=_DELAY_S)
        self.runtime = simulated(loop, self.network, seed)
        self._loop = loop
        self._disk = SimulatedDisk()
        self._seed = seed
        self._lives = 0
        self._kinds = _EvenChoice((*_ENDS, *_DISTURBANCES))

    async def start(self) -> Address:
        self._name_server = NameServer(NameServerConfig(port=9876), self.runtime)
        self.name_server = await self._name_server.start()
        await self.start_broker()
        return self.name_server

    async def stop(self) -> None:
        await self._broker.stop()
        await self._name_server.stop()

    async def start_broker(self) -> None:
        self._lives += 1
        runtime = simulated(self._loop, self.network, self._seed + 1000 * self._lives, self._disk)
        assert isinstance(runtime.offload, SlowCalls), "it is simulated"
        self._calls = runtime.offload
        store = StoreConfig(
            flush_mode=FlushMode.SYNC_FLUSH,
            commit_log_segment_bytes=1 << 16,
            consume_queue_segment_bytes=20_000,
            index_slots=100,
            index_entries=1000,
            sync_flush_timeout_ms=1000,  # before producers time out
        )
        config = BrokerConfig(
            name_servers=(self.name_server,), port=10_911, store_directory="/store", store=store
        )
        self._broker = Broker(config, runtime)
        self._address = await self._broker.start()

    async def strike(self, historian: Historian, chance: random.Random) -> None:
        kind = self._kinds.draw(chance)
        if kind in _DISTURBANCES:
            historian.fault(kind, _BROKER)
            self._disturb(kind)
            await asyncio.sleep(chance.uniform(0, 1) if kind == "cut" else chance.uniform(0.5, 5))
            self._calm()
            if kind in _ONE_WAY:  # the bytes after lost ones cannot be decoded
                self.network.cut(self._address)
            historian.fault("heal", _BROKER)
        # A store whose disk was full is read-only until it is opened again
        # (docs/reference/protocol/storing.md, "Disk errors").
        if kind == "full_disk":
            await self._end("shutdown", historian, chance)
        elif kind in _ENDS:
            await self._end(kind, historian, chance)

    async def _end(self, kind: str, historian: Historian, chance: random.Random) -> None:
        historian.fault(kind, _BROKER)
        if kind == "shutdown":
            await self._broker.stop()
        self._broker.kill()
        match kind:
            case "crash_os":
                self._disk.crash_os(chance)
            case "lose_power":
                self._disk.lose_power()
            case _:
                self._disk.crash_process()
        await asyncio.sleep(chance.uniform(0.5, 5))
        await self.start_broker()
        historian.fault("start", _BROKER)

    def _disturb(self, kind: str) -> None:
        match kind:
            case "cut":
                self.network.cut(self._address)
            case "isolate":
                self.network.silence(self._address)
            case "lose_requests":
                self.network.deafen(self._address)
            case "lose_answers":
                self.network.mute(self._address)
            case "delay":
                self.network.delay_s = _SLOW_S
            case "slow_disk":
                self._calls.delay_ms_max = _SLOW_CALL_MS
            case "full_disk":
                self._disk.on_step = _refuse_file

    def _calm(self) -> None:
        self.network.heal(self._address)
        self.network.delay_s = _DELAY_S
        self._calls.delay_ms_max = _CALL_MS
        self._disk.on_step = None


_BROKER: Final = "broker-a"
_ENDS: Final = ("kill", "shutdown", "crash_os", "lose_power")
_ONE_WAY: Final = ("lose_requests", "lose_answers")
_DISTURBANCES: Final = ("cut", "isolate", *_ONE_WAY, "delay", "slow_disk", "full_disk")
_DELAY_S: Final = 0.0005
_SLOW_S: Final = 0.2
_CALL_MS: Final = 2.0
_SLOW_CALL_MS: Final = 8000.0
"""The maximum delay of a slow disk's calls: longer than a send waits for the disk."""


def _refuse_file(step: Step) -> None:
    if step.kind == "create":
        raise OSError(errno.ENOSPC, "the disk is full", step.path)


def _simulated(workload: Workload, progress: Progress) -> list[Line]:
    loop = SimulatedLoop()
    prefix = "w"
    setup = SetupValue(
        name=IMPL, seed=workload.seed, groups=groups(prefix), skew_ms=2, visible_within_ms=1000,
        deliver_within_ms=15_000, rebalance_within_ms=25_000, serve_within_ms=60_000, lag_max_ms=20_000,
        stall_within_ms=20_000,
    )  # fmt: skip

    async def main() -> list[Line]:
        world = _World(loop, workload.seed)
        address = await world.start()
        clock = world.runtime.clock
        historian = Historian(lambda: clock.now_us() * 1000, setup)
        clients = Clients(address, world.runtime, historian, workload, prefix, "/offsets", same_clock=True)
        await clients.run(world, progress)
        await world.stop()
        return historian.lines

    # Errors from injected faults are expected.
    with expected_warnings("mqproof.impl"), failures_reported(), bounded():
        return run_simulated(main(), loop)
