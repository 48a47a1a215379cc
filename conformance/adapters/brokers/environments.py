"""The environments of the broker under test: our broker in simulated time, a running broker, or Apache's.

An environment has a name server, a broker registered there, and an event loop with a runtime on which the
suite's clients run.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from mqproof.conformance.adapters import own_checks, simulated_loops
from mqproof.conformance.adapters.apache.fault_controls import of_broker
from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.adapters.final_look import FinalLook
from mqproof.conformance.adapters.watched_network import WatchedNetwork
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.engine.broker_faults import CRASHES, ENDS, BrokerFault
from mqproof.conformance.engine.fault_commands import NO_COMMANDS, FaultCommands
from mqproof.conformance.engine.targets import (
    APACHE,
    IMPL,
    MUTANT,
    REMOTING,
    TargetError,
    UnknownTargetError,
    mutant_named,
)
from mqproof.conformance.faults.controls import FaultControl, FaultControls, Place, by_shell
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.faults.link import LinkedNetwork
from mqproof.conformance.hosts.simulated import MASTER, Cluster, Setup
from mqproof.conformance.mutants.replacement import Defect, injected
from mqproof.conformance.wire import chapters
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import Runtime, production
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.delay import parse_levels
from mqproof.report.model import Witness

T = TypeVar("T")

DELAY_LEVELS: Final = "1s 2s 1s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s 2s"
"""The delay levels of brokers that are started here; short, to keep the runs short."""
LOCK_LEASE_MS: Final = 3000
_SEGMENT_BYTES: Final = 1024
"""The size of a segment: small, so that a run fills several segments and old ones expire."""

_CONFIG_FOLDER: Final = "config"
"""The folder of a store that has the settings and offsets."""
_CLIENTS: Final = "clients"
"""The simulated machine on which the suite's clients run."""
_DRAWN: Final = "drawn store"
"""The simulated machine with a store that no broker has."""
_FROZEN_S: Final = 4.0
"""How long a broker stays frozen: longer than a lease, and longer than some delays."""
_REAL_FROZEN_S: Final = 1.0
_DOWN_S: Final = 1.0
_RESTARTED_EACH: Final = 3
"""One example in so many is read back after restarts too, since they take most of the time."""
_FAULT_CONTROLS: Final = {
    BrokerFault.KILL: (FaultControl.KILL, FaultControl.START),
    BrokerFault.RESTART: (FaultControl.STOP, FaultControl.START),
    BrokerFault.FREEZE: (FaultControl.FREEZE, FaultControl.THAW),
}

CONFIG: Final = BrokerConfig(
    queue_lock_ms=LOCK_LEASE_MS,
    store=StoreConfig(
        flush_mode=FlushMode.SYNC_FLUSH,
        commit_log_segment_bytes=_SEGMENT_BYTES,
        consume_queue_segment_bytes=20 * 1000,
        index_slots=16,
        index_entries=16,
        file_reserved_ms=60_000,
        delay_levels_ms=parse_levels(DELAY_LEVELS),
    ),
)
"""The configuration of our broker; the relevant settings are used for Apache's broker too."""


_SETUP: Final = Setup(
    CONFIG.store.flush_mode,
    replication=None,
    queues=CONFIG.default_topic_queues,
    store=CONFIG.store,
    queue_lock_ms=LOCK_LEASE_MS,
    property_filter=True,
)


