"""Fingerprints that prove messages clean without examining each one.

Messages are assigned to buckets by their id. For each bucket, the sent, acknowledged, appended and delivered
messages are counted (deliveries per group), and hashes of their ids and places are summed. If all these sums
agree, every message of the bucket was sent, acknowledged and stored once, at one place. It was also delivered
from that place once to every group of its topic. No check of messages can find anything in such a bucket. The
other buckets are checked message by message (sums.py).

All rows of one message are in one bucket. A bucket that needs an exact check can therefore be read again as a
whole, without first finding the rows that belong to it. Where ids are sequential, as RocketMQ's are, a bucket
is an id prefix: about a hundred consecutive messages. A task then reads few buckets at a time, so their sums
stay in the processor's cache and little data is exchanged. The proportion of buckets that need an exact check
also does not grow with the log. For other ids the bucket is a hash, and the number of buckets is fixed.

Buckets with several producers are always read, because two producers may use the same id with every row
duplicated.

All sums are computed in the one pass over the log. At that time the readers of topics, the set of brokers and
the lost appends are not yet known. Sums are therefore kept separate by reporting node and by class of topic:
a class is the topics with the same readers in the sample of the log (`Guess`). If the sample turns out wrong,
the pass is repeated. A task keeps the rows of the buckets that its partition alone does not prove clean. For
the buckets it takes for clean, it records the row group in which the rows can be found (extraction.py).

One case is not detected: a producer sends one id twice as a first attempt, and both are acknowledged, stored
and delivered. This is legal, and is otherwise counted as `producer_retry`. Sums of different rows agree by
chance in one of 2^32 buckets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

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
from mqproof.spark_audit.passes.sums import Known
from mqproof.spark_audit.scan.partition import Fold, Partition
from mqproof.spark_audit.scan.run_over_log import merged
from mqproof.spark_audit.scan.sql import Work

_TALLIES: Final = ("messages", "messages_delivered", "acked", "acked_and_delivered", "acked_sync_at_risk")
_JUDGED: Final = pa.schema(
    [
        ("text", pa.string()),
        *[(name, pa.int64()) for name in ("unkept_min", "unkept_max", "buckets", *_TALLIES)],
    ]
)


@dataclass(frozen=True, slots=True)
class Buckets:
    read: pa.Table
    """`text` of the buckets that are checked message by message.

    Also the first and last row group in which their rows were not kept; null if all rows were kept.
    """
    count: int
    """Number of all buckets."""
    clean: dict[str, int]
    """The tallies of the clean buckets."""


def fold(plan: BucketPlan) -> Fold:
    """Return the fold that aggregates the buckets of a partition in the pass over the log."""

    def of_partition(partition: Partition) -> Iterator[pa.RecordBatch]:
        # Imported only in tasks: planning an audit does not need it.
        from mqproof.spark_audit.passes import bucket_sums

        return bucket_sums.of_partition(partition, plan)

    return of_partition


def expected_readers(
    guess: Guess, readers: Mapping[str, tuple[str, ...]], topics: Iterable[str | None]
) -> dict[int, int] | None:
    """Return the number of groups that read the topics of each class.

    The result is None if the guess is wrong: one class contains topics with different readers.
    """
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
    expected_readers: Mapping[int, int],
    brokers: Sequence[str],
) -> Buckets:
    """Judge the aggregates that tasks computed for `plan` (the part `buckets` of schema.PASS). Runs a job."""
    aggregates = passed.where("part = 'buckets'").select(f.col("buckets_part").alias("part"), "aggregate")
    return judged(merged(aggregates, judging(plan, known, expected_readers, brokers)).toArrow())


def judging(
    plan: BucketPlan, known: Known, expected_readers: Mapping[int, int], brokers: Sequence[str]
) -> Work:
    """Return the work of the tasks that judge the aggregates of the buckets."""
    cut_who = _numbers({"": [named(node) for node in known.append_outcomes["cut_node"].to_pylist()]})[""]
    tables = {
        "classes": _numbers(
            {"class": list(expected_readers), "expected_count": list(expected_readers.values())}
        ),
        "brokers": _numbers({"who": [named(broker) for broker in brokers]}),
        "append_outcomes": known.append_outcomes.set_column(0, "cut_who", cut_who),
    }
    return Work((_judge(known.roles, plan.sample),), _JUDGED, tuple(tables.items()))


def judged(sums: pa.Table) -> Buckets:
    """Return the buckets, given the results of `judging`."""
    counts = {name: pc.sum(sums[name]).as_py() or 0 for name in ("buckets", *_TALLIES)}
    read = sums.select(["text", "unkept_min", "unkept_max"])
    read = read.filter(read["text"].is_valid()).sort_by("text")
    return Buckets(read, counts.pop("buckets"), counts)


def _numbers(columns: Mapping[str, Sequence[int]]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _judge(roles: int, sample: int) -> str:
    """Return the query that judges buckets.

    In a clean bucket, each class has one row per role and reader, and all these rows are equal. `roles` is
    the number of roles (send, acknowledge, store) that this log records at all. The outcome of appends is
    known only for all appends of a broker in a bucket together. If outcomes may differ among them, the bucket
    is read.
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
), by_role AS (
    SELECT bucket, class, role, CASE WHEN role = {DELIVER} THEN who END AS reader,
        sum(rows)::BIGINT AS rows, sum(id)::BIGINT AS id, sum(place)::BIGINT AS place,
        max(CASE WHEN is_affected AND NOT (is_whole AND end_max < kept_end) THEN 1 ELSE odd END) AS odd,
        coalesce(sum(rows) FILTER (is_affected AND is_whole AND is_at_risk), 0)::BIGINT AS sync_at_risk,
        min(who) AS who_min, max(who) AS who_max,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max
    FROM affected GROUP BY ALL
), by_class AS (
    SELECT bucket, count(*) FILTER (role IN ({ACK}, {BROKERS_ACK})) AS acks,
        any_value(expected_count) AS expected_count,
        max(rows) AS rows, sum(sync_at_risk)::BIGINT AS sync_at_risk,
        min(who_min) FILTER (role = {SEND}) AS producer_min,
        max(who_max) FILTER (role = {SEND}) AS producer_max,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max,
        count(*) FILTER (role = {SEND}) = 1 AND count(*) FILTER (role <> {DELIVER}) = {roles}
            AND count(*) FILTER (role = {DELIVER}) = any_value(expected_count) AND max(odd) = 0
            AND min(rows) = max(rows) AND min(id) = max(id)
            -- A send knows no place yet.
            AND min(place) FILTER (role <> {SEND}) IS NOT DISTINCT FROM max(place) FILTER (role <> {SEND})
        AS clean
    FROM by_role JOIN classes USING (class) GROUP BY bucket, class
), judged AS MATERIALIZED (
    SELECT bucket,
        -- One id may have been sent to two topics, of different classes.
        NOT coalesce(bool_and(clean) AND min(producer_min) = max(producer_max), false)
            OR {in_sample("bucket", sample)} AS read,
        min(unkept_min) AS unkept_min, max(unkept_max) AS unkept_max,
        sum(rows)::BIGINT AS messages,
        coalesce(sum(rows) FILTER (expected_count > 0), 0)::BIGINT AS messages_delivered,
        coalesce(sum(rows) FILTER (acks > 0), 0)::BIGINT AS acked,
        coalesce(sum(rows) FILTER (acks > 0 AND expected_count > 0), 0)::BIGINT AS acked_and_delivered,
        coalesce(sum(sync_at_risk) FILTER (acks > 0), 0)::BIGINT AS acked_sync_at_risk
    FROM by_class GROUP BY bucket
)
SELECT bucket AS text, unkept_min, unkept_max FROM judged WHERE read
UNION ALL BY NAME
SELECT {tallies}, count(*) AS buckets FROM judged"""
