"""Machines with our brokers and name servers, in one simulated world.

Each machine has its own disk, clock and address. Processes can be killed, machines can lose power, and links
can be cut; the seed determines everything that happens.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.dledger.config import Membership, Peer
from mqproof.impl.dledger.ledger_log import stored_in
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.dledger.state import Role as MemberRole
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk
from mqproof.impl.runtime.simulated_internet import Link, SimulatedInternet
from mqproof.impl.runtime.simulated_loop import SimulatedClock, SimulatedLoop
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.files.record import decode, peek
from mqproof.impl.store.message_store import MessageStore
from mqproof.spec.events import Event, Kind

T = TypeVar("T")

MASTER: Final = "master"
SLAVE: Final = "slave"
SECOND: Final = "slave-2"
"""The node of a second slave; add its machine before its first start."""
OTHER: Final = "other"
"""The node of another master, which has a broker name of its own."""
MEMBERS: Final = ("n0", "n1", "n2")
"""The nodes of brokers that elect their master."""
NAME_SERVERS: Final = ("names-1", "names-2")
BROKER_NAMES: Final = {MASTER: "broker-a", SLAVE: "broker-a", SECOND: "broker-a", OTHER: "broker-b"}
_SLAVES: Final = {SLAVE: 1, SECOND: 2}
"""The slaves with their broker ids."""

_NAMES_PORT: Final = 9876
_BROKER_PORT: Final = 10911
_GROUP_PORT: Final = 40911
_SEGMENT_BYTES: Final = 1 << 14
_FSYNC_MS_MAX: Final = 2.0

STORE: Final = StoreConfig(
    commit_log_segment_bytes=_SEGMENT_BYTES,
    consume_queue_segment_bytes=20_000,
    index_slots=10,
    index_entries=1000,
    clean_forcibly=False,  # a full disk refuses messages, and deletes none
)


@dataclass(frozen=True, slots=True)
class Setup:
    """The configuration of a cluster."""

    flush: FlushMode = FlushMode.ASYNC_FLUSH
    replication: ReplicationConfig | None = field(default_factory=lambda: ReplicationConfig(Role.SYNC_MASTER))
    """The replication of the master, which has a slave; None for a master without a slave."""
    other: bool = False
    """Whether there is another master."""
    elected: bool = False
    """Whether the brokers are a group that elects its master; `flush` and `replication` are ignored then."""
    queues: int = 1
    """The number of queues of a topic at a broker."""
    store: StoreConfig = STORE
    queue_lock_ms: int = 60_000
    property_filter: bool = False
    filter_servers: bool = False
    transaction_check_interval_ms: int = 30_000
    transaction_checks_max: int = 15
    register_interval_ms: int = 30_000
    broker_expiry_ms: int = 120_000
    """The time after which a name server removes a silent broker."""
    scan_interval_ms: int = 10_000
    """The pause between two searches of a name server for silent brokers."""
    name_server_events: bool = False
    """Whether `events` has the events of name servers, too."""
    configured: Callable[[BrokerConfig], BrokerConfig] = lambda config: config
    """Returns the configuration of a broker for that of these options."""
    name_server: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the configuration of each name server."""


