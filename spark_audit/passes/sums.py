"""What happened to each message, in numbers only: tells which need a look one by one.

Clean is a message that was delivered exactly once to each group of its topic, or that nobody owes anything:
no check can find anything about it, not even something explained. The checks' own sums, with places and
groups as they are, are then made of the few others.

Each group has a hash; as many deliveries as groups, with the groups' hashes as their exclusive or, are one to
each: anything else would need an even number for some group.

A task sums up what its share has of a message; Spark brings a message's sums together, many messages as one
value of bytes, since row by row that cost as much as all the summing up; tasks add them up and judge, and
tell only of messages that somebody may look at, and how many there are of each kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from mqproof.spark_audit.passes.partition import Piece
from mqproof.spark_audit.passes.split import PARCELS, quoted
from mqproof.spark_audit.sources.event_log import EventLog, merged
from mqproof.spec.events import Kind

KINDS: Final = (Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL, Kind.APPEND, Kind.DELIVER)
"""What happens to a message by its id."""


SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""Where a delayed message waits, of whatever topic it is."""

STORED_STATUSES: Final = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")

FIRST: Final = ("send_ts", "acked_ts", "stored_ts", "delivered_ts")
"""Times of a message: each that of the first such row."""
COUNTS: Final = (
    "sends", "acked", "soft_acked", "unknown", "refused", "appends", "deliveries", "cut", "sync_at_risk",
)  # fmt: skip
"""How many of its rows are such. `cut` and `sync_at_risk` are appends, by what became of them at their
broker (evidence.fates)."""

_COLUMNS: Final = ("ts", "seq", "node", "kind", "msg_id", "topic", "group", "status", "commit_offset")

NUMBERED: Final = "(hash({}) >> 1)::BIGINT"
"""A text as a number, in DuckDB's SQL."""

_PART_ROWS: Final = 1 << 20

_HASH_DIGITS: Final = 4
"""Where ids do not count up there are 65,536 cells: enough that a few thousand messages in trouble leave most
of them clean; so few that a task has them all in memory."""


@dataclass(frozen=True, slots=True)
class Known:
    """What tasks must know of the whole log to judge a message."""

    readers: pa.Table
    """subscribed_topic, group: who was handed anything of it."""
    fates: pa.Table
    """What brokers lost, and might have (evidence.fates)."""
    roles: int
    """So many of those that send, acknowledge and store report in the log at all."""


def cell_text(id_prefix: int = 0) -> str:
    """The cell of a row's message (fingerprint.py), in Spark's SQL and in DuckDB's: the first characters of
    its id, 0 for its hash."""
    return f"substring(msg_id, 1, {id_prefix})" if id_prefix else f"substring(md5(msg_id), 1, {_HASH_DIGITS})"


def in_sample(cell: str, sample: int) -> str:
    """Whether a cell, in DuckDB's SQL, is one of those that are read for the distribution of latencies: of so
    many, one; of 0, none."""
    return f"(hash({cell}) % {sample} = 0)" if sample else "false"


def is_of_message() -> str:
    """Of a row, in Spark's SQL and in DuckDB's: it says what happened to a message."""
    return f"msg_id IS NOT NULL AND kind IN ({quoted(*KINDS)})"


_TALLIES: Final = {
    "messages": "true",
    "messages_sent": "sends > 0",
    "acked": "acked > 0",
    "soft_acked": "soft_acked > 0",
    "unknown_outcome": "unknown > 0 AND acked + soft_acked = 0",
    "acked_and_delivered": "acked > 0 AND deliveries > 0",
    "acked_sync_at_risk": "acked > 0 AND sync_at_risk > 0",
    "messages_delivered": "deliveries > 0",
    "acked_cut": "acked > 0 AND cut > 0",
    "sends_again": "sends > 1",
}
"""How many messages there are of which that is so."""

TALLIED: Final = tuple(_TALLIES)

