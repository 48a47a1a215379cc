"""A broker: one store behind the remoting protocol, registered with its name servers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mqproof.impl.access.acl_file import POLL_S, AclFile
from mqproof.impl.access.gate import Gate
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.delayed import DelayedDelivery
from mqproof.impl.broker.elected_role import ElectedRole
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.processors import groups, recalls, transaction_ends
from mqproof.impl.broker.processors.all_processors import PROCESSORS
from mqproof.impl.broker.registration import Registrar
from mqproof.impl.broker.replicas import Replicas, SlaveTables
from mqproof.impl.broker.requests.administrative_events import recording
from mqproof.impl.broker.services import Processor, Services, loop_ms
from mqproof.impl.broker.state.announced_subscriptions import AnnouncedSubscriptions
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.consumer_filters import ConsumerFilterTable
from mqproof.impl.broker.state.filter_servers import FilterServers
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.pending_resets import PendingResets
from mqproof.impl.broker.state.pull_progress import PullProgress
from mqproof.impl.broker.state.queue_locks import QueueLockTable
from mqproof.impl.broker.state.rolling_counts import ROLL_S
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.state.subscription_groups import SubscriptionGroupTable
from mqproof.impl.broker.state.topics import TopicTable, built_in
from mqproof.impl.broker.timers import LOG_READER, Timers
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.remoting import account_file
from mqproof.impl.remoting.address_server import FETCH_INTERVAL_S
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.remoting.budget import Budget, Percentages, server_budgets
from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX
from mqproof.impl.remoting.message import REAL_TOPIC
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.requests import BODIES_USED, limiting
from mqproof.impl.remoting.server import RemotingServer, Traffic
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS
from mqproof.impl.replication import record_repair
from mqproof.impl.replication.metadata import MetadataSync
from mqproof.impl.replication.record_repair import RecordRepair
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.clock import now_ms as wall_ms
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.security.secret_files import warn_if_exposed
from mqproof.impl.store.base import Store
from mqproof.impl.store.files import record
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import Recovery

_log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]

_FIRST_SYNC_S: Final = 3.0
_SEEK_S: Final = 0.5
"""The pause between two questions of a slave for its master."""
_CLIENT_SCAN_S: Final = 10.0
_MISSED_MS: Final = 40_000
"""A client is missing after this time; clients send heartbeats every 30 s."""
_DRAIN_MORE_S: Final = 1.0
_HOLD_CHECK_S: Final = 5.0
_SHORT_HOLD_CHECK_S: Final = 1.0
"""Seconds between two checks of the waiting pulls when long polling is off."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """The broker's state besides the messages; each table has its own file."""

    topics: TopicTable
    groups: SubscriptionGroupTable
    offsets: OffsetTable
    delays: DelayedDelivery
    filters: ConsumerFilterTable