class Fsync:
    """Runs the blocking calls of one machine, each at a random time within a delay.

    The delay is longer if the disk is slow. While calls are held, they do not run at all.
    """

    def __init__(self, chance: random.Random) -> None:
        self.slowness = 1.0
        self._chance = chance
        self._held: list[tuple[Callable[[], None], Context]] | None = None
        """The held calls with the contexts of their processes; None while no calls are held."""

    def hold(self) -> None:
        self._held = self._held or []

    def release(self) -> None:
        held, self._held = self._held or [], None
        for call, context in held:
            asyncio.get_running_loop().call_soon(call, context=context)

    def __call__(self, function: Callable[[], T]) -> Awaitable[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def deliver(result: T) -> None:
            if not done.done():
                done.set_result(result)

        def call() -> None:
            if self._held is not None:
                self._held.append((call, copy_context()))
            elif not done.done():  # otherwise the waiting task has ended
                try:
                    result = function()
                except KeyboardInterrupt:  # SIGTERM, Ctrl-C or a limit of time: no failure of the disk
                    done.cancel()
                    raise
                except BaseException as error:  # also a simulated crash: the caller handles it
                    done.set_exception(error)
                else:
                    self._later(deliver, result)

        self._later(call)
        return done

    def _later(self, what: Callable[..., None], *args: object) -> None:
        delay_s = self.slowness * self._chance.uniform(0, _FSYNC_MS_MAX / 1000)
        asyncio.get_running_loop().call_later(delay_s, what, *args)


class Machine:
    """The state of a machine that outlives its processes."""

    def __init__(self, host: str, internet: SimulatedInternet, loop: SimulatedLoop, seed: str) -> None:
        self.host = host
        self._loop = loop
        self.disk = SimulatedDisk()
        self.clock = SimulatedClock(loop)
        self.fsync = Fsync(random.Random(f"{seed} fsync"))
        self.memory_bytes = 16 << 30
        self.life = 0
        """The number of processes on this machine that have ended or begun to stop."""
        self._network = internet.machine(host)
        self._chance = random.Random(f"{seed} chance")

    def runtime(self) -> Runtime:
        """Return a runtime for one process."""
        chance = random.Random(self._chance.getrandbits(64))
        disk = self.disk.process()
        runtime = Runtime(
            self.clock, disk, self._network, chance, self.fsync, self.memory_bytes, nonce=chance.randbytes
        )  # fmt: skip
        runtime.supervisor.on_failure = self._loop.task_failed
        return runtime


class Cluster:
    """Two name servers, a master, and optionally a slave and another master.

    All of them are stopped until they are started.
    """

    def __init__(self, loop: SimulatedLoop, seed: int, setup: Setup) -> None:
        self.setup = setup
        self.chance = random.Random(seed)
        self.internet = SimulatedInternet(random.Random(f"{seed} internet"))
        self.events: list[Event] = []
        self.brokers: dict[str, Broker] = {}
        """The brokers whose process runs."""
        self.name_servers: dict[str, NameServer] = {}
        self.machines: dict[str, Machine] = {}
        self._loop = loop
        self._seed = seed
        self._logs: dict[str, tuple[Broker, list[StoredMessage], int]] = {}
        self._seqs: dict[str, int] = {}
        self.on_recovered: Callable[[str], None] = lambda _: None
        """Called with a broker whose store was recovered, before it serves any client."""
        self.on_event: Callable[[Event], None] = lambda _: None
        """Called with each event of a broker, as it happens."""
        self.on_ended: Callable[[str], None] = lambda _: None
        """Called with a broker whose process has ended."""
        self._term = 0
        """The latest term in which a member became leader."""
        self._working: dict[str, asyncio.Task[Any]] = {}
        self._serving: set[str] = set()
        for node in (*NAME_SERVERS, *self.nodes):
            self.add_machine(node)

    @property
    def now_s(self) -> float:
        """The simulated time, independent of the machines' clocks."""
        return self._loop.time()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The machines of all brokers."""
        if self.setup.elected:
            return MEMBERS
        slave = (SLAVE,) if self.setup.replication else ()
        return (MASTER, *slave, *((OTHER,) if self.setup.other else ()))

    @property
    def master(self) -> str | None:
        """The broker that accepts messages now.

        A broker that leads an older term than the latest one is not returned: it was stopped or isolated, and
        will receive the new term.
        """
        if not self.setup.elected:
            return MASTER if self.is_serving(MASTER) else None
        return next((node for node in MEMBERS if self.is_serving(node) and self._leads(node)), None)

    def _leads(self, node: str) -> bool:
        store = self.group_store(node)
        # A member that was paused for long may have entered a later term without its store being updated yet.
        return store.leads and store.node.role is MemberRole.LEADER and store.term >= self._term

    def group_store(self, node: str) -> LedgerStore:
        """Return the store of a running member."""
        store = self.brokers[node].store
        assert isinstance(store, LedgerStore), "the brokers are a group"
        return store

    @property
    def names(self) -> tuple[Address, ...]:
        """The addresses of the name servers."""
        return tuple(Address(self.machines[node].host, _NAMES_PORT) for node in NAME_SERVERS)

    def add_machine(self, name: str) -> Machine:
        host = f"10.0.0.{len(self.machines) + 1}"
        machine = self.machines[name] = Machine(host, self.internet, self._loop, f"{self._seed} {name}")
        return machine

    def session(self, client: str, config: SessionConfig | None = None) -> Session:
        """Return the session of a client on its own machine, which is created if it does not exist."""
        machine = self.machines.get(client) or self.add_machine(client)
        return Session(self.names, machine.runtime(), f"{machine.host}@{client}", config)

    def links(self, one: str, other: str) -> tuple[Link, Link]:
        """Return the links from one machine to another, and back."""
        first, second = self.machines[one].host, self.machines[other].host
        return (first, second), (second, first)

    # -- processes

    async def start_all(self) -> None:
        for node in (*NAME_SERVERS, *self.nodes):
            await self.start(node)

    async def start(self, node: str) -> None:
        """Start the process on its machine, unless it runs. Raises StoreError, OSError."""
        await self._is_settled(node)
        if node in self.brokers or node in self.name_servers:
            return
        machine = self.machines[node]
        self.internet.power_on(machine.host)
        if node in NAME_SERVERS:
            config = NameServerConfig(
                machine.host,
                _NAMES_PORT,
                kv_path="/names/kvConfig.json",
                broker_expiry_ms=self.setup.broker_expiry_ms,
                scan_interval_ms=self.setup.scan_interval_ms,
            )
            config = replace(config, **self.setup.name_server)
            own = EventLog(self._record, node, machine.clock, self._seqs.get(node, 0))
            log = own if self.setup.name_server_events else None
            server = self.name_servers[node] = NameServer(config, machine.runtime(), log)
            await self._while_it_lives(node, server.start())
            return

        def forward(event: Event) -> None:
            if self.brokers.get(node) is broker:
                self._record(event)

        events = EventLog(forward, node, machine.clock, self._seqs.get(node, 0))
        broker = self.brokers[node] = Broker(self.config(node), machine.runtime(), events)
        if error := await self._while_it_lives(node, self._starting(node, broker)):
            raise error

    async def _starting(self, node: str, broker: Broker) -> None:
        try:
            await broker.start()
        except BaseException:
            self._forget(node, broker)
            raise

    async def stop(self, node: str, on_stopping: Callable[[], None] = lambda: None) -> None:
        """Stop the process cleanly after its start has ended; it may be killed meanwhile."""
        await self._is_settled(node)
        if (broker := self.brokers.get(node)) is None:
            return
        on_stopping()
        self.machines[node].life += 1
        self._serving.discard(node)
        await self._while_it_lives(node, self._stopping(node, broker))

    async def _stopping(self, node: str, broker: Broker) -> None:
        try:
            await broker.stop()
        finally:
            self._forget(node, broker)

    def _forget(self, node: str, broker: Broker) -> None:
        if self.brokers.get(node) is broker:
            del self.brokers[node]
            self._serving.discard(node)
            self.on_ended(node)

    def is_serving(self, node: str) -> bool:
        """Return whether the broker has recovered, and is not stopping."""
        return node in self._serving and self.brokers[node].store.is_open

    async def _is_settled(self, node: str) -> None:
        """Wait until the process is neither being started nor being stopped."""
        while node in self._working:
            await asyncio.wait([self._working[node]])

    async def _while_it_lives(self, node: str, work: Coroutine[Any, Any, Any]) -> BaseException | None:
        """Run work of a process on that machine; return the exception that it raised.

        Return None if the process was killed. The work continues if the waiting task is cancelled.
        """
        life = self.machines[node].life
        context = self._loop.context_of(self.machines[node].host)
        task = self._working[node] = asyncio.create_task(work, context=context)

        def over(_: asyncio.Task[Any]) -> None:
            if self._working.get(node) is task:
                del self._working[node]
            if not task.cancelled():
                task.exception()  # retrieve it: possibly no task waits for it any more

        task.add_done_callback(over)
        await asyncio.wait([task])
        died = task.cancelled() or self.machines[node].life != life
        return None if died else task.exception()

    def pause(self, node: str) -> None:
        """Send SIGSTOP: the process pauses, and its machine keeps running."""
        self._loop.stop_process(self.machines[node].host)

    def go_on(self, node: str) -> None:
        """Send SIGCONT: the paused process of the node continues."""
        self._loop.continue_process(self.machines[node].host)

    def is_paused(self, node: str) -> bool:
        return self._loop.is_stopped(self.machines[node].host)

    def kill(self, node: str) -> None:
        """Send SIGKILL: the page cache stays, and the peers see closed connections."""
        self.machines[node].disk.crash_process()
        self._die(node)

    def lose_power(self, node: str) -> None:
        """Cut the power: only synced data remains, and no peer is notified."""
        self.machines[node].disk.lose_power()
        self._die(node, dark=True)

    def crash(self, node: str, kept: Image | None = None) -> None:
        """Crash the operating system: any part of the data that was not synced may remain."""
        self.machines[node].disk.crash_os(kept or self.chance)
        self._die(node, dark=True)

    def lose_disk(self, node: str) -> None:
        """Destroy the disk; the machine gets a new, empty one."""
        self.machines[node].disk.crash_process()
        self.machines[node].disk = SimulatedDisk()
        self._die(node, dark=True)

    def _die(self, node: str, *, dark: bool = False) -> None:
        machine = self.machines[node]
        machine.life += 1
        self._serving.discard(node)
        if dark:
            self.internet.lose_power(machine.host)
        if node in self._working:
            self._working.pop(node).cancel()
        if node in self.brokers:
            self.brokers.pop(node).kill()
            self.on_ended(node)
        elif node in self.name_servers:
            self.name_servers.pop(node).kill()
        self.go_on(node)  # tasks that wait in it receive the end

    def config(self, node: str) -> BrokerConfig:
        setup = self.setup
        common = BrokerConfig(
            host=self.machines[node].host,
            port=_BROKER_PORT,
            name_servers=self.names,
            store_directory="/store",
            default_topic_queues=setup.queues,
            queue_lock_ms=setup.queue_lock_ms,
            property_filter=setup.property_filter,
            filter_servers=setup.filter_servers,
            transaction_check_interval_ms=setup.transaction_check_interval_ms,
            transaction_checks_max=setup.transaction_checks_max,
            register_interval_ms=setup.register_interval_ms,
            store=replace(setup.store, flush_mode=setup.flush),
        )
        common = setup.configured(common)
        if setup.elected:
            peers = tuple(Peer(each, Address(self.machines[each].host, _GROUP_PORT)) for each in MEMBERS)
            return replace(common, membership=Membership(is_member=True, peers=peers, self_id=node))
        replication = setup.replication or ReplicationConfig()
        if node in _SLAVES:
            replication = replace(replication, role=Role.SLAVE, in_sync_replicas=None)
        return replace(
            common,
            name=BROKER_NAMES[node],
            broker_id=_SLAVES.get(node, 0),
            replication=replication if node != OTHER else ReplicationConfig(),
        )

    def _record(self, event: Event) -> None:
        self._seqs[event.node] = event.seq + 1
        self.events.append(event)
        if event.kind is Kind.BECOME_LEADER and event.term:
            self._term = max(self._term, event.term)
        self.on_event(event)
        if event.kind is Kind.RECOVER and event.node in self.brokers:
            self._loop.call_soon(self._recovered, self.brokers[event.node], event.node)

    def _recovered(self, broker: Broker, node: str) -> None:
        if node in self._serving:
            return  # a member reports the recovery of its ledger and of its store
        if self.brokers.get(node) is broker and broker.store.is_open:  # its start may have failed since
            self._serving.add(node)
            self.on_recovered(node)

    # -- observations that no client makes

    def log(self, node: str) -> Sequence[StoredMessage]:
        """Return the messages in a running broker's log, in order; for a member, only committed ones."""
        if self.setup.elected:
            return self._committed(node)
        broker, store = self.brokers[node], self._store(node)
        seen, found, position = self._logs.get(node, (None, [], 0))
        if seen is not broker:
            found, position = [], 0
        if found and found[0].commit_offset < store.log_begin:
            found = [stored for stored in found if stored.commit_offset >= store.log_begin]
        position = max(position, store.log_begin)
        while position < store.log_end:
            size, _ = peek(store.log_read(position, 8))
            room = store.log_segment_bytes - position % store.log_segment_bytes
            if size == room:  # a filler record
                position += room
                continue
            found.append(decode(store.log_read(position, size), position))
            position += size
        self._logs[node] = (broker, found, position)
        return found

    def _store(self, node: str) -> MessageStore:
        store = self.brokers[node].store
        assert isinstance(store, MessageStore), "a member has its own log"
        return store

    def _committed(self, node: str) -> Sequence[StoredMessage]:
        member = self.group_store(node).node
        committed = range(member.ledger.begin_index, member.member.core.state.commit + 1)
        entries = (member.ledger.read(index) for index in committed)
        return [stored for entry in entries if (stored := stored_in(entry)) is not None]

    def follows(self) -> bool:
        """Return whether the slave is connected and the logs were found to agree."""
        master, slave = self.brokers.get(MASTER), self.brokers.get(SLAVE)
        if master is None or slave is None:
            return False
        server, client = master.replicas.server, slave.replicas.client
        if server is None or client is None or client.local is None:
            return False
        # A slave does not notice immediately that the other end of its connection is gone.
        return client.is_following and server.serves(client.local)

    def has_caught_up(self) -> bool:
        """Return whether the slave follows and has every record.

        The filler at the end of a segment reaches the slave together with the following record.
        """
        return self.follows() and self._store(SLAVE).log_last_record == self._store(MASTER).log_last_record

    async def until(self, condition: Callable[[], bool], seconds_max: float = 120.0) -> bool:
        """Let time pass until the condition holds; return False if it does not within the time limit."""
        end_s = self._loop.time() + seconds_max
        while not condition():
            if self._loop.time() >= end_s:
                return False
            await asyncio.sleep(0.05)
        return True
