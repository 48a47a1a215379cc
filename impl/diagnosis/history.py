"""What event logs say about one message, and about what may have happened to it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mqproof.spec.events import Event, Kind


@dataclass(frozen=True, slots=True)
class History:
    """Events about one message, and others that may explain its fate. Both are sorted by time."""

    own: tuple[Event, ...] = ()
    """The events with the id of the message."""
    other: tuple[Event, ...] = ()
    """Administrative requests, resets, subscriptions, crashes and cut logs."""
    committed: Mapping[tuple[str, str, str, int], int] = field(default_factory=dict)
    """The highest committed offset by group, topic, broker and queue, without resets."""
    received: Mapping[tuple[str, str, str, int], tuple[int, int]] = field(default_factory=dict)
    """The lowest and highest delivered offset by group, topic, broker and queue."""
    whole: frozenset[str] = frozenset()
    """The nodes whose log is there from its beginning."""

    def is_complete(self, group: str, topic: str, broker: str) -> bool:
        """Return whether the logs show everything that the group has received of a topic from a broker.

        They do if the broker's log is there from its beginning, and that of each member that it names.
        """
        named: set[str | None] = set()
        logged: set[str | None] = set()
        brokers = {broker, *(event.node for event in self.other if event.kind in _OF_BROKERS)}
        for event in self.others(Kind.SUBSCRIBE):
            if (event.group, event.topic) == (group, topic):
                if event.node == broker:
                    named.add(event.client)
                elif event.node not in brokers and event.node in self.whole:
                    logged.add(event.client)
        return broker in self.whole and bool(named) and named <= logged

    def of(self, *kinds: Kind, group: str | None = None) -> list[Event]:
        """Return the message's events of these kinds, for one group if given."""
        return [event for event in self.own if event.kind in kinds and group in (None, event.group)]

    def others(self, *kinds: Kind) -> list[Event]:
        return [event for event in self.other if event.kind in kinds]

    @property
    def groups(self) -> list[str]:
        """The groups that have received the message."""
        kinds = (Kind.DELIVER, Kind.CONSUME_OK, Kind.CONSUME_FAIL, Kind.RETRY, Kind.DEAD_LETTER)
        return sorted({event.group for event in self.of(*kinds) if event.group})

    @property
    def topic(self) -> str | None:
        """The topic of the message, as its producer named it."""
        kinds = (Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL, Kind.HALF, Kind.APPEND, Kind.DELIVER)
        named = [event.topic for kind in kinds for event in self.of(kind) if event.topic]
        return next((topic for topic in named if not is_internal(topic)), None)


SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OPERATION_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
RETRY = "%RETRY%"
DEAD_LETTER = "%DLQ%"


def is_internal(topic: str) -> bool:
    """Return whether producers of applications never name this topic."""
    return topic.startswith("%") or topic in (
        *(SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, OPERATION_TOPIC, DISCARD_TOPIC),
    )


_OF_BROKERS = (Kind.ADMIN, Kind.CRASH, Kind.RECOVER, Kind.TRUNCATE)
CONTEXT = frozenset(
    {Kind.ADMIN, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.CRASH, Kind.RECOVER, Kind.TRUNCATE, Kind.REBALANCE}
)


class HistoryBuilder:
    """Collects the events of one message from any number of logs."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._own: list[Event] = []
        self._other: list[Event] = []
        self._committed: dict[tuple[str, str, str, int], int] = {}
        self._received: dict[tuple[str, str, str, int], list[int]] = defaultdict(list)
        self._whole: set[str] = set()

    def add(self, event: Event) -> None:
        if event.seq == 0:
            self._whole.add(event.node)
        if event.msg_id is not None and event.msg_id == self._message_id:
            self._own.append(event)
        is_reset = event.kind is Kind.OFFSET_COMMIT and event.attrs.get("reset") == "true"
        if event.kind in CONTEXT or is_reset:
            self._other.append(event)
        queue = queue_of(event)
        if queue is None or event.queue_offset is None:
            return
        if event.kind is Kind.OFFSET_COMMIT and not is_reset:
            self._committed[queue] = max(event.queue_offset, self._committed.get(queue, 0))
        elif event.kind is Kind.DELIVER:
            bounds = self._received[queue]
            bounds[:] = [min([*bounds, event.queue_offset]), max([*bounds, event.queue_offset])]

    def build(self) -> History:
        return History(
            _by_time(self._own),
            _by_time(self._other),
            dict(self._committed),
            {queue: (low, high) for queue, (low, high) in self._received.items()},
            frozenset(self._whole),
        )


def queue_of(event: Event) -> tuple[str, str, str, int] | None:
    """Return group, topic, broker and queue of an event of a consumer or of a broker about a group."""
    if event.group is None or event.topic is None or event.queue_id is None:
        return None
    return event.group, event.topic, event.attrs.get("broker", event.node), event.queue_id


def _by_time(events: Iterable[Event]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: (event.ts, event.node, event.seq)))


def utc(ts_us: int) -> str:
    """Return a time of an event log as UTC text."""
    try:
        return f"{datetime.fromtimestamp(ts_us / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
    except (ValueError, OverflowError, OSError):
        return f"{ts_us} us"


def utc_ms(time_ms: int) -> str:
    """Return a time of a message as UTC text."""
    return utc(time_ms * 1000)


def line_of(event: Event) -> str:
    """Return an event as one line of evidence."""
    names = {"msg_id", "ts", "seq", "node", "kind", "attrs", "born_ts", "keys", "tags", "term", "attempt"}
    fields = [
        f"{name}={getattr(event, name)}"
        for name in event.__struct_fields__
        if name not in names and getattr(event, name) is not None
    ]
    extra = [f"{name}={value}" for name, value in event.attrs.items() if name != "schema"]
    return f"log: {utc(event.ts)} {event.node} {event.kind} {' '.join(fields + extra)}".rstrip()
