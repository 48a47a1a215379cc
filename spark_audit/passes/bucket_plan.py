"""How the pass over a log computes aggregates per bucket, planned from what the log's beginning shows."""

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
from mqproof.spark_audit.passes.over_log import parts
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spec.events import Kind

_GLIMPSES: Final = 2
"""Into so many files, and the first."""
_GLIMPSE_ROWS: Final = 1 << 18

_PART_ROWS: Final = 1 << 22

SEND, ACK, APPEND, DELIVER, TROUBLE, BROKERS_ACK, NO_ROLE = range(7)
"""What a row says of a message. A broker that reports its acknowledgements does so beside the producers."""

ROLES: Final[dict[str | None, int]] = {
    Kind.SEND: SEND, Kind.SEND_ACK: ACK, Kind.APPEND: APPEND, Kind.DELIVER: DELIVER,
    # A message may have been handed to every group once, and failed at one.
    Kind.SEND_FAIL: TROUBLE, Kind.CONSUME_FAIL: TROUBLE, Kind.DEAD_LETTER: TROUBLE,
}  # fmt: skip

TEXTS: Final = ("kind", "node", "topic", "group", "status")
NUMBERS: Final = ("seq", "queue_id", "queue_offset", "commit_offset", "attempt")
"""Columns of the log that are summed up, beside msg_id."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What the beginning of a log lets expect of all of it."""

    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A topic to the groups that read it."""
    roles: frozenset[int] = frozenset()
    """Which are recorded at all; empty where that is not known."""

    def class_of(self, topic: str | None) -> int:
        """Topics of one class have the same readers, as far as is known: their sums are one."""
        return named(repr(self.readers.get(topic, topic) if topic else topic))


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """How tasks sum up buckets."""

    guess: Guess
    prefix: int
    """So many characters of an id tell its bucket; 0: its hash does."""
    sample: int
    """Of so many buckets the rows of one are kept though it is clean; of 0, none."""
    parts: int
    folder: Path | None = None
    """For the rows of buckets that their partition alone does not show to be clean; None: none are kept."""


def parts_of(log: EventLog) -> int:
    """So many parts there are to be of what tasks sum up."""
    # Buckets are few, and to part them is work.
    return parts(log, _PART_ROWS)


@cache
def named(text: str | None) -> int:
    """A text as a number that is not negative."""
    return int.from_bytes(sha256(repr(text).encode("utf-8", "surrogatepass")).digest()[:8]) >> 1


def guess(log: EventLog) -> tuple[Guess, int]:
    """What to expect of a log, and how many characters of an id tell its bucket: by the first rows of some of
    its files. Runs a job where they tell nothing."""
    looked_at = {at * (len(log.files) - 1) // _GLIMPSES for at in range(_GLIMPSES + 1)} if log.files else ()
    glimpses = [rows for at in sorted(looked_at) for rows in _glimpse(log.files[at].path)]
    ids = max((_sent(rows) for rows in glimpses), key=len, default=[])
    return _guessed(glimpses), shared_prefix(ids) if ids else id_prefix(log.rows)


_SHOWN: Final = ("kind", "topic", "group", "msg_id")


def _glimpse(path: Path) -> Iterator[pa.RecordBatch]:
    """The first rows of a file, where it has all that is looked at."""
    # The pass that reads all of the file reports what is wrong with it.
    with suppress(OSError, pa.ArrowException):
        file = pq.ParquetFile(path)
        if set(_SHOWN) <= set(file.schema_arrow.names):
            for rows in islice(file.iter_batches(_GLIMPSE_ROWS, columns=list(_SHOWN), use_threads=False), 1):
                yield pa.RecordBatch.from_pydict({name: rows[name].cast(pa.string()) for name in _SHOWN})


def _sent(rows: pa.RecordBatch) -> list[str]:
    sent: list[str] = rows["msg_id"].filter(pc.equal(rows["kind"], Kind.SEND)).drop_null().to_pylist()
    return sent[:SAMPLED_IDS]


def _guessed(glimpses: Sequence[pa.RecordBatch]) -> Guess:
    kinds = {kind for rows in glimpses for kind in rows["kind"].unique().to_pylist()}
    delivered = [rows.filter(pc.equal(rows["kind"], Kind.DELIVER)) for rows in glimpses]
    pairs = [pair for rows in delivered for pair in _distinct(rows.select(["topic", "group"]))]
    return Guess(readers_of(pairs), frozenset(ROLES[kind] for kind in kinds if kind in ROLES))


def _distinct(rows: pa.RecordBatch) -> list[dict[str, str | None]]:
    told: list[dict[str, str | None]] = (
        pa.Table.from_batches([rows]).group_by(rows.schema.names).aggregate([]).to_pylist()
    )
    return told


def readers_of(pairs: Iterable[Mapping[str, str | None]]) -> dict[str, tuple[str, ...]]:
    """A topic to the groups that read it, of pairs of both."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        topic, group = pair["topic"], pair["group"]
        if topic is not None and group is not None and not topic.startswith(RETRY_TOPIC_PREFIX):
            groups[topic].add(group)
    return {topic: tuple(sorted(own)) for topic, own in groups.items()}
