"""The faults of the chaos proxy, each with the catalogue entries that permit it, or that it breaks.

A lawful fault is something that a correct cluster may do, or that a network may do to it. The statement and
the scope of the named entries of spec/invariants.toml say so. An unlawful fault breaks the entries that it
names. It shows that the judge of a run notices, and how an application fails on a broken cluster.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mqproof.impl.remoting.codes import RequestCode


class Point(StrEnum):
    """The requests at which a fault may act, by what they are for."""

    SEND = "sends"
    PULL = "pulls"
    COMMIT = "commits of offsets"
    QUERY_OFFSET = "queries of offsets"
    MEMBERS = "queries of a group's members"
    NOTIFICATION = "notifications of a changed group"
    HEARTBEAT = "heartbeats"
    LOCK = "locks of queues"
    SEND_BACK = "returns of failed messages"
    END_TRANSACTION = "ends of transactions"
    CHECK = "checks of transactions"
    REPLY = "replies to requests"
    ROUTE = "queries of routes"
    ANY = "sends, pulls and commits"


POINTS: Final[dict[int, Point]] = {
    RequestCode.SEND_MESSAGE: Point.SEND,
    RequestCode.SEND_MESSAGE_V2: Point.SEND,
    RequestCode.SEND_BATCH_MESSAGE: Point.SEND,
    RequestCode.PULL_MESSAGE: Point.PULL,
    RequestCode.LITE_PULL_MESSAGE: Point.PULL,
    RequestCode.UPDATE_CONSUMER_OFFSET: Point.COMMIT,
    RequestCode.QUERY_CONSUMER_OFFSET: Point.QUERY_OFFSET,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: Point.MEMBERS,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: Point.NOTIFICATION,
    RequestCode.HEART_BEAT: Point.HEARTBEAT,
    RequestCode.LOCK_BATCH_MQ: Point.LOCK,
    RequestCode.CONSUMER_SEND_MSG_BACK: Point.SEND_BACK,
    RequestCode.END_TRANSACTION: Point.END_TRANSACTION,
    RequestCode.CHECK_TRANSACTION_STATE: Point.CHECK,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: Point.REPLY,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: Point.ROUTE,
}
"""The point of each request code. Other requests pass unchanged."""

FROM_BROKER: Final = frozenset({Point.NOTIFICATION, Point.CHECK, Point.REPLY})
"""The points of requests that brokers send to clients."""

ANY_OF: Final = frozenset({Point.SEND, Point.PULL, Point.COMMIT})
"""The requests that count for a fault at Point.ANY."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One thing that the proxy can do."""

    name: str
    point: Point
    effect: str
    permitted_by: tuple[str, ...] = ()
    """Catalogue ids; empty for an unlawful fault."""
    breaks: tuple[str, ...] = ()
    """Catalogue ids; empty for a lawful fault."""
    probability: float = 0.02
    """The default share of the requests at which it acts."""
    spacing: int = 0
    """The default number of requests of the point that must pass after it acted."""
    delay_ms: tuple[int, int] = (0, 0)
    """The default range of its duration. (0, 0): it has none."""
    uses_earlier: bool = False
    """Whether it uses earlier answers, which the proxy then keeps."""

    @property
    def is_lawful(self) -> bool:
        return bool(self.permitted_by)


