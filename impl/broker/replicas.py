"""The part that this broker plays in replication: a master with its slaves, or a slave with its master."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.services import Services
from mqproof.impl.remoting.bodies import AllTopics, SubscriptionGroups
from mqproof.impl.remoting.headers import RegisterBrokerResponse, UpdateOffsetRequest
from mqproof.impl.replication.client import SlaveClient
from mqproof.impl.replication.metadata import MetadataSync
from mqproof.impl.replication.server import MasterServer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store import record
from mqproof.impl.store.base import Store
from mqproof.impl.store.message_store import MessageStore

REFUSAL: Final = "this broker is a slave"


class Replicas:
    """`server` is a master's, `client` a slave's; a master alone has neither."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, store: Store, events: EventLog | None) -> None:
        self.server: MasterServer | None = None
        self.client: SlaveClient | None = None
        self.ha_address: Address | None = None
        """Where slaves connect, as it is told to the name servers."""
        self.master: Address | None = None
        """Where a slave's master takes requests, as the name servers tell it."""
        self._config = config
        self._store = store
        replication = config.replication
        if config.membership.is_member:
            return  # its group has a log in common
        assert isinstance(store, MessageStore), "the store of a broker with a log of its own"
        if replication.is_slave:
            store.refusal = REFUSAL
            bytes_max = config.store.message_bytes_max + record.AROUND_BODY_BYTES_MAX
            self.client = SlaveClient(runtime.network, store, replication, bytes_max)
        elif replication.role is not None:
            self.server = MasterServer(runtime.network, store, replication, events)
            store.on_append = self.server.grown
            if replication.slaves_waited_for:
                store.replicate = self.server.waits.wait

    def prepare_with(self, metadata: MetadataSync) -> None:
        """A slave that awaits records of topics that were deleted asks where its master has that, each time
        before it follows: a master that lost the end of its log has it earlier."""
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
        """This slave's log was found to be its master's, so that the master's tables are of it, too. Members
        of a group have one log."""
        return self.client is None or self.client.is_following

    async def start(self) -> None:
        """Let slaves connect. Raises OSError: the port is taken."""
        if self.server is None:
            return
        config = self._config
        port = config.replication.ha_port
        if port is None:
            port = config.port + 1 if config.port else 0
        bound = await self.server.start(config.host, port)
        self.ha_address = Address(config.advertised_host or bound.host, bound.port)

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop()

    def kill(self) -> None:
        """The end of a simulated process."""
        if self.server is not None:
            self.server.kill()

    def learned(self, response: RegisterBrokerResponse) -> None:
        """A name server told a slave of its master; while it knows none, the last one counts."""
        with suppress(ValueError):
            if response.master_addr:
                self.master = Address.parse(response.master_addr)
            if self.client is not None and response.ha_server_addr and not self._config.replication.ha_master:
                self.client.master = Address.parse(response.ha_server_addr)


class SlaveTables:
    """A slave's tables, as `MetadataSync` keeps them like its master's."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def correct_deletions(self, topics: AllTopics) -> None:
        store = self._services.store
        assert isinstance(store, MessageStore), "a slave's store"
        store.correct_deletions(topics.deleted_topics)

    async def adopt_topics(self, topics: AllTopics) -> None:
        # Deletions first: of a topic made anew nobody may read what the old one had.
        for topic in self._services.store.adopt_deletions(topics.deleted_topics):
            self._services.offsets.remove_topic(topic)
        await self._services.topics.adopt(topics)

    async def adopt_groups(self, groups: SubscriptionGroups) -> None:
        await self._services.groups.adopt(groups)

    async def adopt_delays(self, offsets: Mapping[int, int]) -> None:
        self._services.delays.adopt(offsets)

    def merge_offsets(self, table: Mapping[str, Mapping[int, int]]) -> None:
        self._services.offsets.merge(table)

    def newer_commits(self, table: Mapping[str, Mapping[int, int]]) -> list[UpdateOffsetRequest]:
        # A consumer, or another slave, may have told the master more since it gave that table away.
        return [
            UpdateOffsetRequest(group, topic, queue_id, offset, only_forward=True)
            for topic, group, queue_id, offset in self._services.offsets.newer_than(table)
        ]

    def told(self, commit: UpdateOffsetRequest) -> None:
        offset = commit.commit_offset
        self._services.offsets.told(commit.topic, commit.consumer_group, commit.queue_id, offset)
