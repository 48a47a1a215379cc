"""Fingerprints by which clean messages are known without a look at any one of them.

Messages fall into cells by their id. In a cell, what was sent, acknowledged, appended and handed to each
group is counted and summed up as hashes, of ids and of places. Where all these sums agree, every message of
the cell was sent, acknowledged and stored once, at one place, and handed from that place to every group of
its topic once: no check of messages has anything to find there. The rest, message by message, is sums.py's.

Rows of one message are always in one cell, so that a cell in doubt can be read again as a whole, without
asking first whose rows lie in it. Where ids count up, as RocketMQ's do, a cell is a hundred or so messages in
a row, by the beginning of their ids: then what a task reads in a while falls into few cells, whose sums stay
in the processor's cache and hardly need to be exchanged; and the share of cells in doubt does not grow with
the log. Of other ids the hash decides, and there is a fixed number of cells.

Cells of several producers are read, as one id may be of two of them, with every row there twice.

All this is summed up in the one pass over the log, before it is known who reads a topic, which nodes are
brokers, and what they lost. Sums are therefore told apart by who said it and, for topics, by classes: topics
that are read by the same groups as far as the beginning of the log shows (`Guess`). Where that turns out
wrong the pass is made again. A task keeps the rows of the cells that its piece alone does not show to be
clean; of those that it took for clean it tells the row group, where they can be found (extraction.py).

Cannot tell: one id that was sent twice as a first attempt by one producer, acknowledged, stored and delivered
twice as well (legal, and otherwise counted as `producer_retry`). Sums of different rows agree by chance once
in 2^32 cells.
"""

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
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from mqproof.spark_audit.passes.partition import Piece
from mqproof.spark_audit.passes.sums import Known, in_sample
from mqproof.spark_audit.sources.event_log import EventLog, merged
from mqproof.spec.events import Kind

CELL_MESSAGES: Final = 64
"""Where they do, a cell has so many or more."""
_SAMPLED_IDS: Final = 1 << 15
_GLIMPSES: Final = 2
"""Into so many files, and the first."""
_GLIMPSE_ROWS: Final = 1 << 18

_PART_ROWS: Final = 1 << 22

RETRY_TOPIC_PREFIX: Final = "%RETRY%"
"""A group's own topic of redelivered messages."""

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

_TALLIES: Final = ("messages", "messages_delivered", "acked", "acked_and_delivered", "acked_sync_at_risk")
_JUDGED: Final = t.StructType(
    [
        t.StructField("text", t.StringType()),
        *[t.StructField(name, t.LongType()) for name in ("unkept_min", "unkept_max", "cells", *_TALLIES)],
    ]
)


