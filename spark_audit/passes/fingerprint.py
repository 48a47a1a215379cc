"""Fingerprints by which clean messages are known without a look at any one of them.

Messages fall into buckets by their id. In a bucket, what was sent, acknowledged, appended and handed to each
group is counted and summed up as hashes, of ids and of places. Where all these sums agree, every message of
the bucket was sent, acknowledged and stored once, at one place, and handed from that place to every group of
its topic once: no check of messages has anything to find there. The rest, message by message, is sums.py's.

Rows of one message are always in one bucket, so that a bucket in doubt can be read again as a whole, without
asking first whose rows lie in it. Where ids count up, as RocketMQ's do, a bucket is a hundred or so messages
in a row, by the beginning of their ids: then what a task reads in a while falls into few buckets, whose sums
stay in the processor's cache and hardly need to be exchanged; and the share of buckets in doubt does not grow
with the log. Of other ids the hash decides, and there is a fixed number of buckets.

Buckets of several producers are read, as one id may be of two of them, with every row there twice.

All this is summed up in the one pass over the log, before it is known who reads a topic, which nodes are
brokers, and what they lost. Sums are therefore told apart by who said it and, for topics, by classes: topics
that are read by the same groups as far as the beginning of the log shows (`Guess`). Where that turns out
wrong the pass is made again. A task keeps the rows of the buckets that its partition alone does not show to
be clean; of those that it took for clean it tells the row group, where they can be found (extraction.py).

Cannot tell: one id that was sent twice as a first attempt by one producer, acknowledged, stored and delivered
twice as well (legal, and otherwise counted as `producer_retry`). Sums of different rows agree by chance once
in 2^32 buckets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from mqproof.spark_audit.passes.bucket_ids import in_sample
from mqproof.spark_audit.passes.bucket_plan import (
    ACK,
    APPEND,
    BROKERS_ACK,
    DELIVER,
    SEND,
    BucketPlan,
    Guess,
    named,
)
from mqproof.spark_audit.passes.over_log import merged
from mqproof.spark_audit.passes.partition import Fold, Partition
from mqproof.spark_audit.passes.sums import Known

_TALLIES: Final = ("messages", "messages_delivered", "acked", "acked_and_delivered", "acked_sync_at_risk")
_JUDGED: Final = t.StructType(
    [
        t.StructField("text", t.StringType()),
        *[t.StructField(name, t.LongType()) for name in ("unkept_min", "unkept_max", "buckets", *_TALLIES)],
    ]
)


@dataclass(frozen=True, slots=True)
class Buckets:
    read: pa.Table
    """`text` of the buckets whose messages are looked at one by one; and the first and the last row group of
    which such rows were not kept, none where all were."""
    count: int
    """Of all buckets."""
    clean: dict[str, int]
    """What the tallies count in the others."""


def fold(plan: BucketPlan) -> Fold:
    """Aggregates the buckets of a partition, for the pass over the log."""

    def of_partition(partition: Partition) -> Iterator[pa.RecordBatch]:
        # In tasks alone: what only plans an audit need not load it.
        from mqproof.spark_audit.passes import bucket_sums

        return bucket_sums.of_partition(partition, plan)

    return of_partition


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


def buckets(
    passed: DataFrame,
    plan: BucketPlan,
    known: Known,
    owed: Mapping[int, int],
    brokers: Sequence[str],
) -> Buckets:
    """What tasks summed up by `plan`, judged: of schema.PASS the part `buckets`. Runs a job."""
    tables = {
        "classes": _numbers({"class": list(owed), "owed": list(owed.values())}),
        "brokers": _numbers({"who": [named(broker) for broker in brokers]}),
        "append_outcomes": known.append_outcomes.set_column(
            0,
            "cut_who",
            _numbers({"": [named(node) for node in known.append_outcomes["cut_node"].to_pylist()]})[""],
        ),
    }
    aggregates = passed.where("part = 'buckets'").select(f.col("buckets_part").alias("part"), "aggregate")
    told = merged(aggregates, _judge(known.roles, plan.sample), _JUDGED, tables).toArrow()
    counts = {name: pc.sum(told[name]).as_py() or 0 for name in ("buckets", *_TALLIES)}
    read = told.select(["text", "unkept_min", "unkept_max"])
    read = read.filter(read["text"].is_valid()).sort_by("text")
    return Buckets(read, counts.pop("buckets"), counts)


def _numbers(columns: Mapping[str, Sequence[int]]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _judge(roles: int, sample: int) -> str:
    """A bucket is clean when, for each class, there is one row a role and reader, and all are the same.

    `roles`: so many of those that send, acknowledge and store report in this log at all. What became of
    appends is known for all of a broker's in a bucket together; where it differs among them, it is looked up.
    """
    tallies = ", ".join(f"sum({name}) FILTER (NOT read)::BIGINT AS {name}" for name in _TALLIES)
    return f"""
WITH merged AS (
    SELECT bucket, class, who,
        CASE WHEN role = {ACK} AND who IN (FROM brokers) THEN {BROKERS_ACK} ELSE role END AS role,
        sum(rows)::BIGINT AS rows, sum(id)::BIGINT AS id, sum(place)::BIGINT AS place, max(odd) AS odd,
        min(seq_min) AS seq_min, max(seq_max) AS seq_max, max(end_max) AS end_max,
        min(unkept) AS unkept_min, max(unkept) AS unkept_max
    FROM log GROUP BY ALL
), affected AS (
    SELECT merged.*, coalesce(seq_max > after_seq, false) AS is_affected,
        seq_min > after_seq AND seq_max < until_seq AS is_whole, kept_end, is_at_risk
    FROM merged ASOF LEFT JOIN append_outcomes
        ON CASE WHEN role = {APPEND} THEN who END = cut_who AND seq_min < until_seq
), told AS (
    SELECT bucket, class, role, CASE WHEN role = {DELIVER} THEN who END AS reader,
        sum(rows)::BIGINT AS rows, sum(id)::BIGINT AS id, sum(place)::BIGINT AS place,
        max(CASE WHEN is_affected AND NOT (is_whole AND end_max < kept_end) THEN 1 ELSE odd END) AS odd,
        coalesce(sum(rows) FILTER (is_affected AND is_whole AND is_at_risk), 0)::BIGINT AS sync_at_risk,
        min(who) AS who_min, max(who) AS who_max,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max
    FROM affected GROUP BY ALL
), by_class AS (
    SELECT bucket, count(*) FILTER (role IN ({ACK}, {BROKERS_ACK})) AS acks, any_value(owed) AS owed,
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
    FROM told JOIN classes USING (class) GROUP BY bucket, class
), judged AS MATERIALIZED (
    SELECT bucket,
        -- One id may have been sent to two topics, of different classes.
        NOT coalesce(bool_and(clean) AND min(producer_min) = max(producer_max), false)
            OR {in_sample("bucket", sample)} AS read,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max,
        sum(rows)::BIGINT AS messages,
        coalesce(sum(rows) FILTER (owed > 0), 0)::BIGINT AS messages_delivered,
        coalesce(sum(rows) FILTER (acks > 0), 0)::BIGINT AS acked,
        coalesce(sum(rows) FILTER (acks > 0 AND owed > 0), 0)::BIGINT AS acked_and_delivered,
        coalesce(sum(sync_at_risk) FILTER (acks > 0), 0)::BIGINT AS acked_sync_at_risk
    FROM by_class GROUP BY bucket
)
SELECT bucket AS text, unkept_min, unkept_max FROM judged WHERE read
UNION ALL BY NAME
SELECT {tallies}, count(*) AS buckets FROM judged"""
