"""The objects that the request processors of one broker share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mqproof.impl.access.acl_file import AclFile
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.delayed import DelayedDelivery
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state.announced_subscriptions import AnnouncedSubscriptions
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.consumer_filters import ConsumerFilterTable
from mqproof.impl.broker.state.filter_servers import FilterServers
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.pending_resets import PendingResets
from mqproof.impl.broker.state.pull_progress import PullProgress
from mqproof.impl.broker.state.queue_locks import QueueLockTable
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.state.subscription_groups import SubscriptionGroupTable
from mqproof.impl.broker.state.topics import TopicTable
from mqproof.impl.broker.timers import Timers
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.remoting.bodies import DataVersion, HaStatus
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import RegisterBrokerResponse
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.base import Store


@dataclass(slots=True)
class Services:
    """The shared objects.

    Only `config` and its version are ever replaced, as a whole: by UPDATE_BROKER_CONFIG, and by an election
    in a group. `level_logged_s` changes, too.
    """

    config: BrokerConfig
    runtime: Runtime
    address: Address
    """The address that clients use for this broker; it becomes part of every stored message."""
    store: Store
    topics: TopicTable
    groups: SubscriptionGroupTable
    offsets: OffsetTable
    filters: ConsumerFilterTable
    pull_progress: PullProgress
    clients: ClientTable
    locks: QueueLockTable
    holds: PullHolds
    sends: SendGate
    statistics: Statistics
    config_version: DataVersion
    config_file: ConfigFile
    acl: AclFile | None
    """The file of accounts and permissions; None if access control is off."""
    started_s: int
    """The start time by the event loop's clock."""
    booted_ms: int
    """The start time by the wall clock."""
    delays: DelayedDelivery
    transactions: Transactions
    timers: Timers
    events: EventLog | None
    announced: AnnouncedSubscriptions
    resets: PendingResets
    filter_servers: FilterServers
    level_logged_s: float = float("-inf")
    """When a delay level that does not exist was logged last, by the event loop's clock."""
    ha_address: Address | None = None
    """The address on which slaves connect; None if no slave can."""
    on_registered: Callable[[RegisterBrokerResponse], None] = lambda _: None
    """Called with each name server's response to a registration, which reports a slave's master."""
    ha_status: Callable[[int], HaStatus | None] = lambda _: None
    """Returns the state of replication at a time of day in ms; None if the broker has neither role."""
    term: Callable[[], int] = lambda: 0
    """The term of its group; name servers accept the master with the latest term."""

    @property
    def is_slave(self) -> bool:
        return self.config.replication.is_slave

    def tracing_fields(self) -> dict[str, str]:
        """Return the fields of every send response, errors included, and the properties of stored messages.

        Java clients require both.
        """
        return {"MSG_REGION": self.config.region, "TRACE_ON": "true" if self.config.trace_on else "false"}


def loop_ms() -> int:
    """Return the time of upkeep in milliseconds, to measure durations; it is not the time of day."""
    return int(upkeep.now_s() * 1000)


Processor = Callable[[Services, Command, Channel], Reply | Awaitable[Reply]]
"""A processor answers a request at once, later, or, by returning None, not at all."""