_LAWFUL: Final = (
    FaultKind(
        "send_answer_lost", Point.SEND,
        "the message is stored, and the connection closes instead of the answer",
        ("DELIV-3", "FLUSH-7"),
    ),
    FaultKind(
        "send_answer_late", Point.SEND,
        "the message is stored, and the answer comes after the usual timeout of 3 s",
        ("DELIV-3", "FLUSH-7"), probability=0.002, delay_ms=(3200, 4500),
    ),
    FaultKind(
        "send_answer_delayed", Point.SEND,
        "the message is stored, and the answer comes later",
        ("FLUSH-7",), probability=0.05, delay_ms=(20, 300),
    ),
    FaultKind(
        "send_request_lost", Point.SEND,
        "the connection closes before the broker receives the message",
        ("DELIV-1",), probability=0.01,
    ),
    FaultKind(
        "send_stored_twice", Point.SEND,
        "the message is stored twice, as by a retry inside a client; not for transactions",
        ("DELIV-3",),
    ),
    FaultKind(
        "flush_disk_timeout", Point.SEND,
        "the message is stored and answered FLUSH_DISK_TIMEOUT instead of SEND_OK",
        ("REPL-3",),
    ),
    FaultKind(
        "flush_slave_timeout", Point.SEND,
        "the message is stored and answered FLUSH_SLAVE_TIMEOUT instead of SEND_OK",
        ("REPL-3",),
    ),
    FaultKind(
        "slave_not_available", Point.SEND,
        "the message is stored and answered SLAVE_NOT_AVAILABLE instead of SEND_OK",
        ("REPL-3",),
    ),
    FaultKind(
        "send_busy", Point.SEND,
        "the send is refused as SYSTEM_BUSY; nothing is stored",
        ("DELIV-1", "TRUST-12"),
    ),
    FaultKind(
        "send_unavailable", Point.SEND,
        "the send is refused as SERVICE_NOT_AVAILABLE; nothing is stored",
        ("DELIV-1", "ROUTE-4"), probability=0.01,
    ),
    FaultKind(
        "pull_answer_lost", Point.PULL,
        "the connection closes instead of the answer",
        ("DELIV-12",), probability=0.01,
    ),
    FaultKind(
        "pull_delayed", Point.PULL,
        "the messages come later",
        ("DELIV-12",), probability=0.05, delay_ms=(20, 500),
    ),
    FaultKind(
        "queues_reordered", Point.PULL,
        "the messages of a queue come after those of other queues: three answers later, or at the end of the "
        "duration",
        ("DELIV-4",), probability=0.05, delay_ms=(500, 1000),
    ),
    FaultKind(
        "pull_retry", Point.PULL,
        "the pull finds nothing and is to be repeated at the same offset",
        ("DELIV-12",),
    ),
    FaultKind(
        "pull_fewer", Point.PULL,
        "the pull returns one message, whatever the consumer asked for",
        ("DELIV-4",), probability=0.1,
    ),
    FaultKind(
        "pull_busy", Point.PULL,
        "the pull is refused as SYSTEM_BUSY",
        ("DELIV-12", "TRUST-12"), probability=0.01,
    ),
    FaultKind(
        "slave_suggested", Point.PULL,
        "the answer asks the consumer to read from slave 1 next, if its route has one",
        ("REPL-2", "REPL-4"), probability=0.05,
    ),
    FaultKind(
        "commit_lost", Point.COMMIT,
        "the broker does not receive the offset; a commit that is not one-way is refused as SYSTEM_BUSY",
        ("DELIV-3",), probability=0.2,
    ),
    FaultKind(
        "offset_query_busy", Point.QUERY_OFFSET,
        "the query is refused as SYSTEM_BUSY, which does not mean that there is no offset",
        ("DELIV-12", "TRUST-12"), probability=0.1,
    ),
    FaultKind(
        "offsets_go_back", Point.COMMIT,
        "the broker crashes and restarts, and committed offsets are those of up to 5 s before",
        ("DELIV-5", "FLUSH-8"), probability=0.02, spacing=50, delay_ms=(100, 1000),
    ),
    FaultKind(
        "member_joins", Point.MEMBERS,
        "another member is in the group for a while, takes its share of the queues, and leaves",
        ("DELIV-6",), probability=0.1, spacing=4, delay_ms=(500, 2000),
    ),
    FaultKind(
        "member_unknown", Point.MEMBERS,
        "the broker does not know one of several members for a while, so that queues have two owners",
        ("DELIV-6",), probability=0.1, spacing=4, delay_ms=(500, 2000),
    ),
    FaultKind(
        "rebalance_storm", Point.MEMBERS,
        "a member joins and leaves four times, 150 ms apart",
        ("DELIV-6",), probability=0.05, spacing=12,
    ),
    FaultKind(
        "notification_lost", Point.NOTIFICATION,
        "a consumer does not learn at once that its group changed",
        ("DELIV-6",), probability=0.2,
    ),
    FaultKind(
        "heartbeat_busy", Point.HEARTBEAT,
        "the heartbeat is refused as SYSTEM_BUSY",
        ("DELIV-6", "TRUST-12"), probability=0.05,
    ),
    FaultKind(
        "lock_refused", Point.LOCK,
        "no queue is locked, as while another member holds the locks",
        ("DELIV-13",), probability=0.2,
    ),
    FaultKind(
        "send_back_busy", Point.SEND_BACK,
        "the return of a failed message is refused as SYSTEM_BUSY; the consumer keeps it",
        ("DELIV-7",), probability=0.1,
    ),
    FaultKind(
        "send_back_answer_lost", Point.SEND_BACK,
        "the failed message is stored for its retry, and the connection closes instead of the answer",
        ("DELIV-3", "DELIV-7"), probability=0.1,
    ),
    FaultKind(
        "end_of_transaction_lost", Point.END_TRANSACTION,
        "the broker does not receive the commit or rollback, and checks the transaction later",
        ("TXN-3", "TXN-4"), probability=0.1,
    ),
    FaultKind(
        "check_repeated", Point.CHECK,
        "the broker asks twice for the state of a transaction that has not ended",
        ("TXN-1", "TXN-4"), probability=0.2,
    ),
    FaultKind(
        "reply_late", Point.REPLY,
        "the reply to a request comes later",
        ("REPLY-2", "REPLY-4"), probability=0.1, delay_ms=(50, 1000),
    ),
    FaultKind(
        "route_missing", Point.ROUTE,
        "the name server does not know the topic yet",
        ("ROUTE-7",), probability=0.05,
    ),
    FaultKind(
        "route_stale", Point.ROUTE,
        "the name server answers with a route that is up to a minute old, if it has changed since",
        ("ROUTE-3", "ROUTE-7"), probability=0.1, uses_earlier=True,
    ),
    FaultKind(
        "route_partial", Point.ROUTE,
        "the route lacks one of its brokers; only where it has several",
        ("ROUTE-7",), probability=0.1,
    ),
    FaultKind(
        "broker_restart", Point.ANY,
        "the broker's connections close, and it accepts none for a while",
        ("FLUSH-8", "DELIV-12"), probability=0.0005, spacing=500, delay_ms=(100, 1500),
    ),
    FaultKind(
        "broker_switch", Point.ANY,
        "the master changes: its connections close, and routes name another address",
        ("RAFT-4", "ROUTE-7"), probability=0.0005, spacing=500,
    ),
    FaultKind(
        "connection_cut", Point.ANY,
        "the connection closes; requests on it stay without an answer",
        ("DELIV-3", "DELIV-12"), probability=0.001, spacing=100,
    ),
)  # fmt: skip

_UNLAWFUL: Final = (
    FaultKind(
        "sent_not_stored", Point.SEND,
        "the send is answered SEND_OK at the place of the message before, and nothing is stored",
        breaks=("DELIV-1", "FLUSH-4"), uses_earlier=True,
    ),
    FaultKind(
        "message_skipped", Point.PULL,
        "the second of several messages is missing from the answer",
        breaks=("DELIV-1", "FLUSH-4"),
    ),
    FaultKind(
        "queue_reordered", Point.PULL,
        "several messages of one queue come in the opposite order",
        breaks=("DELIV-4",),
    ),
    FaultKind(
        "delivered_again", Point.PULL,
        "the messages of the queue's previous answer come again",
        breaks=("DELIV-3", "DELIV-4"), uses_earlier=True,
    ),
    FaultKind(
        "offset_forgotten", Point.QUERY_OFFSET,
        "the committed offset is answered as 0",
        breaks=("DELIV-5",),
    ),
)  # fmt: skip

FAULTS: Final = {fault.name: fault for fault in (*_LAWFUL, *_UNLAWFUL)}
"""All faults by name, lawful ones first."""
