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

Cannot tell: one id that was sent twice as a first attempt by one producer, acknowledged, stored and delivered
twice as well (legal, and otherwise counted as `producer_retry`). Sums of different rows agree by chance once
in 2^32 cells.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from spark_audit.event_log import EventLog, merged
from spark_audit.piece import Piece
from spark_audit.share import PARCELS
from spark_audit.sums import Known, in_sample
from spec.events import Kind

CELL_MESSAGES: Final = 64
"""Where they do, a cell has so many or more."""
_SAMPLED_IDS: Final = 1 << 15

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
        *[t.StructField(name, t.LongType()) for name in ("cells", *_TALLIES)],
    ]
)


@dataclass(frozen=True, slots=True)
class Cells:
    read: pa.Table
    """`text` of the cells whose messages are looked at one by one."""
    count: int
    """Of all cells."""
    clean: dict[str, int]
    """What the tallies count in the others."""


def cells(log: EventLog, known: Known, brokers: Sequence[str], prefix: int, sample: int) -> Cells:
    """Runs a job. Of `sample` cells one is read though it is clean; of 0, none."""
    # Cells are few, and to part them is work.
    parts = log.parts(_PART_ROWS)

    def summed(piece: Piece) -> Iterator[pa.RecordBatch]:
        # In tasks alone: what only plans an audit need not load it.
        from spark_audit import cell_sums

        return cell_sums.of_piece(piece, known, brokers, prefix, parts)

    parcels = log.fold([summed], from_arrow_schema(PARCELS), ("msg_id", *TEXTS, *NUMBERS))
    told = merged(parcels, _judge(known.roles, sample), _JUDGED).toArrow()
    counts = {name: pc.sum(told[name]).as_py() or 0 for name in ("cells", *_TALLIES)}
    read = told.select(["text"]).drop_null().sort_by("text")
    return Cells(read, counts.pop("cells"), counts)


def _judge(roles: int, sample: int) -> str:
    """A cell is clean when, for each audience, there is one row a role and reader, and all are the same.

    `roles`: so many of those that send, acknowledge and store report in this log at all.
    """
    return f"""
WITH merged AS (
    SELECT cell, audience, owed, role, reader, sum(rows)::BIGINT AS rows, sum(id)::BIGINT AS id,
        sum(place)::BIGINT AS place, max(odd) AS odd, sum(sync_at_risk)::BIGINT AS sync_at_risk,
        min(producer_min) AS producer_min, max(producer_max) AS producer_max
    FROM log GROUP BY ALL
), audiences AS (
    SELECT cell, count(*) FILTER (role IN ({ACK}, {BROKERS_ACK})) AS acks, owed, max(rows) AS rows,
        sum(sync_at_risk)::BIGINT AS sync_at_risk, min(producer_min) AS producer_min,
        max(producer_max) AS producer_max,
        count(*) FILTER (role = {SEND}) = 1 AND count(*) FILTER (role <> {DELIVER}) = {roles}
            AND count(*) FILTER (role = {DELIVER}) = owed AND max(odd) = 0
            AND min(rows) = max(rows) AND min(id) = max(id)
            -- A send knows no place yet.
            AND min(place) FILTER (role <> {SEND}) IS NOT DISTINCT FROM max(place) FILTER (role <> {SEND})
        AS clean
    FROM merged GROUP BY cell, audience, owed
), judged AS MATERIALIZED (
    SELECT cell,
        -- One id may have been sent to two topics, of different audiences.
        NOT coalesce(bool_and(clean) AND min(producer_min) = max(producer_max), false)
            OR {in_sample("cell", sample)} AS read,
        sum(rows)::BIGINT AS messages,
        coalesce(sum(rows) FILTER (owed > 0), 0)::BIGINT AS messages_delivered,
        coalesce(sum(rows) FILTER (acks > 0), 0)::BIGINT AS acked,
        coalesce(sum(rows) FILTER (acks > 0 AND owed > 0), 0)::BIGINT AS acked_and_delivered,
        coalesce(sum(sync_at_risk) FILTER (acks > 0), 0)::BIGINT AS acked_sync_at_risk
    FROM audiences GROUP BY cell
)
SELECT cell AS text FROM judged WHERE read
UNION ALL BY NAME
SELECT {", ".join(f"sum({name}) FILTER (NOT read)::BIGINT AS {name}" for name in _TALLIES)}, count(*) AS cells
FROM judged"""


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