class Broker:
    """A broker. It is constructed, started and stopped, in that order and once."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        events: EventLog | None = None,
        around: Callable[[Handler], Handler] | None = None,
    ) -> None:
        """Create a broker. `around` returns a handler of requests that wraps the broker's own."""
        is_member = config.membership.is_member
        self._config = config = config.with_role(leads=False) if is_member else config
        self._runtime = runtime
        self._events = events
        if events is not None:
            events.records_properties = config.property_filter
        self._around = around
        self._group_store = _group_store(config, runtime, events) if is_member else None
        self.store: Store = self._group_store or MessageStore(
            config.store_directory, config.store, runtime, events
        )
        self.replicas = Replicas(config, runtime, self.store, events)
        self._gate: Gate | None = None
        if config.acl_enabled:
            path = config.acl_path or f"{config.store_directory}/config/plain_acl.yml"
            self._gate = Gate(AclFile(path, runtime), self._topic_at)
        self._client = RemotingClient(runtime.remoting)
        self._percent = percent = Percentages(config.address_percent, config.connection_percent)
        self._budgets = server_budgets(runtime.connections_max, FRAME_BYTES_MAX, percent)
        self._holds = PullHolds(config.holds_max, percent)
        self._clients = ClientTable(percent)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.services: Services | None = None
        """The objects that the processors share; None until the broker is started."""
        self._server: RemotingServer | None = None
        self._second_server: RemotingServer | None = None
        self._processors: Handler | None = None
        self._registrar: Registrar | None = None
        self.recovery: Recovery | None = None
        """The result of the store's recovery at load."""

    @property
    def credentials(self) -> Credentials | None:
        """The credentials with which the broker sends its own requests; set by `start`."""
        return self._client.credentials

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets that limit what clients may use."""
        tables = () if self.services is None else (self.services.topics.budget, self.services.groups.budget)
        return (*self._budgets, self._holds.budget, self._clients.budget, *tables)

    @property
    def group_store(self) -> LedgerStore | None:
        """The store of a member of a group; None for a broker with a log of its own."""
        return self._group_store

    @property
    def is_ready(self) -> bool:
        """Whether the broker has started and is not stopping, and none of its tasks has failed."""
        return self._processors is not None and not self._is_stopping and self._runtime.supervisor.is_ready

    async def start(self) -> Address:
        """Recover the store, accept connections, register once; return the address that clients use.

        A name server that does not answer is not an error: the broker tries again every register interval.

        Raises:
            StoreError, OSError: the store cannot be used, or the port is in use.
            ConfigError: the access rules cannot be read. In both cases, nothing is left running.
        """
        try:
            return await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> Address:
        self._load_access_rules()
        self.recovery = self.store.load(self._config.replication.logged_role)
        tables = self._load_tables()
        # The store begins to delete old segments before the timers know what they need.
        self.store.keep_log_from(LOG_READER, lambda: self.store.log_begin)
        await self.store.start()
        if not self._config.replication.is_slave and self._group_store is None:
            tables.delays.cut()  # others do so when they become masters and have their whole log
        # Written before any message, so that a later start knows that a missing file was lost.
        await tables.groups.persist()
        await tables.offsets.persist()
        await tables.delays.persist()
        await self.replicas.start()
        self.store.on_arrival = self._holds.arrived
        address = await self._listen()
        self.services = services = self._new_services(address, tables)
        if self._group_store is not None or self._config.replication.is_slave:
            services.timers.follow()
            services.delays.follow()
        bound = {code: _bound(work, services) for code, work in PROCESSORS.items()}
        processors = {code: recording(code, work, services) for code, work in bound.items()}
        handle = limiting(handler(processors))
        self._processors = self._around(handle) if self._around else handle
        topics_changed = await self._begin_registration(services)
        self._every(self._config.offsets_flush_interval_ms / 1000, self._persist_offsets, "write of offsets")
        self._begin_role(services, topics_changed)
        await self._begin_periodic_work()
        return address

    def _load_access_rules(self) -> None:
        self._client.credentials = _own_account(self._config, self._runtime)
        if self._gate is not None:
            self._gate.file.load()
            self._every(POLL_S, self._gate.file.poll, "poll of the accounts")

    def _load_tables(self) -> _Tables:
        """Read the tables in the folder `config` of the store; a table without a file is empty."""
        config, runtime = self._config, self._runtime
        folder = f"{config.store_directory}/config"
        tables = _Tables(
            topics=TopicTable(
                f"{folder}/topics.json",
                runtime,
                topics_max=config.topics_max,
                queues_max=config.topic_queues_max,
                percent=self._percent,
            ),
            groups=SubscriptionGroupTable(
                f"{folder}/subscriptionGroup.json",
                runtime,
                groups_max=config.groups_max,
                percent=self._percent,
            ),
            offsets=OffsetTable(f"{folder}/consumerOffset.json", runtime, config.offset_pairs_max),
            delays=DelayedDelivery(
                f"{folder}/delayOffset.json", self.store, self._holds, runtime, self._events
            ),
            filters=ConsumerFilterTable(f"{folder}/consumerFilter.json", runtime),
        )
        defaults = built_in(
            broker=config.name,
            cluster=config.cluster,
            auto_create=config.auto_create_topics,
            default_queues=config.default_topic_queues,
            trace=config.trace_topic,
        )
        store, damage = self.store, self.store.damage
        with_queues = {
            name: count
            for name, count in store.topics().items()
            if any(store.max_offset(name, queue_id) for queue_id in range(count))
        }
        # A broker that wrote its topics wrote its other tables before it stored a message.
        required = tables.topics.load(defaults, damage, with_queues) and bool(with_queues)
        tables.groups.load(damage, required=required)
        tables.offsets.load(damage, required=required)
        tables.delays.load(damage, required=required)
        tables.filters.load(wall_ms(runtime.clock), damage)
        if config.replication.is_slave or self._group_store is not None:
            tables.offsets.follow()
        else:
            tables.offsets.lead()
        return tables

    async def _listen(self) -> Address:
        """Accept connections; return the address that clients use."""
        self._server = self._new_server()
        bound = await self._server.start(self._config.host, self._config.port)
        if self.replicas.server is not None or self._group_store is not None:
            await self._open_second_port(bound)
        return Address(self._config.advertised_host or bound.host, bound.port)

    def _new_services(self, address: Address, tables: _Tables) -> Services:
        config, runtime = self._config, self._runtime
        return Services(
            config=config,
            runtime=runtime,
            address=address,
            store=self.store,
            topics=tables.topics,
            groups=tables.groups,
            offsets=tables.offsets,
            filters=tables.filters,
            pull_progress=PullProgress(config.offset_pairs_max),
            clients=self._clients,
            locks=QueueLockTable(config.queue_lock_ms),
            holds=self._holds,
            # Until Python 3.12, each look-up of the loop is a system call.
            sends=SendGate(
                config.sends_max, config.sends_bytes_max, config.busy_ms, asyncio.get_running_loop().time
            ),
            statistics=Statistics(config.cluster),
            config_version=DataVersion(0, wall_ms(runtime.clock)),
            config_file=ConfigFile(config.config_path, runtime),
            acl=self._gate.file if self._gate else None,
            started_s=loop_ms() // 1000,
            booted_ms=wall_ms(runtime.clock),
            delays=tables.delays,
            transactions=Transactions(self.store, self._events),
            timers=Timers(self.store, self._holds, self._events),
            events=self._events,
            announced=AnnouncedSubscriptions(self._events),
            resets=PendingResets(),
            filter_servers=FilterServers(),
            ha_address=self.replicas.ha_address,
            on_registered=self.replicas.learned,
            ha_status=self.replicas.status,
        )

    async def _begin_registration(self, services: Services) -> asyncio.Event:
        """Register once, then periodically and whenever the returned event is set."""
        self._registrar = registrar = Registrar(services, self._client)
        # In the background, so that a send that creates its topic does not wait for a silent name server.
        topics_changed = asyncio.Event()
        services.topics.on_change = topics_changed.set
        self._in_background("registration of topics", self._whenever(topics_changed, registrar.register))
        if registrar.is_fetched:
            await registrar.fetch()
            self._again(FETCH_INTERVAL_S, registrar.fetch, "fetch of name servers")
        await registrar.register()
        self._again(self._config.register_interval_ms / 1000, registrar.register, "registration")
        return topics_changed

    def _begin_role(self, services: Services, topics_changed: asyncio.Event) -> None:
        """Start the work of a member of a group, a slave or a master."""
        if self._group_store is not None or self._config.replication.role is not None:
            assert self._registrar is not None, "it is registered before"
            repair = RecordRepair(self._client, self.store, self._registrar.peers)
            self._again(record_repair.INTERVAL_S, repair.round, "repair of damaged records")
        if (store := self._group_store) is not None:
            services.term = lambda: store.term
            role = ElectedRole(store, services, topics_changed.set)
            self._in_background("elected role", role.run())
            self._keep_like_master(services)
        elif self.replicas.client is not None:
            self._in_background("slave", self.replicas.client.run())
            self._again(_SEEK_S, self._seek_master, "search for the master")
            self._keep_like_master(services)
        else:
            self._in_background("delivery of delayed messages", services.delays.run(services.address))
            self._in_background("checks of transactions", transaction_ends.run(services))
            self._in_background("delivery of timers", recalls.run(services))

    async def _begin_periodic_work(self) -> None:
        config = self._config
        self._every(config.delay_offsets_flush_interval_ms / 1000, self._persist_delays, "write of delays")
        self._every(_CLIENT_SCAN_S, self._drop_silent_clients, "scan for silent clients")
        await self._sample()
        self._every(1.0, self._sample, "samples of statistics")
        self._every(ROLL_S, self._roll, "periods of statistics")
        holds_s = _HOLD_CHECK_S if config.long_polling else _SHORT_HOLD_CHECK_S
        self._every(holds_s, self._check_holds, "check of held pulls")

    def _new_server(self) -> RemotingServer:
        runtime = self._runtime
        return RemotingServer(
            runtime.remoting,
            self._handle,
            on_closed=self._channel_closed,
            supervisor=runtime.supervisor,
            budgets=self._budgets,
            bodies_used=BODIES_USED,
        )

    async def _open_second_port(self, bound: Address) -> None:
        """Listen on the port two below as well, because slaves of released brokers request topics there."""
        server = self._new_server()
        try:
            await server.start(bound.host, bound.port - 2)
        except OSError as error:
            _log.warning("slaves of released brokers do not learn topics: port %d: %s", bound.port - 2, error)
        else:
            self._second_server = server

    async def stop(self) -> None:
        """Unregister from the name servers, complete the pending requests, and close the store cleanly.

        The leader of a group transfers its leadership first, so that the members need not detect its absence.
        """
        self._is_stopping = True
        if self._group_store is not None:
            await self._group_store.transfer_leadership()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._holds.close()
        if self._registrar is not None:
            await self._registrar.unregister()
        if self._server is not None:
            # Sends that wait for the disk are answered, even when the disk is slow.
            await self._server.stop(self.store.config.sync_flush_timeout_ms / 1000 + _DRAIN_MORE_S)
        if self.services is not None:
            await self._persist_offsets()
            await self._persist_delays()
        if self._second_server is not None:
            await self._second_server.stop()
        await self.replicas.stop()
        await self._client.close()
        await self.store.stop()

    def kill(self) -> None:
        """End as a killed process does, in a simulation: everything stops; nothing is written or answered."""
        for task in self._tasks:
            task.cancel()
        self._holds.close()
        if self._server is not None:
            self._server.kill()
        if self._second_server is not None:
            self._second_server.kill()
        self.replicas.kill()
        self._client.abort()
        self.store.kill()

    def awaits_upkeep(self) -> bool:
        """Return whether a client is missing or a transaction is open: only scans and checks end that."""
        if self.services is None or self._server is None:
            return False
        since_ms = loop_ms() - _MISSED_MS
        return (
            self.services.transactions.open_count > 0
            or bool(self._clients.silent_since(since_ms))
            or self._server.has_silent(since_ms / 1000)
        )

    def traffic(self) -> Traffic:
        """Return what goes on in the connections of clients."""
        assert self._server is not None
        return self._server.traffic()

    def noticeable(self) -> object:
        """Return what the upkeep of clients acts on when it changes: topics, groups and subscriptions."""
        assert self.services is not None
        return self.services.topics.snapshot().data_version, self._clients.subscribed()

    def count_clients_as_heard(self) -> None:
        """Treat all clients as if they had just sent a heartbeat, in tests whose time they do not share."""
        self._clients.count_as_heard(loop_ms())
        if self._server is not None:
            self._server.count_as_active()

    def _handle(self, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        if self._processors is None:
            return request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark="the broker is starting")
        if (failure := self._runtime.supervisor.failure) is not None:
            remark = f"the broker is stopping: {failure}"
            return request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark=remark)
        if self._gate is not None and request.code in PROCESSORS:
            refusal = self._gate.refusal(request, channel.remote)
            if refusal is not None:
                return refusal
        return self._processors(request, channel)

    def _topic_at(self, commit_offset: int) -> str | None:
        """Return the topic to which the message at an offset was sent, also while it waits for its time."""
        data = self.store.record_at(commit_offset)
        if data is None:
            return None
        message = record.decode(data, commit_offset).message
        if message.topic in NOT_FOR_CLIENTS:
            return message.properties.get(REAL_TOPIC, message.topic)
        return message.topic

    def _channel_closed(self, channel: Channel) -> None:
        self._holds.drop(channel)
        changed = self._clients.channel_closed(channel)
        if self.services is not None:
            groups.members_left(self.services, changed)
            if self.services.filter_servers.closed(channel):
                self.services.topics.on_change()

    async def _seek_master(self) -> None:
        """Let a slave that follows no master find the one that has registered since."""
        client, registrar = self.replicas.client, self._registrar
        if client is not None and registrar is not None and not client.is_following:
            await registrar.seek_master(self.replicas.master if client.master is not None else None)

    async def _drop_silent_clients(self) -> None:
        assert self.services is not None
        self.services.locks.drop_expired(loop_ms())
        before_ms = loop_ms() - self.services.config.client_expiry_ms
        for channel in self._clients.silent_since(before_ms):
            channel.close()
        if self.services.filter_servers.drop_silent(loop_ms() / 1000):
            self.services.topics.on_change()
        try:
            await self.services.filters.drop_expired(wall_ms(self._runtime.clock))
        except OSError as error:
            _log.error("expired filters cannot be removed from the disk: %s", error)

    async def _sample(self) -> None:
        assert self.services is not None
        self.services.statistics.sample(loop_ms() / 1000, wall_ms(self._runtime.clock))

    async def _roll(self) -> None:
        assert self.services is not None
        self.services.statistics.counts.roll(loop_ms() / 1000)

    async def _check_holds(self) -> None:
        self._holds.check(self.store.max_offset)

    async def _persist_offsets(self) -> None:
        assert self.services is not None
        try:
            await self.services.offsets.persist()
            await self.services.groups.persist()
            await self.services.filters.persist()
        except OSError as error:
            _log.error("consumer offsets, groups or filters cannot be written to disk: %s", error)

    async def _persist_delays(self) -> None:
        assert self.services is not None
        try:
            await self.services.delays.persist()
        except OSError as error:
            _log.error("the offsets of delayed messages cannot be written to disk: %s", error)

    def _keep_like_master(self, services: Services) -> None:
        """Start a slave's work besides the log: keep its tables equal to its master's."""
        metadata = MetadataSync(self._client, SlaveTables(services))
        self.replicas.prepare_with(metadata)

        async def sync() -> None:
            if not (services.is_slave and self.replicas.has_masters_log):
                return
            if self._group_store is not None and self._registrar is not None:
                await self._registrar.register()  # the response names the current master
            metadata.master = self.replicas.master if self.replicas.master != services.address else None
            await metadata.sync()

        interval_s = self._config.replication.metadata_interval_ms / 1000
        self._again(interval_s, sync, "copy of the master's tables", _FIRST_SYNC_S)

    def _every(self, seconds: float, work: Work, name: str, first_s: float | None = None) -> None:
        """Do the work periodically. The broker cannot run without it, so an unexpected error stops it."""

        async def loop() -> None:
            await upkeep.sleep(seconds if first_s is None else first_s)
            while True:
                await work()
                await upkeep.sleep(seconds)

        self._in_background(name, loop())

    def _again(self, seconds: float, work: Work, name: str, first_s: float | None = None) -> None:
        """Do the work periodically, like `_every`. It asks another server, whose answers must not stop us."""
        self._every(seconds, partial(_guarded, work), name, first_s)

    async def _whenever(self, event: asyncio.Event, work: Work) -> None:
        """Run the work whenever the event is set; events set during a run cause only one more run."""
        while True:
            await event.wait()
            event.clear()
            await _guarded(work)

    def _in_background(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._runtime.supervisor.run(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _guarded(work: Work) -> None:
    try:
        await work()
    except Exception:  # what another server answers must not stop this one
        _log.exception("%s failed", work.__qualname__)


def _bound(work: Processor, services: Services) -> Handler:
    return partial(work, services)


def _group_store(config: BrokerConfig, runtime: Runtime, events: EventLog | None) -> LedgerStore:
    """Return the store of a member of a group."""
    addresses, peers = config.membership.addresses, config.peer_access
    return LedgerStore(config.store_directory, config.store, config.group, addresses, runtime, events, peers)


def _own_account(config: BrokerConfig, runtime: Runtime) -> Credentials | None:
    """Return the broker's own credentials, for its requests to name servers and to its master, or None."""
    path = f"{config.store_directory}/config/tools.yml"
    if not runtime.disk.exists(path):
        return None
    warn_if_exposed(runtime.disk, path)
    return account_file.parse(read_whole(runtime.disk, path).decode(errors="replace"), path)