@dataclass(frozen=True, slots=True)
class Guess:
    """What the beginning of a log lets expect of all of it."""

    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A topic to the groups that read it."""
    roles: frozenset[int] = frozenset()
    """Which are told at all; none where nobody looked."""

    def class_of(self, topic: str | None) -> int:
        """Topics of one class have the same readers, as far as is known: their sums are one."""
        return named(repr(self.readers.get(topic, topic) if topic else topic))


@dataclass(frozen=True, slots=True)
class Look:
    """How tasks sum up cells."""

    guess: Guess
    prefix: int
    """So many characters of an id tell its cell; 0: its hash does."""
    sample: int
    """Of so many cells the rows of one are kept though it is clean; of 0, none."""
    parts: int
    folder: Path | None = None
    """For the rows of cells that their piece alone does not show to be clean; None: none are kept."""

    def fold(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """For the pass over the log."""
        # In tasks alone: what only plans an audit need not load it.
        from mqproof.spark_audit.passes import bucket_sums

        return bucket_sums.of_piece(piece, self)


@dataclass(frozen=True, slots=True)
class Cells:
    read: pa.Table
    """`text` of the cells whose messages are looked at one by one; and the first and the last row group of
    which such rows were not kept, none where all were."""
    count: int
    """Of all cells."""
    clean: dict[str, int]
    """What the tallies count in the others."""


def parts_of(log: EventLog) -> int:
    """So many parts there are to be of what tasks sum up."""
    # Cells are few, and to part them is work.
    return log.parts(_PART_ROWS)


@cache
def named(text: str | None) -> int:
    """A text as a number that is not negative."""
    return int.from_bytes(sha256(repr(text).encode("utf-8", "surrogatepass")).digest()[:8]) >> 1


def owed(
    guess: Guess, readers: Mapping[str, tuple[str, ...]], topics: Iterable[str | None]
) -> dict[int, int] | None:
    """By how many groups the topics of a class are read; None where the guess is wrong, as topics that it
    takes together have different readers."""
    classes: dict[int, tuple[str, ...]] = {}
    for topic in topics:
        own = readers.get(topic or "", ())
        if classes.setdefault(guess.class_of(topic), own) != own:
            return None
    return {number: len(own) for number, own in classes.items()}


def cells(
    passed: DataFrame,
    look: Look,
    known: Known,
    owed: Mapping[int, int],
    brokers: Sequence[str],
) -> Cells:
    """What tasks summed up by `look`, judged: of schema.PASS the part `cells`. Runs a job."""
    tables = {
        "classes": _numbers({"class": list(owed), "owed": list(owed.values())}),
        "brokers": _numbers({"who": [named(broker) for broker in brokers]}),
        "fates": known.fates.set_column(
            0, "cut_who", _numbers({"": [named(node) for node in known.fates["cut_node"].to_pylist()]})[""]
        ),
    }
    parcels = passed.where("part = 'cells'").select(f.col("cells_part").alias("part"), "parcel")
    told = merged(parcels, _judge(known.roles, look.sample), _JUDGED, tables).toArrow()
    counts = {name: pc.sum(told[name]).as_py() or 0 for name in ("cells", *_TALLIES)}
    read = told.select(["text", "unkept_min", "unkept_max"])
    read = read.filter(read["text"].is_valid()).sort_by("text")
    return Cells(read, counts.pop("cells"), counts)


def _numbers(columns: Mapping[str, Sequence[int]]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _judge(roles: int, sample: int) -> str:
    """A cell is clean when, for each class, there is one row a role and reader, and all are the same.

    `roles`: so many of those that send, acknowledge and store report in this log at all. What became of
    appends is known for all of a broker's in a cell together; where it differs among them, it is looked up.
    """
    return f"""
