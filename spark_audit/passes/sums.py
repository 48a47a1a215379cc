"""Sums per message, in numbers only, and by these the messages that must be looked at one by one.

A message is clean if it was delivered exactly once to each group of its topic, or if no delivery of it is
due: no check can find anything about it, not even something explained. The checks' own sums, with places and
groups as they are, are then made of the few others.

Each group has a hash; as many deliveries as groups, with the groups' hashes as their exclusive or, are one to
each: anything else would need an even number for some group.

A task sums up what its split has of a message. Spark brings a message's sums together, many messages as one
value of bytes, since row by row that cost as much as all the summing up. Tasks add them up and judge. They
return only the messages that may be looked at, and how many messages there are of each kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from mqproof.spark_audit.passes.bucket_ids import bucket_text, in_sample
from mqproof.spark_audit.passes.message_columns import COUNTS, FIRST, NUMBERED
from mqproof.spark_audit.passes.over_log import fold, merged, parts
from mqproof.spark_audit.passes.partial_aggregates import PARTIAL_AGGREGATES
from mqproof.spark_audit.passes.partition import Partition
from mqproof.spark_audit.sources.event_log import EventLog

_COLUMNS: Final = ("ts", "seq", "node", "kind", "msg_id", "topic", "group", "status", "commit_offset")

_PART_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """What tasks must know of the whole log to judge a message."""

    readers: pa.Table
    """subscribed_topic, group: who was handed anything of it."""
    append_outcomes: pa.Table
    """What brokers lost, and might have (evidence/broker_cuts.py)."""
    roles: int
    """So many of those that send, acknowledge and store report in the log at all."""


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
"""The messages whose sums are returned."""


def _judge(bucket: str, sample: int, *, all_told: bool) -> str:
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
    SELECT *, ({_IS_CLEAN}) AS clean, {in_sample(bucket, sample)} AS sampled FROM owing
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


def ask(log: EventLog, known: Known, prefix: int, buckets: pa.Table | None) -> DataFrame:
    """What the splits of a log tell of each message, or of each in the buckets whose `text` is in a table."""
    number = parts(log, _PART_ROWS)
    chosen = None if buckets is None else buckets["text"]

    def summed(partition: Partition) -> Iterator[pa.RecordBatch]:
        # In tasks alone: what only plans an audit need not load it.
        from mqproof.spark_audit.passes import message_sums

        return message_sums.of_partition(partition, known.append_outcomes, chosen, prefix, number)

    return fold(log, [summed], from_arrow_schema(PARTIAL_AGGREGATES), _COLUMNS)


def judge(summed: DataFrame, known: Known, prefix: int, sample: int, *, all_told: bool) -> DataFrame:
    """The messages that may be looked at, or all of them, and the tallies of all: schema JUDGED.

    `summed` is what `ask` told.
    """
    query = _judge(bucket_text(prefix), sample, all_told=all_told)
    return merged(summed, query, JUDGED, {"readers": known.readers})
