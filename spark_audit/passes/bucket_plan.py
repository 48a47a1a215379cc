"""The plan for aggregating buckets in the pass over a log, based on a sample of the log's files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mqproof.spark_audit.passes.bucket_ids import SAMPLED_IDS, id_prefix, shared_prefix
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX
from mqproof.spark_audit.scan.run_over_log import parts
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spec.events import Kind

_SAMPLES: Final = 2
"""Number of files that are sampled in addition to the first."""
_SAMPLE_ROWS: Final = 1 << 18

_PART_ROWS: Final = 1 << 22

SEND, ACK, APPEND, DELIVER, FAILURE, BROKERS_ACK, NO_ROLE = range(7)
"""Role of a row in the history of its message.

BROKERS_ACK is an acknowledgement that a broker reports; a broker does so in addition to the producers.
"""

ROLES: Final[dict[str | None, int]] = {
    Kind.SEND: SEND, Kind.SEND_ACK: ACK, Kind.APPEND: APPEND, Kind.DELIVER: DELIVER,
    # The message may have been delivered once to every group and still have failed in one.
    Kind.SEND_FAIL: FAILURE, Kind.CONSUME_FAIL: FAILURE, Kind.DEAD_LETTER: FAILURE,
}  # fmt: skip

TEXTS: Final = ("kind", "node", "topic", "group", "status")
NUMBERS: Final = ("seq", "queue_id", "queue_offset", "commit_offset", "attempt")
"""Numeric columns that are aggregated in addition to msg_id."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What a sample of a log's rows predicts for the whole log."""

    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps a topic to the groups that read it."""
    roles: frozenset[int] = frozenset()
    """Roles that are recorded at all; empty if that is not known."""

    def class_of(self, topic: str | None) -> int:
        """Return the class of a topic.

        Topics with the same known readers form one class and are aggregated together.
        """
        return named(repr(self.readers.get(topic, topic) if topic else topic))


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """How tasks aggregate buckets."""

    guess: Guess
    prefix: int
    """Number of id characters that identify a bucket; 0 if the bucket is derived from the id's hash."""
    sample: int
    """One in so many clean buckets keeps its rows as a sample; 0 means none does."""
    parts: int
    folder: Path | None = None
    """Folder for the kept rows; None keeps no rows.

    These are the rows of buckets that their partition alone does not prove clean.
    """


def parts_of(log: EventLog) -> int:
    """Return the number of parts for the partial aggregates of a log."""
    # There are few buckets, and splitting them into parts costs time.
    return parts(log, _PART_ROWS)


@cache
def named(text: str | None) -> int:
    """Return a non-negative number for a text (from its SHA-256 hash)."""
    return int.from_bytes(sha256(repr(text).encode("utf-8", "surrogatepass")).digest()[:8]) >> 1


def guess(log: EventLog) -> tuple[Guess, int]:
    """Return the prediction for a log and its id prefix length, from the first rows of some of its files.

    Runs a job if those rows contain no sent message.
    """
    positions = {at * (len(log.files) - 1) // _SAMPLES for at in range(_SAMPLES + 1)} if log.files else ()
    samples = [rows for at in sorted(positions) for rows in _sample(log.files[at].path)]
    ids = max((_sent(rows) for rows in samples), key=len, default=[])
    return _guessed(samples), shared_prefix(ids) if ids else id_prefix(log.rows)


_SHOWN: Final = ("kind", "topic", "group", "msg_id")


def _sample(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the first rows of a file, if it has all the columns that are sampled."""
    # The pass that reads the whole file reports errors in it.
    with suppress(OSError, pa.ArrowException):
        file = pq.ParquetFile(path)
        if set(_SHOWN) <= set(file.schema_arrow.names):
            for rows in islice(file.iter_batches(_SAMPLE_ROWS, columns=list(_SHOWN), use_threads=False), 1):
                yield pa.RecordBatch.from_pydict({name: rows[name].cast(pa.string()) for name in _SHOWN})


def _sent(rows: pa.RecordBatch) -> list[str]:
    sent: list[str] = rows["msg_id"].filter(pc.equal(rows["kind"], Kind.SEND)).drop_null().to_pylist()
    return sent[:SAMPLED_IDS]


def _guessed(samples: Sequence[pa.RecordBatch]) -> Guess:
    kinds = {kind for rows in samples for kind in rows["kind"].unique().to_pylist()}
    delivered = [rows.filter(pc.equal(rows["kind"], Kind.DELIVER)) for rows in samples]
    pairs = [pair for rows in delivered for pair in _distinct(rows.select(["topic", "group"]))]
    return Guess(readers_of(pairs), frozenset(ROLES[kind] for kind in kinds if kind in ROLES))


def _distinct(rows: pa.RecordBatch) -> list[dict[str, str | None]]:
    distinct: list[dict[str, str | None]] = (
        pa.Table.from_batches([rows]).group_by(rows.schema.names).aggregate([]).to_pylist()
    )
    return distinct


def readers_of(pairs: Iterable[Mapping[str, str | None]]) -> dict[str, tuple[str, ...]]:
    """Return the groups that read each topic, from (topic, group) pairs; retry topics are left out."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        topic, group = pair["topic"], pair["group"]
        if topic is not None and group is not None and not topic.startswith(RETRY_TOPIC_PREFIX):
            groups[topic].add(group)
    return {topic: tuple(sorted(own)) for topic, own in groups.items()}