_IS_CLEAN: Final = """
    cut = 0
    -- Delivered though never sent, or though its producer does not know: NoPhantom's to tell.
    AND (deliveries = 0 OR (sends > 0 AND (acked + soft_acked > 0 OR unknown = 0)))
    AND ((deliveries = owed AND handed = owed_xor) OR (acked + soft_acked = 0 AND deliveries = 0))"""

_IS_TOLD: Final = "NOT clean OR sampled OR sends > 1 OR (acked = 0 AND deliveries = 0)"
"""Whose sums somebody may want to see."""


def _judge(cell: str, sample: int, *, all_told: bool) -> str:
    """Of what `ask` told of some messages, all there is of them: those of a message, a row each, and
    the tallies of all."""
    sums = [
        *(f"min({name}) AS {name}" for name in FIRST),
        *(f"sum({name})::BIGINT AS {name}" for name in COUNTS),
        "coalesce(bit_xor(handed), 0) AS handed",
        # Sent to two topics: one of them says who is owed it.
        "max(topic) AS topic",
    ]
    tallies = [f"count(*) FILTER ({condition}) AS {name}" for name, condition in _TALLIES.items()]
    own = ", ".join(("msg_id", *FIRST, *COUNTS, "clean", "sampled"))
    is_told = "true" if all_told else _IS_TOLD
    return f"""
WITH told AS (
    SELECT msg_id, {", ".join(sums)} FROM log GROUP BY msg_id
), debts AS (
    SELECT {NUMBERED.format("subscribed_topic")} AS topic, count(*) AS owed,
        bit_xor({NUMBERED.format('"group"')}) AS owed_xor
    FROM readers GROUP BY ALL
), owing AS (
    SELECT told.*, coalesce(owed, 0) AS owed, coalesce(owed_xor, 0) AS owed_xor
    FROM told LEFT JOIN debts USING (topic)
), judged AS MATERIALIZED (
    SELECT *, ({_IS_CLEAN}) AS clean, {in_sample(cell, sample)} AS sampled FROM owing
)
SELECT 'message' AS part, {own} FROM judged WHERE {is_told}
UNION ALL BY NAME
SELECT 'tally' AS part, {", ".join(tallies)} FROM judged"""


JUDGED: Final = t.StructType(
    [
        t.StructField("part", t.StringType()),
        t.StructField("msg_id", t.StringType()),
        *[t.StructField(name, t.LongType()) for name in dict.fromkeys((*FIRST, *COUNTS, *TALLIED))],
        t.StructField("clean", t.BooleanType()),
        t.StructField("sampled", t.BooleanType()),
    ]
)
"""What `judge` tells, `part` by part: messages, and tallies."""


def message_key() -> Column:
    return f.xxhash64("msg_id")


def ask(log: EventLog, known: Known, prefix: int, cells: pa.Table | None) -> DataFrame:
    """What the shares of a log tell of each message, or of each in the cells whose `text` is in a table."""
    parts = log.parts(_PART_ROWS)
    chosen = None if cells is None else cells["text"]

    def summed(piece: Piece) -> Iterator[pa.RecordBatch]:
        # In tasks alone: what only plans an audit need not load it.
        from mqproof.spark_audit.passes import message_sums

        return message_sums.of_piece(piece, known.fates, chosen, prefix, parts)

    return log.fold([summed], from_arrow_schema(PARCELS), _COLUMNS)


def judge(parts: DataFrame, known: Known, prefix: int, sample: int, *, all_told: bool) -> DataFrame:
    """The messages that somebody may look at, or all of them, and the tallies of all: schema JUDGED.

    `parts` is what `ask` told.
    """
    query = _judge(cell_text(prefix), sample, all_told=all_told)
    return merged(parts, query, JUDGED, {"readers": known.readers})


def count(condition: Column, name: str) -> Column:
    # sum, not count_if: a null condition (a status that was not recorded) is no.
    return f.sum(f.when(condition, 1).otherwise(0)).alias(name)
