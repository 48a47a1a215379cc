"""Mutants that the inspections of stores and of replication detect, at least one for each inspection."""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import by_name, nothing, unexplained
from mqproof.impl.store.files.commit_log import CommitLog

_STORE: Final = "mqproof.impl.store"
_REPLICATION: Final = "mqproof.impl.replication"

_read_record = CommitLog.read_record


class _Everything:
    """Contains each key."""

    def __contains__(self, _: object) -> bool:
        return True


async def _no_work(*_: object) -> None:
    """Do nothing."""


def _never(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


def _zero(*_: object) -> int:
    return 0


def _four(*_: object) -> int:
    return 4


def _as_reported(_acked: int, reported: int, _end: int) -> int:
    return reported


def _not_compared(follow: Any, body: bytes) -> bytes:
    count = min(len(body), follow._log.log_end - follow._position)
    follow._position += count
    follow.verified = follow._position == follow._log.log_end
    return body[count:]


def _small_only(log: Any, position: int, size: int) -> bytes:
    return _read_record(log, position, size) if size < 1 << 16 else b""


def _each_key(_: object) -> _Everything:
    return _Everything()


def _visible_end(store: Any, topic: str, queue_id: int) -> int:
    return int(store.max_offset(topic, queue_id))


def _not_found(*_: object) -> list[bytes]:
    raise OSError("no index")


INSPECTIONS: Final[Mapping[str, str]] = {
    "offset-of-a-lost-record-used-again": "damaged records",
    "entries-repaired-in-answers-only": "damaged files",
    "entries-beyond-the-log": "damaged end",
    "records-not-dispatched-again": "damaged flushed end",
    "removed-files-stay": "expired segments",
    "lost-entries-unnoticed": "crashed starts",
    "positions-as-reported": "slaves of a master",
    "refused-slaves-stay": "many slaves",
    "reports-as-shipped-ignored": "slaves as shipped",
    "proof-of-nothing": "proved slaves",
    "any-last-record-accepted": "strange masters",
    "idle-records-not-compared": "repaired records",
    "tags-verified-unseen": "damaged tags",
    "no-timed-flush": "flushes",
    "checkpoint-never-written": "checkpoints",
    "large-records-not-read": "default files",
    "query-needs-an-index": "no index",
    "keys-by-hash-alone": "colliding keys",
    "end-of-the-durable-part": "held disk",
    "expired-at-any-hour": "used disk",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "offset-of-a-lost-record-used-again",
        "a start cuts the last entry of a queue if its record is damaged",
        f"{_STORE}.recovery:points_into_damage", _never,
    ),
    unexplained(
        "entries-repaired-in-answers-only", "a damaged queue entry stays in its file",
        f"{_STORE}.entry_repair:EntryRepair._correct", nothing,
    ),
    unexplained(
        "entries-beyond-the-log", "a start keeps queue entries beyond the end of the log",
        f"{_STORE}.recovery:cut_queue", _zero,
    ),
    unexplained(
        "records-not-dispatched-again", "a start writes no missing entries of queues",
        f"{_STORE}.recovery:dispatch_again", _zero,
    ),
    unexplained(
        "removed-files-stay", "the files of expired segments stay on the disk",
        f"{_STORE}.expiry:_carry_out", nothing,
    ),
    unexplained(
        "lost-entries-unnoticed", "a start does not notice that the checkpoint counted more entries",
        f"{_STORE}.recovery:queues_are_whole", _always,
    ),
    unexplained(
        "positions-as-reported", "the position of a slave decreases with its reports",
        f"{_REPLICATION}.rules:acked_position", _as_reported,
    ),
    unexplained(
        "refused-slaves-stay", "the connection to a refused slave stays open",
        f"{_REPLICATION}.server:_Sender.refuse", nothing,
    ),
    unexplained(
        "reports-as-shipped-ignored", "with the released rules, no report of a slave counts",
        f"{_REPLICATION}.acks:Acks.reported_as_shipped", nothing,
    ),
    unexplained(
        "proof-of-nothing", "a master expects the checksum 0 as the proof of every log",
        f"{_REPLICATION}.feed:tail_checksum", _zero,
    ),
    unexplained(
        "any-last-record-accepted", "a slave accepts any bytes in the place of its last record",
        f"{_REPLICATION}.follow:Follow._compare", _not_compared,
    ),
    unexplained(
        "idle-records-not-compared", "the scrub compares nothing", f"{_STORE}.scrub:Scrub._compare", nothing,
    ),
    unexplained(
        "tags-verified-unseen", "each block of queue entries counts as compared",
        f"{_STORE}.verified_entries:VerifiedEntries.has", _always,
    ),
    unexplained(
        "no-timed-flush", "under ASYNC_FLUSH, no timer flushes the log",
        f"{_STORE}.background:BackgroundTasks._timed_flush", _no_work,
    ),
    unexplained(
        "checkpoint-never-written", "the checkpoint file is never written",
        f"{_STORE}.queue_flush:write_checkpoint", nothing,
    ),
    unexplained(
        "large-records-not-read", "records of 64 KiB or more are left out",
        f"{_STORE}.files.commit_log:CommitLog.read_record", _small_only,
    ),
    unexplained(
        "query-needs-an-index", "without an index, a query by key fails", f"{_STORE}.base:Store.find",
        _not_found,
    ),
    unexplained(
        "keys-by-hash-alone", "a query by key finds messages with other keys of the same hash",
        f"{_STORE}.base:index_keys", _each_key,
    ),
    unexplained(
        "end-of-the-durable-part",
        "under SYNC_FLUSH, an offset beyond the durable end counts as beyond the queue's end",
        f"{_STORE}.message_store:MessageStore.taken_end", _visible_end,
    ),
    unexplained(
        "expired-at-any-hour", "expired segments are deleted at any hour",
        f"{_STORE}.expiry:local_hour", _four,
    ),
)  # fmt: skip
"""The mutants by name."""
