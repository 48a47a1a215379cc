"""What the request processors of one broker share."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mqproof.impl.broker.acl_file import AclFile
from mqproof.impl.broker.clients import ClientTable
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.delayed import DelayedDelivery
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.offsets import OffsetTable
from mqproof.impl.broker.pull_progress import PullProgress
from mqproof.impl.broker.queue_locks import QueueLockTable
from mqproof.impl.broker.statistics import Statistics
from mqproof.impl.broker.subscription_groups import SubscriptionGroupTable
from mqproof.impl.broker.topics import TopicTable
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import RegisterBrokerResponse
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.base import Store


@dataclass(slots=True)
class Services:
    """Only `config` and its version are ever replaced, as a whole: by UPDATE_BROKER_CONFIG, and when a group
    elects."""

    config: BrokerConfig
    runtime: Runtime
    address: Address
    """Where clients reach this broker; it becomes part of every stored message."""
    store: Store
    topics: TopicTable
    groups: SubscriptionGroupTable
    offsets: OffsetTable
    pull_progress: PullProgress
    clients: ClientTable
    locks: QueueLockTable
    holds: PullHolds
    sends: SendGate
    statistics: Statistics
    config_version: DataVersion
    config_file: ConfigFile
    acl: AclFile | None
    """None where everybody may ask everything."""
    started_s: int
    """By the event loop's clock."""
    booted_ms: int
    """The same, by the wall clock."""
    delays: DelayedDelivery
    events: EventLog | None
    ha_address: Address | None = None
    """Where slaves connect; None where no slave may."""
    on_registered: Callable[[RegisterBrokerResponse], None] = lambda _: None
    """Told what a name server answered: to a slave, who its master is."""
    term: Callable[[], int] = lambda: 0
    """Of its group: name servers believe the master of a later one."""

    @property
    def is_slave(self) -> bool:
        return self.config.replication.is_slave

    def tracing_fields(self) -> dict[str, str]:
        """Fields of every send response, errors included: Java clients take them for granted."""
        return {"MSG_REGION": self.config.region, "TRACE_ON": "true" if self.config.trace_on else "false"}


def loop_ms() -> int:
    """The event loop's clock: for how long somebody was silent, not what time it is."""
    return int(asyncio.get_running_loop().time() * 1000)


Processor = Callable[[Services, Command, Channel], Reply | Awaitable[Reply]]
"""What answers a request: at once, later, or, with None, not at all."""
