"""Mutants that the inspections of logs, deletions, failing disks and pairs detect, one for each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from mqproof.conformance.mutants.mutant import by_name, nothing, unexplained
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.namesrv.route_table import RouteTable
from mqproof.impl.remoting.bodies import BrokerData
from mqproof.impl.store import delay, reader
from mqproof.impl.store.files import record
from mqproof.impl.store.files.consume_queue import ConsumeQueue
from mqproof.impl.store.flush import FlushRound, LogFlusher

_STORE: Final = "mqproof.impl.store"
_REPLICATION: Final = "mqproof.impl.replication"

_entry_problem, _scheduled, _due = record.entry_problem, delay.scheduled, delay.due
_persist, _forget, _round_done = OffsetTable.persist, RouteTable._forget, LogFlusher.round_done
_fields = ConsumeQueue.fields
_read_filtered = reader._read_filtered


def _always(*_: object) -> bool:
    return True


def _never(*_: object) -> bool:
    return False


def _no_records(_: object) -> tuple[()]:
    return ()


def _few_entries(queue: Any, offset: int, count: int) -> Any:
    return _fields(queue, offset, min(count, 32))


def _due_anywhere(message: Any) -> Any:
    try:
        return _due(message)
    except ValueError:
        return msgspec.structs.replace(message, topic="t", queue_id=0)


def _is_near(end: int, acked: int) -> bool:
    return end - acked < 400


def _any_place(_: object, name: str) -> int:
    return int(name) if name.isdecimal() else 0


def _limit(_log: object, _position: int, limit: int) -> int:
    return limit


def _begin_of(log: Any, _checkpoint: object) -> int:
    return int(log.begin)


def _no_sum(*_: object) -> bytes:
    return b"%08x" % 0


def _every_unit(scrub: Any, queue: Any) -> Any:
    return queue.units(max(scrub._offset, queue.first), 100)


def _zero(*_: object) -> int:
    return 0


def _none(*_: object) -> dict[str, int]:
    return {}


def _of_short_hosts(front: bytes) -> int:
    return int.from_bytes(front[56:64], "big")


def _any_body(*arguments: Any) -> str:
    found = _entry_problem(*arguments)
    return "" if found == record.OTHER_BODY else found


async def _cleared_late(table: Any) -> None:
    await _persist(table)
    table._unwritten.is_any = False


def _all_durable(flusher: Any, flush_round: FlushRound) -> None:
    _round_done(flusher, replace(flush_round, end=flusher._log.end))


def _any_error_is_late(writer: Any, _error: OSError) -> None:
    writer.is_late = True


def _not_after_a_transaction(message: Any, levels_ms: Any) -> Any:
    return message if message.sys_flag else _scheduled(message, levels_ms)


def _role_forgotten(table: Any, live: Any) -> None:
    _forget(table, live)
    name = live.key.broker_name
    if broker := table._brokers.get(name):
        table._brokers[name] = BrokerData(broker.broker_addrs, name, broker.cluster)


def _any_size(*arguments: Any) -> Any:
    log, queue, offset, count, _, *more = arguments
    return _read_filtered(log, queue, offset, count, 1 << 30, *more)


async def _no_work(*_: object) -> None:
    """Do nothing."""


INSPECTIONS: Final[Mapping[str, str]] = {
    "time-of-short-hosts": "written log",
    "records-of-other-places": "damaged log",
    "bodies-not-compared": "altered log",
    "checkpoint-errors-ignored": "failing writes",
    "broken-store-takes-messages": "failing flushed writes",
    "offsets-marked-written-late": "overlapping writes",
    "later-records-counted-as-flushed": "late flushes",
    "deletions-beyond-the-log": "deletions",
    "deletions-of-the-master-ignored": "deletions at a slave",
    "queues-of-deleted-topics-stay": "deletions at a flushed slave",
    "damaged-end-compared": "damaged ends of a pair",
    "slave-proves-nothing": "proved ends of a pair",
    "near-acknowledgement-counts": "partly acknowledged sends",
    "never-written-again": "slave that does not read",
    "commits-stay-at-the-slave": "refused commits",
    "acting-role-forgotten": "acting masters",
    "returned-at-once-after-a-transaction": "late transactions",
    "unnamed-topic-is-any": "unnamed deliveries",
    "log-not-flushed-on-request": "durable deliveries",
    "filtered-pulls-of-any-number": "answer limits",
    "few-entries-examined": "visited log",
    "segments-of-any-place": "strange files",
    "damage-ends-the-log": "searched log",
    "times-of-the-checkpoint-ignored": "times of a checkpoint",
    "deletions-not-taken-back": "unknown deletions",
    "tables-without-checksums": "strange tables",
    "every-segment-is-old": "old segments",
    "no-segment-is-needed": "needed segments",
    "scrub-of-any-rate": "slow scrub",
    "lost-records-not-requested": "no scrub",
    "asynchronous-sends-wait": "sends at once",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "time-of-short-hosts", "a search by time reads each record as one with IPv4 hosts",
        f"{_STORE}.files.record:store_time_ms", _of_short_hosts,
    ),
    unexplained(
        "records-of-other-places", "a record counts as whole at any place of the log",
        f"{_STORE}.files.record:stands_where_it_says", _always,
    ),
    unexplained(
        "bodies-not-compared", "a read does not compare the body of a record with its checksum",
        f"{_STORE}.files.record:entry_problem", _any_body,
    ),
    unexplained(
        "checkpoint-errors-ignored", "after any error of the disk, the checkpoint is only late",
        f"{_STORE}.queue_flush:CheckpointWriter._failed", _any_error_is_late,
    ),
    unexplained(
        "broken-store-takes-messages", "a store takes messages after an error of the disk",
        f"{_STORE}.base:Store._refused", nothing,
    ),
    unexplained(
        "offsets-marked-written-late",
        "offsets that are committed while the file is written count as written",
        "mqproof.impl.broker.state.offsets:OffsetTable.persist", _cleared_late,
    ),
    unexplained(
        "later-records-counted-as-flushed", "records that arrive during an fsync count as durable after it",
        f"{_STORE}.flush:LogFlusher.round_done", _all_durable,
    ),
    unexplained(
        "deletions-beyond-the-log", "deletions stay beyond the end that the log lost",
        f"{_STORE}.files.deleted_topics:DeletedTopics.clamp", nothing,
    ),
    unexplained(
        "deletions-of-the-master-ignored", "a slave ignores the deletions of its master",
        f"{_STORE}.files.deleted_topics:DeletedTopics.newer", _none,
    ),
    unexplained(
        "queues-of-deleted-topics-stay", "the deletion of a topic leaves its queues as they are",
        f"{_STORE}.message_store:MessageStore._forget", nothing,
    ),
    unexplained(
        "damaged-end-compared", "a master sends a damaged record to be compared",
        f"{_REPLICATION}.feed:Feed._require_sound", nothing,
    ),
    unexplained(
        "slave-proves-nothing", "a slave sends the checksum 0 as its proof",
        f"{_REPLICATION}.follow:tail_checksum", _zero,
    ),
    unexplained(
        "near-acknowledgement-counts", "a send counts as replicated when a slave has nearly all of it",
        f"{_REPLICATION}.rules:replica_reached", _is_near,
    ),
    unexplained(
        "never-written-again", "a master sends no more to a slave that did not read for a while",
        f"{_REPLICATION}.server:_Sender.write_resumed", nothing,
    ),
    unexplained(
        "commits-stay-at-the-slave", "a slave does not send the offsets that its master lacks",
        f"{_REPLICATION}.metadata:MetadataSync._send_commits", _no_work,
    ),
    unexplained(
        "acting-role-forgotten", "when one broker of a name leaves, no other one may act as the master",
        "mqproof.impl.namesrv.route_table:RouteTable._forget", _role_forgotten,
    ),
    unexplained(
        "returned-at-once-after-a-transaction", "a returned message of a transaction has no delay",
        "mqproof.impl.broker.requests.checks:scheduled", _not_after_a_transaction,
    ),
    unexplained(
        "unnamed-topic-is-any", "a delayed message that names no queue is delivered to one of the topic `t`",
        "mqproof.impl.broker.delayed:due", _due_anywhere,
    ),
    unexplained(
        "log-not-flushed-on-request", "a request to flush the log does nothing",
        f"{_STORE}.message_store:MessageStore.flush_log", _no_work,
    ),
    unexplained(
        "filtered-pulls-of-any-number", "a pull with a tag returns any number of messages",
        f"{_STORE}.reader:_read_filtered", _any_size,
    ),
    unexplained(
        "few-entries-examined", "a read examines at most 32 entries of a queue",
        f"{_STORE}.files.consume_queue:ConsumeQueue.fields", _few_entries,
    ),
    unexplained(
        "segments-of-any-place", "a segment may begin at any place, and have any name",
        f"{_STORE}.files.segments:SegmentedFile._start", _any_place,
    ),
    unexplained(
        "damage-ends-the-log", "a start does not search for records after damage",
        f"{_STORE}.files.commit_log:CommitLog._next_whole", _limit,
    ),
    unexplained(
        "times-of-the-checkpoint-ignored", "a start does not use the times of the checkpoint",
        f"{_STORE}.recovery:newest_segment", _begin_of,
    ),
    unexplained(
        "deletions-not-taken-back", "a slave keeps deletions that its master lost",
        f"{_STORE}.files.deleted_topics:DeletedTopics.taken_back", _none,
    ),
    unexplained(
        "tables-without-checksums", "the checksum of a table does not depend on its content",
        f"{_STORE}.files.sealed_file:_sum", _no_sum,
    ),
    unexplained(
        "every-segment-is-old", "the age of a segment is not compared",
        f"{_STORE}.expiry:_store_time_ms", _zero,
    ),
    unexplained(
        "no-segment-is-needed", "segments are deleted that delayed messages need",
        f"{_STORE}.expiry:Cleaner.needed_from", nothing,
    ),
    unexplained(
        "scrub-of-any-rate", "the scrub reads as many bytes a second as there are",
        f"{_STORE}.scrub:Scrub._next_units", _every_unit,
    ),
    unexplained(
        "lost-records-not-requested", "no damaged record is requested from a peer",
        f"{_STORE}.entry_repair:EntryRepair.lost", _no_records,
    ),
    unexplained(
        "asynchronous-sends-wait", "under ASYNC_FLUSH, a send counts as one that waits for the disk",
        f"{_STORE}.message_store:MessageStore.confirms_at_once", _never,
    ),
)  # fmt: skip
"""The mutants by name."""
