"""This broker's role in replication: a master with its slaves, or a slave of its master."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.services import Services
from mqproof.impl.remoting.bodies import (
    AllGroups,
    AllTopics,
    HaClient,
    HaConnection,
    HaStatus,
)
from mqproof.impl.remoting.headers import RegisterBrokerResponse, UpdateOffsetRequest
from mqproof.impl.replication import rules
from mqproof.impl.replication.client import SlaveClient
from mqproof.impl.replication.metadata import MetadataSync
from mqproof.impl.replication.server import MasterServer, SlaveState
from mqproof.impl.runtime.clock import now_ms as wall_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.security.peer_network import PeerNetwork, warn_if_open
from mqproof.impl.store.base import Store
from mqproof.impl.store.files import record
from mqproof.impl.store.message_store import MessageStore

REFUSAL: Final = "this broker is a slave"


class Replicas:
    """The parts for replication: `server` on a master, `client` on a slave.

    Without replication, and in a group, both are None.
    """

    def __init__(self, config: BrokerConfig, runtime: Runtime, store: Store, events: EventLog | None) -> None:
        self.server: MasterServer | None = None
        self.client: SlaveClient | None = None
        self.network: PeerNetwork | None = None
        """The network between a master and its slaves."""
        self.ha_address: Address | None = None
        """The address on which slaves connect, as registered with the name servers."""
        self.master: Address | None = None
        """The address on which a slave's master takes requests, as reported by the name servers."""
        self._config = config
        self._store = store
        replication = config.replication
        if config.membership.is_member:
            return  # the members of a group share one log
        assert isinstance(store, MessageStore), "the store of a broker with a log of its own"
        if replication.role is None:
            return
        peers = config.peer_access
        self.network = network = runtime.peers(peers, config.node, f"replication of {config.name}")
        if replication.is_slave:
            store.refusal = REFUSAL
            bytes_max = config.store.message_bytes_max + record.AROUND_BODY_BYTES_MAX
            proves = bool(peers.secret_file)
            self.client = SlaveClient(network, store, replication, bytes_max, proves=proves)
        else:
            proved = bool(peers.secret_file)
            self.server = MasterServer(network, store, replication, events, runtime.supervisor, proved=proved)
            store.on_append = self.server.grown
            if replication.slaves_waited_for:
                store.replicate = self.server.waits.wait

    def prepare_with(self, metadata: MetadataSync) -> None:
        """Let a slave correct its deletions from its master's, each time before it follows the master.

        This applies to a slave that waits for records of deleted topics. A master that lost the end of its
        log has these deletions at an earlier position.
        """
        client, store = self.client, self._store
        if client is None:
            return
        assert isinstance(store, MessageStore), "a slave's store"

        async def prepare() -> None:
            if store.awaits_deleted_records():
                metadata.master = self.master
                await metadata.correct_deletions()

        client.prepare = prepare

    @property
    def has_masters_log(self) -> bool:
        """Whether this slave's log agrees with its master's, so that the master's tables fit it.

        Members of a group share one log, so this is true for them.
        """
        return self.client is None or self.client.is_following

    def status(self, now_ms: int) -> HaStatus | None:
        """Return the state of replication; None for a member of a group, which has no master and slaves."""
        end = self._store.log_end
        if self._config.membership.is_member:
            return None
        if self.client is None:
            slaves = [] if self.server is None else [self._slave(each, end) for each in self.server.slaves()]
            in_sync = sum(slave.in_sync for slave in slaves)
            return HaStatus(
                True,
                master_commit_log_max_offset=end,
                in_sync_slave_nums=in_sync,
                ha_connection_info=slaves,
            )
        state = self.client.state()
        return HaStatus(
            False,
            ha_client_runtime_info=HaClient(
                master_addr=str(state.address) if state.address is not None else None,
                transferred_byte_in_second=state.bytes_per_s,
                max_offset=end,
                last_read_timestamp=_before(now_ms, state.heard_ago_s),
                last_write_timestamp=_before(now_ms, state.reported_ago_s),
                is_activated=state.is_following,
            ),
        )

    def _slave(self, state: SlaveState, end: int) -> HaConnection:
        near = rules.slave_usable(1, end, state.acknowledged, self._config.replication.fall_behind_bytes_max)
        return HaConnection(
            addr=str(state.address),
            slave_ack_offset=state.acknowledged,
            diff=end - state.acknowledged,
            in_sync=near,
            transferred_byte_in_second=state.bytes_per_s,
            transfer_from_where=state.sent,
        )

    async def start(self) -> None:
        """Listen for slaves. Raises OSError when the port is in use."""
        if self.server is None:
            return
        config = self._config
        port = config.replication.ha_port
        if port is None:
            port = config.port + 1 if config.port else 0
        bound = await self.server.start(config.host, port)
        warn_if_open(config.peer_access, bound, "HA", "receives all messages and counts as a slave")
        self.ha_address = Address(config.advertised_host or bound.host, bound.port)

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop()

    def kill(self) -> None:
        """End as a killed process does, in a simulation."""
        if self.server is not None:
            self.server.kill()

    def learned(self, response: RegisterBrokerResponse) -> None:
        """Record the master reported by a name server; if it reports none, keep the last one."""
        with suppress(ValueError):
            if response.master_addr:
                self.master = Address.parse(response.master_addr)
            if self.client is not None and response.ha_server_addr and not self._config.replication.ha_master:
                self.client.master = Address.parse(response.ha_server_addr)


def _before(now_ms: int, ago_s: float | None) -> int:
    return 0 if ago_s is None else now_ms - round(ago_s * 1000)


class SlaveTables:
    """A slave's tables, which `MetadataSync` keeps equal to its master's."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def correct_deletions(self, topics: AllTopics) -> None:
        store = self._services.store
        assert isinstance(store, MessageStore), "a slave's store"
        store.correct_deletions(topics.deleted_topics)

    async def adopt_topics(self, topics: AllTopics) -> None:
        # Deletions first: readers of a recreated topic must not see the old topic's messages.
        for topic in self._services.store.adopt_deletions(topics.deleted_topics):
            self._services.offsets.remove_topic(topic)
        await self._services.topics.adopt(topics)

    async def adopt_groups(self, groups: AllGroups) -> None:
        await self._services.groups.adopt(groups)
        self._services.filters.adopt(groups.filters, wall_ms(self._services.runtime.clock))

    async def adopt_delays(self, offsets: Mapping[int, int]) -> None:
        self._services.delays.adopt(offsets)

    def merge_offsets(self, table: Mapping[str, Mapping[int, int]]) -> None:
        self._services.offsets.merge(table)

    def newer_commits(self, table: Mapping[str, Mapping[int, int]]) -> list[UpdateOffsetRequest]:
        # A consumer or another slave may have committed more to the master since it sent that table.
        return [
            UpdateOffsetRequest(group, topic, queue_id, offset, only_forward=True)
            for topic, group, queue_id, offset in self._services.offsets.newer_than(table)
        ]

    def mark_sent(self, commit: UpdateOffsetRequest) -> None:
        offset = commit.commit_offset
        self._services.offsets.mark_sent(commit.topic, commit.consumer_group, commit.queue_id, offset)
