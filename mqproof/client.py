"""The client library for applications: sessions, producers, consumers, and what they send and receive.

docs/how-to/client.md has an example of each. The names in `__all__` are public and stable. The modules of
`mqproof.impl` that define them are internal.
"""

from mqproof.impl.client.blocking import BlockingClient, BlockingPoller, BlockingTransactions
from mqproof.impl.client.connection.client_settings import ClientSettings
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.request_hooks import RequestHook, RequestSummary
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.allocation import Strategy, averagely
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.offset_store import OffsetStore
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import PullTask, ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import (
    ClientError,
    Listener,
    MessageError,
    MessageQueue,
    NoReplyError,
    NoRouteError,
    Outcome,
    PullResult,
    ReceivedMessage,
    RefusalError,
    Refused,
    ReplyError,
    RetryLater,
    SendError,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import Selector, by_hash
from mqproof.impl.client.producing.transaction_producer import (
    CheckListener,
    LocalTransaction,
    TransactionOutcome,
    TransactionProducer,
    TransactionState,
)
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError

__all__ = [
    # A session with a cluster.
    "connect",
    "Session",
    "ClientSettings",
    "RequestHook",
    "RequestSummary",
    "Credentials",
    "ConfigError",
    # Messages.
    "Message",
    "new_message",
    "MessageQueue",
    "StoredMessage",
    "ReceivedMessage",
    "MessageError",
    # Sending.
    "Producer",
    "ProducerConfig",
    "Outcome",
    "Sent",
    "Refused",
    "Unknown",
    "Selector",
    "by_hash",
    # Transactions.
    "TransactionProducer",
    "TransactionState",
    "TransactionOutcome",
    "LocalTransaction",
    "CheckListener",
    # Consuming.
    "PushConsumer",
    "PushConsumerConfig",
    "MessageModel",
    "MessageSelector",
    "Listener",
    "RetryLater",
    "ConsumeFrom",
    "Strategy",
    "averagely",
    "PullLimits",
    "LitePullConsumer",
    "LitePullConfig",
    "PullConsumer",
    "PullResult",
    "ScheduledPull",
    "PullTask",
    "OffsetStore",
    # Without an event loop.
    "BlockingClient",
    "BlockingPoller",
    "BlockingTransactions",
    # Errors of all but sends, whose outcome is a value.
    "ClientError",
    "NoRouteError",
    "RefusalError",
    "SendError",
    "NoReplyError",
    "ReplyError",
]