class Environment(Protocol):
    """The environment of a broker under test.

    `open` is called first and `close` last; the environment may be opened again afterwards.
    """

    @property
    def name(self) -> str:
        """The name of the target, as passed to `--target`."""
        ...

    @property
    def is_simulated(self) -> bool:
        """True if time passes only while nothing else happens."""
        ...

    @property
    def delay_levels_s(self) -> tuple[float, ...]:
        """The delay of each level in seconds, level 1 first."""
        ...

    @property
    def lock_lease_s(self) -> float:
        """The time for which the broker keeps a queue's lock that is not renewed."""
        ...

    @property
    def faults(self) -> frozenset[BrokerFault]:
        """The faults that `inject` accepts."""
        ...

    @property
    def runtime(self) -> Runtime: ...

    @property
    def watch(self) -> Watch:
        """Sees all answers that clients with this runtime receive, from `open` on."""
        ...

    @property
    def name_server(self) -> Address: ...

    def open(self) -> None:
        """Start the environment. Raises TargetError."""
        ...

    def found(self, place: Place) -> None:
        """Receive the place of the broker under test, before any client connects to it."""
        ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject the fault and return at its end; the broker may need more time to serve.

        Raises TargetError.
        """
        ...

    def run(self, work: Coroutine[object, object, T]) -> T: ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...


class SimulatedEnvironment:
    """Our broker in this process, optionally with a defect while the environment is open."""

    is_simulated = True
    delay_levels_s = tuple(ms / 1000 for ms in CONFIG.store.delay_levels_ms)
    lock_lease_s = LOCK_LEASE_MS / 1000
    faults = frozenset(BrokerFault)

    def __init__(self, name: str = IMPL, defect: Defect | None = None) -> None:
        self.name = name
        self._defect = defect
        self._loop: SimulatedLoop | None = None
        self._held = ExitStack()

    def open(self) -> None:
        self._held.enter_context(expected_warnings("mqproof.impl"))
        if self._defect is not None:
            self._held.enter_context(injected(self._defect))
        self._loop = SimulatedLoop()
        self._cluster = Cluster(self._loop, 0, _SETUP)
        self._cluster.internet.delay_s = (0.0, 0.0)  # requests arrive in the order in which they were sent
        clients = self._cluster.add_machine(_CLIENTS).runtime()
        self.watch = Watch(lambda: now_ms(clients.clock), is_exact=True)
        self.runtime = _watched(clients, self.watch)
        self.name_server = self._cluster.names[0]
        self.run(self._cluster.start_all())

    def run(self, work: Coroutine[object, object, T]) -> T:
        assert self._loop is not None, "call open first"
        return simulated_loops.run(self._loop, work)

    def found(self, place: Place) -> None:
        pass

    def inject(self, fault: BrokerFault) -> None:
        self.run(self._inject(fault))

    def machine(self, name: str) -> Runtime:
        """Add another machine, for a client of its own."""
        return _watched(self._cluster.add_machine(name).runtime(), self.watch, examined=True)

    def examine_files(self) -> None:
        """Start stores on copies of the broker's disk; compare all files with the log."""
        broker = self._cluster.brokers.get(MASTER)
        if broker is not None:
            machine, config = self._cluster.machines[MASTER], self._cluster.config(MASTER)
            self.run(own_checks.examine_copies(machine, config, self.watch))

    def examine_drawn_store(self) -> None:
        """Do the same with a store whose content is drawn, on a machine of its own."""
        self.run(own_checks.examine_drawn_store(self._cluster.add_machine(_DRAWN), self.watch))

    def lose_messages(self) -> None:
        """Delete all files of the broker's store but its settings and offsets while it is stopped."""
        self.run(self._lose_messages())

    async def _lose_messages(self) -> None:
        cluster = self._cluster
        store = cluster.config(MASTER).store_directory
        await cluster.stop(MASTER)
        disk = cluster.machines[MASTER].disk
        for name in disk.names(store):
            if name != _CONFIG_FOLDER:
                _remove(disk, f"{store}/{name}")
        self.watch.forget()
        await cluster.start(MASTER)

    def run_on(self, name: str, work: Coroutine[object, object, T]) -> T:
        """Run the work as the process of that machine, with all that it starts; `pause` stops the process."""
        assert self._loop is not None, "call open first"
        context = self._loop.context_of(self._cluster.machines[name].host)
        return simulated_loops.run(self._loop, self._loop.create_task(work, context=context))

    def pause(self, name: str) -> None:
        """Stop the machine's process (SIGSTOP)."""
        self._cluster.pause(name)

    def go_on(self, name: str) -> None:
        """Continue the machine's process (SIGCONT)."""
        self._cluster.go_on(name)

    def lose_machine(self, name: str) -> None:
        """Remove the machine permanently, without notifying any peer."""
        self._cluster.lose_power(name)

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        with self._held:
            simulated_loops.end(loop)

    async def _inject(self, fault: BrokerFault) -> None:
        cluster = self._cluster
        match fault:
            case BrokerFault.CUT:
                (link, _) = cluster.links(_CLIENTS, MASTER)
                cluster.internet.reset(*link)
            case BrokerFault.FREEZE:
                cluster.pause(MASTER)
                await asyncio.sleep(_FROZEN_S)
                cluster.go_on(MASTER)
            case BrokerFault.RESTART:
                await cluster.stop(MASTER)
            case BrokerFault.KILL:
                cluster.kill(MASTER)
            case BrokerFault.POWER_LOSS:
                cluster.lose_power(MASTER)
        if fault in ENDS:
            await asyncio.sleep(_DOWN_S)
            await cluster.start(MASTER)


