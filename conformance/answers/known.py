"""What the requests and answers so far establish about one broker."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec.structs import replace

from mqproof.conformance.answers.request_and_answer import SEND_BATCH, Exchange, long_names
from mqproof.conformance.answers.stored_record import RecordError, StoredRecord, properties_of, read_batch
from mqproof.conformance.wire.frames import Frame

UNIQUE_KEY: Final = "UNIQ_KEY"
STORED_CODES: Final = frozenset({0, 10, 11, 12})
"""The codes of answers to a send whose message is stored."""
_LATER: Final = frozenset({"DELAY", "TRAN_MSG", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})
"""The properties of messages that are not stored in their own topic first."""


class Sent(msgspec.Struct, frozen=True):
    """A message as a client sent it."""

    topic: str
    queue_id: int
    flag: int
    system_flag: int
    born_ms: int
    born_host: str
    reconsume_times: int
    body: bytes
    properties: Mapping[str, str]
    asked_ms: int
    commit_offset: int = -1
    """-1 until the answer says where it is stored."""
    queue_offset: int = -1
    answered_ms: int = -1
    answered_at: int = -1
    """The number of the answer among all frames."""

    @property
    def is_direct(self) -> bool:
        """Whether the message is stored in its own topic and queue at once."""
        return not _LATER & self.properties.keys() and not self.topic.startswith("%RETRY%")


@dataclass(slots=True)
class Known:
    """Earlier answers of one broker, and the messages that it was sent."""

    is_exact: bool
    """Whether clients and broker have one clock, and the broker sees the clients' own addresses."""
    stored_at: str = ""
    """The address of the broker that stored the records; empty for the one that answers, `*` for any."""
    by_key: defaultdict[str, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    stored: dict[int, Sent] = field(default_factory=dict)
    """Direct messages by commit offset."""
    places: defaultdict[tuple[str, int], dict[int, Sent]] = field(default_factory=lambda: defaultdict(dict))
    """Direct messages by queue and queue offset."""
    last: Sent | None = None
    """The message with the greatest commit offset that an answer named."""
    halves: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The commit offsets of the half message and of its copies that an end named, by unique key."""
    seen: dict[int, bytes] = field(default_factory=dict)
    """The records in earlier answers, by commit offset."""
    ends: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """The greatest end of each queue, and the number of the answer that said so."""
    begins: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    times: list[tuple[int, int]] = field(default_factory=list)
    """The commit offsets and store times of all records seen, in order."""

    def asked(self, request: Frame, client: str, now_ms: int) -> None:
        """Keep the messages of a send, which may be stored even without an answer."""
        for sent in messages(request, client, now_ms):
            if key := sent.properties.get(UNIQUE_KEY):
                self.by_key[key].append(sent)

    def ended(self, request: Frame) -> None:
        """Keep which half message, or which copy of it, the end of a transaction names."""
        self.halves[request.fields.get("msgId", "")].add(int(request.fields.get("commitLogOffset") or -1))

    def answered(self, exchange: Exchange, commit_offsets: Iterable[int]) -> None:
        """Keep where the messages of a send are stored."""
        first = exchange.answered("queueOffset") or 0
        queue_id = exchange.answered("queueId") or 0
        sent_now = messages(exchange.request, exchange.client, exchange.asked_ms)
        for index, (sent, commit_offset) in enumerate(zip(sent_now, commit_offsets, strict=False)):
            placed = replace(
                sent, queue_id=queue_id, commit_offset=commit_offset, queue_offset=first + index,
                answered_ms=exchange.answered_ms, answered_at=exchange.answered_at,
            )  # fmt: skip
            if self.last is None or commit_offset > self.last.commit_offset:
                self.last = placed
            if sent.is_direct:
                self.stored[commit_offset] = placed
                self.places[sent.topic, queue_id][placed.queue_offset] = placed
            elif sent.properties.get("TRAN_MSG") == "true":
                self.halves[sent.properties.get(UNIQUE_KEY, "")].add(commit_offset)

    def times_around(self, record: StoredRecord) -> tuple[int, int]:
        """Return the latest store time before the record and the earliest after it; keep the record's."""
        at = bisect_left(self.times, (record.commit_offset, record.store_ms))
        before = self.times[at - 1][1] if at else record.store_ms
        after = self.times[at][1] if at < len(self.times) else record.store_ms
        if at == len(self.times) or self.times[at][0] != record.commit_offset:
            insort(self.times, (record.commit_offset, record.store_ms))
        return before, after

    def topic_deleted(self, topic: str) -> None:
        """Forget the queues of a topic; a topic that is created again begins at offset 0."""
        for kept in (self.places, self.ends, self.begins):
            for queue in [queue for queue in kept if queue[0] == topic]:
                del kept[queue]
        if self.last and self.last.topic == topic:
            self.last = replace(self.last, queue_offset=-1)

    def crashed(self) -> None:
        """Forget what a crash may take back: all but the messages of acknowledged sends."""
        self.seen.clear()
        self.times.clear()
        self.ends.clear()
        self.begins.clear()


def messages(request: Frame, client: str, now_ms: int) -> Iterator[Sent]:
    """Yield the messages in a send; a batch that cannot be read has none."""
    fields = long_names(request)

    def number(name: str) -> int:
        return int(fields.get(name) or 0)

    common = properties_of(fields.get("properties", ""))
    sent = Sent(
        fields.get("topic", ""), number("queueId"), number("flag"), number("sysFlag"),
        number("bornTimestamp"), client, number("reconsumeTimes"), request.body, common, now_ms,
    )  # fmt: skip
    if request.code != SEND_BATCH and fields.get("batch") != "true":
        yield sent
        return
    try:
        parts = list(read_batch(request.body))
    except RecordError:
        return
    for each in parts:
        yield replace(sent, flag=each.flag, body=each.body, properties={**common, **each.properties})