WITH merged AS (
    SELECT cell, class, who,
        CASE WHEN role = {ACK} AND who IN (FROM brokers) THEN {BROKERS_ACK} ELSE role END AS role,
        sum(rows)::BIGINT AS rows, sum(id)::BIGINT AS id, sum(place)::BIGINT AS place, max(odd) AS odd,
        min(seq_min) AS seq_min, max(seq_max) AS seq_max, max(end_max) AS end_max,
        min(unkept) AS unkept_min, max(unkept) AS unkept_max
    FROM log GROUP BY ALL
), fated AS (
    SELECT merged.*, coalesce(seq_max > after_seq, false) AS is_fated,
        seq_min > after_seq AND seq_max < until_seq AS is_whole, kept_end, is_at_risk
    FROM merged ASOF LEFT JOIN fates
        ON CASE WHEN role = {APPEND} THEN who END = cut_who AND seq_min < until_seq
), told AS (
    SELECT cell, class, role, CASE WHEN role = {DELIVER} THEN who END AS reader,
        sum(rows)::BIGINT AS rows, sum(id)::BIGINT AS id, sum(place)::BIGINT AS place,
        max(CASE WHEN is_fated AND NOT (is_whole AND end_max < kept_end) THEN 1 ELSE odd END) AS odd,
        coalesce(sum(rows) FILTER (is_fated AND is_whole AND is_at_risk), 0)::BIGINT AS sync_at_risk,
        min(who) AS who_min, max(who) AS who_max,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max
    FROM fated GROUP BY ALL
), by_class AS (
    SELECT cell, count(*) FILTER (role IN ({ACK}, {BROKERS_ACK})) AS acks, any_value(owed) AS owed,
        max(rows) AS rows, sum(sync_at_risk)::BIGINT AS sync_at_risk,
        min(who_min) FILTER (role = {SEND}) AS producer_min,
        max(who_max) FILTER (role = {SEND}) AS producer_max,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max,
        count(*) FILTER (role = {SEND}) = 1 AND count(*) FILTER (role <> {DELIVER}) = {roles}
            AND count(*) FILTER (role = {DELIVER}) = any_value(owed) AND max(odd) = 0
            AND min(rows) = max(rows) AND min(id) = max(id)
            -- A send knows no place yet.
            AND min(place) FILTER (role <> {SEND}) IS NOT DISTINCT FROM max(place) FILTER (role <> {SEND})
        AS clean
    FROM told JOIN classes USING (class) GROUP BY cell, class
), judged AS MATERIALIZED (
    SELECT cell,
        -- One id may have been sent to two topics, of different classes.
        NOT coalesce(bool_and(clean) AND min(producer_min) = max(producer_max), false)
            OR {in_sample("cell", sample)} AS read,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max,
        sum(rows)::BIGINT AS messages,
        coalesce(sum(rows) FILTER (owed > 0), 0)::BIGINT AS messages_delivered,
        coalesce(sum(rows) FILTER (acks > 0), 0)::BIGINT AS acked,
        coalesce(sum(rows) FILTER (acks > 0 AND owed > 0), 0)::BIGINT AS acked_and_delivered,
        coalesce(sum(sync_at_risk) FILTER (acks > 0), 0)::BIGINT AS acked_sync_at_risk
    FROM by_class GROUP BY cell
)
SELECT cell AS text, unkept_min, unkept_max FROM judged WHERE read
UNION ALL BY NAME
SELECT {", ".join(f"sum({name}) FILTER (NOT read)::BIGINT AS {name}" for name in _TALLIES)}, count(*) AS cells
FROM judged"""


def guess(log: EventLog) -> tuple[Guess, int]:
    """What to expect of a log, and how many characters of an id tell its cell: by the first rows of some of
    its files. Runs a job where they tell nothing."""
    looked_at = {at * (len(log.files) - 1) // _GLIMPSES for at in range(_GLIMPSES + 1)} if log.files else ()
    glimpses = [rows for at in sorted(looked_at) for rows in _glimpse(log.files[at].path)]
    ids = max((_sent(rows) for rows in glimpses), key=len, default=[])
    return _guessed(glimpses), shared_prefix(ids) if ids else id_prefix(log.rows)


_SHOWN: Final = ("kind", "topic", "group", "msg_id")


def _glimpse(path: Path) -> Iterator[pa.RecordBatch]:
    """The first rows of a file, where it has all that is looked at."""
    # What is wrong with a file, whoever reads all of it tells.
    with suppress(OSError, pa.ArrowException):
        file = pq.ParquetFile(path)
        if set(_SHOWN) <= set(file.schema_arrow.names):
            for rows in islice(file.iter_batches(_GLIMPSE_ROWS, columns=list(_SHOWN), use_threads=False), 1):
                yield pa.RecordBatch.from_pydict({name: rows[name].cast(pa.string()) for name in _SHOWN})


def _sent(rows: pa.RecordBatch) -> list[str]:
    sent: list[str] = rows["msg_id"].filter(pc.equal(rows["kind"], Kind.SEND)).drop_null().to_pylist()
    return sent[:_SAMPLED_IDS]


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


def id_prefix(log: DataFrame) -> int:
    """How many characters of an id tell its cell: learned from the ids at the log's beginning. Runs a job.

    0 where no beginning of an id is shared by neighbours, and by them alone.
    """
    told = log.where((f.col("kind") == Kind.SEND) & f.col("msg_id").isNotNull()).select("msg_id")
    return shared_prefix([row["msg_id"] for row in told.limit(_SAMPLED_IDS).collect()])


def shared_prefix(ids: list[str]) -> int:
    """The longest beginning that CELL_MESSAGES of these ids share on average, all near to one another; else
    0."""
    for length in range(max(map(len, ids), default=0) - 1, 0, -1):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, msg_id in enumerate(ids):
            places[msg_id[:length]].append(at)
        if len(ids) < CELL_MESSAGES * len(places):
            continue
        span = sum(at[-1] - at[0] + 1 for at in places.values()) / len(places)
        return length if 4 * span <= len(ids) else 0
    return 0