class RunningEnvironment:
    """A broker that was already running, and keeps running afterwards."""

    is_simulated = False

    def __init__(
        self,
        name: str,
        name_server: Address,
        config: BrokerConfig,
        fault_controls: FaultControls = MappingProxyType({}),
    ) -> None:
        """`config`: the relevant part of its configuration.

        `fault_controls`: the fault controls that are available.
        """
        self.name = name
        self.name_server = name_server
        self.delay_levels_s = tuple(ms / 1000 for ms in config.store.delay_levels_ms)
        self.lock_lease_s = config.queue_lock_ms / 1000
        able = (
            fault for fault, (begin, end) in _FAULT_CONTROLS.items() if fault_controls.keys() >= {begin, end}
        )
        self.faults = frozenset({BrokerFault.CUT, *able})
        self._fault_controls = fault_controls
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._network = LinkedNetwork(AsyncioNetwork())
        clients = production(self._network)
        self.watch = Watch(lambda: now_ms(clients.clock), is_exact=False)
        self.runtime = _watched(clients, self.watch)

    def run(self, work: Coroutine[object, object, T]) -> T:
        assert self._loop is not None, "call open first"
        return self._loop.run_until_complete(work)

    def found(self, place: Place) -> None:
        self._place = place
        self._link = self._network.link(Address.parse(place.address))

    def inject(self, fault: BrokerFault) -> None:
        if fault is BrokerFault.CUT:
            self._link.hang_up()
            return
        begin, end = _FAULT_CONTROLS[fault]
        try:
            self._fault_controls[begin](self._place)
            if fault is BrokerFault.FREEZE:
                time.sleep(_REAL_FROZEN_S)
        finally:  # restore the broker's state
            self._fault_controls[end](self._place)

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        try:
            loop.run_until_complete(asyncio.sleep(0))  # let the transports process the close
        finally:
            self._network.close()
            loop.close()


