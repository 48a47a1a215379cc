"""What the request processors of one broker share."""

from dataclasses import dataclass

from impl.broker.clients import ClientTable
from impl.broker.config import BrokerConfig
from impl.broker.holds import PullHolds
from impl.broker.offsets import OffsetTable
from impl.broker.topics import TopicTable
from impl.event_log import EventLog
from impl.runtime.network import Address
from impl.runtime.runtime import Runtime
from impl.store.message_store import MessageStore


@dataclass(frozen=True, slots=True)
class Services:
    config: BrokerConfig
    runtime: Runtime
    address: Address
    """Where clients reach this broker; it becomes part of every stored message."""
    store: MessageStore
    topics: TopicTable
    offsets: OffsetTable
    clients: ClientTable
    holds: PullHolds
    events: EventLog | None
