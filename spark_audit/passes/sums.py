"""Numeric aggregates per message, which show the messages that must be checked exactly.

A message is clean if it was delivered exactly once to each group of its topic, or if no delivery of it is
due. No check can find anything about a clean message, not even an explained difference. The checks then
compute their own sums, with places and groups, for the few other messages.

Each group has a hash. If the number of deliveries equals the number of groups, and the exclusive or of the
hashes is that of all groups, each group has one delivery. (Any other distribution would need an even number
of deliveries for some group.)

A task aggregates the rows of each message in its split. Spark brings the aggregates of a message together,
with many messages in one binary value: moving single rows would cost as much as the aggregation. Tasks then
merge the aggregates and judge the messages. They return only the messages that may need an exact check, and
how many messages of each type there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from mqproof.spark_audit.passes.bucket_ids import bucket_text, in_sample
from mqproof.spark_audit.passes.message_columns import COUNTS, FIRST
from mqproof.spark_audit.passes.message_judgement import TALLIED, judgement
from mqproof.spark_audit.scan.partial_aggregates import PARTIAL_AGGREGATES
from mqproof.spark_audit.scan.partition import Fold, Partition
from mqproof.spark_audit.scan.run_over_log import fold, merged, parts
from mqproof.spark_audit.scan.sql import Work
from mqproof.spark_audit.sources.event_log import EventLog

SUMMED: Final = ("ts", "seq", "node", "kind", "msg_id", "topic", "group", "status", "commit_offset")
"""The columns from which messages are aggregated."""

_PART_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about the whole log that tasks need to judge a message."""

    readers: pa.Table
    """subscribed_topic, group: the groups that received a message of the topic."""
    append_outcomes: pa.Table
    """Appends that brokers lost or may have lost (evidence/broker_cuts.py)."""
    roles: int
    """Number of roles (send, acknowledge, store) that are recorded in the log at all."""


JUDGED: Final = pa.schema(
    [
        ("part", pa.string()),
        ("msg_id", pa.string()),
        *[(name, pa.int64()) for name in dict.fromkeys((*FIRST, *COUNTS, *TALLIED))],
        ("clean", pa.bool_()),
        ("sampled", pa.bool_()),
    ]
)
"""Schema of the results of `judge`, by `part`: messages and tallies."""


def aggregate_messages(log: EventLog, known: Known, prefix: int, buckets: pa.Table | None) -> DataFrame:
    """Aggregate each message over the splits of a log, or only those of the buckets in `buckets` (`text`)."""
    summing = message_fold(known, prefix, buckets, parts(log, _PART_ROWS))
    return fold(log, [summing], from_arrow_schema(PARTIAL_AGGREGATES), SUMMED)


def message_fold(known: Known, prefix: int, buckets: pa.Table | None, parts: int) -> Fold:
    """Return the fold that aggregates each message of a partition with the columns SUMMED."""
    chosen = None if buckets is None else buckets["text"]

    def summed(partition: Partition) -> Iterator[pa.RecordBatch]:
        # Imported only in tasks: planning an audit does not need it.
        from mqproof.spark_audit.passes import message_sums

        return message_sums.of_partition(partition, known.append_outcomes, chosen, prefix, parts)

    return summed


def judge(summed: DataFrame, known: Known, prefix: int, sample: int, *, return_all: bool) -> DataFrame:
    """Return the messages that may need an exact check, or all messages, with the tallies of all.

    The schema is JUDGED. `summed` is the result of `aggregate_messages`.
    """
    return merged(summed, judging(known, prefix, sample, return_all=return_all))


def judging(known: Known, prefix: int, sample: int, *, return_all: bool) -> Work:
    """Return the work of the tasks that judge messages by their aggregates."""
    query = judgement(in_sample(bucket_text(prefix), sample), return_all=return_all)
    return Work((query,), JUDGED, (("readers", known.readers),))