class OnEnvironment:
    """The common part of targets that are a broker in an environment: opening, closing and faults."""

    draws_stores = False
    """Whether each example also has a store with drawn content. It does not depend on the suite."""
    afterwards: tuple[str, ...] = ()
    """Steps after those of the example that saw something wrong, in the form of a script."""

    def __init__(self, environment: Environment) -> None:
        self.name = environment.name
        self._environment = environment
        self._is_open = False

    def inject(self, fault: BrokerFault) -> None:
        self._environment.inject(fault)
        if fault in CRASHES:
            self._environment.watch.crashed()
        self._environment.run(self._caller.until_it_serves())

    def read_back(self) -> None:
        """Read everything of the example by every way of access, in some examples after restarts too."""
        wrong = self._environment.watch.wrong
        before = len(wrong)
        try:
            self._read_back()
        except BodyError as error:
            unreadable = Wrong(chapters.JSON_BODIES, str(error))
            self._environment.watch.found("a body that no client can read", [unreadable])
        if new := wrong[before:]:
            self.afterwards = (f"read each message, table and file: {new[0].text}",)

    def _read_back(self) -> None:
        environment = self._environment
        last = FinalLook(self._caller, environment.watch)
        before = environment.run(last.look())
        if isinstance(environment, SimulatedEnvironment):
            environment.examine_files()
            if self.draws_stores:
                environment.examine_drawn_store()
        if environment.is_simulated and environment.watch.answers % _RESTARTED_EACH == 0:
            # A clean exit writes everything durably, so that the power may fail right after the start.
            for fault in (BrokerFault.RESTART, BrokerFault.POWER_LOSS):
                OnEnvironment.inject(self, fault)
                after = environment.run(last.look())
                last.compare(before, after)
                before = after

    @property
    def wrong_answers(self) -> tuple[Witness, ...]:
        """What is wrong in the answers of the last example, whatever the suite examines."""
        return tuple(self._environment.watch.wrong)

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._environment.run(self._leave())
        finally:
            self._environment.close()

    def _arrive(self) -> None:
        self._environment.open()
        self._caller = Caller(self._environment.name_server, self._environment.runtime)
        try:
            self._environment.run(self._caller.start())
        except TargetError:
            self._environment.run(self._caller.stop())
            self._environment.close()
            raise
        self._is_open = True
        self._environment.found(self._caller.place)
        self._environment.run(self._open())

    async def _open(self) -> None:
        """Create what the suite needs in the broker; the default creates nothing."""

    async def _leave(self) -> None:
        """Delete what the suite created, and close the connections."""
        raise NotImplementedError


@contextmanager
def environments(
    name: str, defects: Mapping[str, Defect], controls: FaultCommands = NO_COMMANDS
) -> Iterator[Callable[[], Environment]]:
    """Yield the factory of environments `impl`, `remoting://HOST:PORT`, `apache:LINE` or `mutant:NAME`.

    `mutant:NAME` is one of the given defects. The servers run within the block. `controls` are the fault
    commands for a running broker.

    Raises:
        UnknownTargetError: the name is none of these. TargetError: the servers did not start.
    """
    if name == IMPL:
        yield SimulatedEnvironment
    elif name.startswith(MUTANT):
        defect = mutant_named(name, defects)
        yield lambda: SimulatedEnvironment(name, defect)
    elif name.startswith(REMOTING):
        try:
            address = Address.parse(name.removeprefix(REMOTING))
        except ValueError:
            raise UnknownTargetError(f"{name!r}: remoting://HOST:PORT of a name server expected") from None
        yield lambda: RunningEnvironment(name, address, BrokerConfig(), by_shell(controls))
    elif name.startswith(APACHE):
        with _apache(name.removeprefix(APACHE)) as (address, fault_controls):
            yield lambda: RunningEnvironment(name, address, CONFIG, fault_controls)
    else:
        raise UnknownTargetError(
            f"{name!r} is not a target of this suite, expected reference, impl, remoting://HOST:PORT,"
            " apache:LINE, mutant:NAME or python:MODULE:CLASS"
        )


@contextmanager
def _apache(line: str) -> Iterator[tuple[Address, FaultControls]]:
    """Yield the address of an Apache name server that has a broker, and the fault controls of the broker."""
    # Imported late: only this function needs them.
    from mqproof.conformance.adapters.apache import servers
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of

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
        yield Address(*names.address), of_broker(broker)


def _watched(runtime: Runtime, watch: Watch, *, examined: bool = False) -> Runtime:
    return replace(runtime, network=WatchedNetwork(runtime.network, watch, examined=examined))


def _remove(disk: SimulatedDisk, path: str) -> None:
    """Remove a file, or all files below a folder."""
    if disk.is_directory(path):
        for name in disk.names(path):
            _remove(disk, f"{path}/{name}")
    else:
        disk.lose(path)


async def loop_time_s() -> float:
    """Return the time of the event loop that runs the environment, in seconds."""
    return asyncio.get_running_loop().time()
