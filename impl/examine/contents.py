"""The contents of a store directory as plain data, for tables and for JSON."""

from collections.abc import Iterator

import msgspec

from mqproof.impl.broker.state.durable_table import read_config
from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import HEADER_BYTES
from mqproof.impl.examine.directory import LedgerFiles, StoreDirectory
from mqproof.impl.remoting.bodies import TopicConfigs
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog


class Segment(msgspec.Struct, frozen=True):
    name: str
    bytes: int
    first_store_ms: int | None
    """The store time of its first record; None if it has none."""


class Queue(msgspec.Struct, frozen=True):
    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    files: int
    last_store_ms: int | None


class IndexSummary(msgspec.Struct, frozen=True):
    name: str
    entries: int
    begin_offset: int
    end_offset: int
    begin_ms: int
    end_ms: int


class CheckpointSummary(msgspec.Struct, frozen=True):
    log_ms: int
    queues_ms: int
    index_ms: int
    counted_entries: int | None
    """The entry count that mqproof writes; None where a released broker wrote the file last."""


class Topic(msgspec.Struct, frozen=True):
    name: str
    perm: int
    read_queues: int
    write_queues: int


class Progress(msgspec.Struct, frozen=True):
    topic: str
    group: str
    queue_id: int
    offset: int


class LedgerSummary(msgspec.Struct, frozen=True):
    """The ledger of a member of a group."""

    member: str
    begin_index: int | None
    """The index of the first entry; None for an empty ledger."""
    begin_term: int | None
    term: int | None
    """The term in the member's file of term and vote; None where there is no file."""
    voted_for: str | None


class Contents(msgspec.Struct, frozen=True):
    directory: str
    in_use: bool
    """A broker holds the lock, so the contents may have changed already."""
    is_clean: bool
    """True when there is no abort file."""
    ledger: LedgerSummary | None
    """Set for a member of a group; the log is then its ledger."""
    log_begin: int
    log_end: int
    segment_bytes: int
    segments: list[Segment]
    queues: list[Queue]
    index: list[IndexSummary]
    checkpoint: CheckpointSummary | None
    topics: list[Topic]
    offsets: list[Progress]
    problems: list[str]


class OffsetFile(msgspec.Struct, rename="camel"):
    """consumerOffset.json"""

    offset_table: dict[str, dict[int, int]] = {}


def contents(store: StoreDirectory, *, in_use: bool) -> Contents:
    """Return the contents of a store. Raises OSError where the disk cannot be read."""
    problems = list(store.problems)
    return Contents(
        directory=store.layout.directory,
        in_use=in_use,
        is_clean=store.is_clean,
        ledger=_ledger(store.ledger, store.log, problems) if store.ledger else None,
        log_begin=store.log.begin,
        log_end=store.log.end,
        segment_bytes=store.log.segments.segment_bytes if store.log.segments.starts else 0,
        segments=list(_segments(store)),
        queues=list(_queues(store)),
        index=[
            IndexSummary(
                f"{file.name:017d}",
                max(0, file.header.entry_next - 1),
                file.header.begin_offset,
                file.header.end_offset,
                file.header.begin_timestamp_ms,
                file.header.end_timestamp_ms,
            )
            for file in store.index
        ],
        checkpoint=_checkpoint(store),
        topics=topics(store, problems),
        offsets=offsets(store, problems),
        problems=problems,
    )


def topics(store: StoreDirectory, problems: list[str]) -> list[Topic]:
    """Return the topics of topics.json. An unreadable file is added to `problems`."""
    try:
        found = read_config(store.disk, f"{store.layout.config}/topics.json", TopicConfigs)
    except StoreError as error:
        problems.append(store.path(str(error)))
        return []
    table = found.topic_config_table if found else {}
    return [
        Topic(name, topic.perm, topic.read_queue_nums, topic.write_queue_nums)
        for name, topic in sorted(table.items())
    ]


def offsets(store: StoreDirectory, problems: list[str]) -> list[Progress]:
    """Return the offsets of consumerOffset.json. An unreadable file is added to `problems`."""
    try:
        found = read_config(store.disk, f"{store.layout.config}/consumerOffset.json", OffsetFile)
    except StoreError as error:
        problems.append(store.path(str(error)))
        return []
    table = found.offset_table if found else {}
    return [
        Progress(topic, group, queue_id, offset)
        for (topic, _, group), queues in sorted(
            (name.partition("@"), queues) for name, queues in table.items()
        )
        for queue_id, offset in sorted(queues.items())
    ]


def store_time_ms(store: StoreDirectory, commit_offset: int) -> int | None:
    """Return the store time of the record at a commit offset; None where there is none."""
    size, magic = record.peek(store.log.read(commit_offset, 8))
    stored = store.log.record_at(commit_offset, size) if magic in record.MAGICS else None
    return stored.store_timestamp_ms if stored else None


def _ledger(files: LedgerFiles, log: CommitLog, problems: list[str]) -> LedgerSummary:
    member = files.directory.rpartition("dledger-")[2]
    front = log.read(log.begin, HEADER_BYTES)
    index, first_term = entry_format.place_of(front) if log.end > log.begin else (None, None)
    try:
        ballot = files.ballot()
    except StoreError as error:
        problems.append(str(error))
        ballot = None
    term, voted_for = (ballot.term, ballot.voted_for) if ballot else (None, None)
    return LedgerSummary(member, index, first_term, term, voted_for)


def _segments(store: StoreDirectory) -> Iterator[Segment]:
    for start in store.log.segments.starts:
        first = store_time_ms(store, start + store.log.header_bytes)
        yield Segment(f"{start:020d}", store.log.segments.segment_bytes, first)


def _queues(store: StoreDirectory) -> Iterator[Queue]:
    for (topic, queue_id), queue in sorted(store.queues.items()):
        last = queue.units(queue.end - 1, 1) if queue.end > queue.first else []
        yield Queue(
            topic,
            queue_id,
            queue.first,
            queue.end,
            len(queue.segments.starts),
            store_time_ms(store, last[0].commit_offset) if last else None,
        )


def _checkpoint(store: StoreDirectory) -> CheckpointSummary | None:
    known = store.checkpoint
    if known is None:
        return None
    count = known.queue_count.entries if known.queue_count else None
    return CheckpointSummary(
        known.log_timestamp_ms, known.queues_timestamp_ms, known.index_timestamp_ms, count
    )
