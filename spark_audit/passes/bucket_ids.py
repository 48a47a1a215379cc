"""The hash bucket or key range of a message, by its id: in SQL, and learned from the ids of a log."""

from collections import defaultdict
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spec.events import Kind

BUCKET_MESSAGES: Final = 64
"""Where they do, a bucket has so many or more."""
SAMPLED_IDS: Final = 1 << 15
"""The ids of a log's beginning that are looked at."""

_HASH_DIGITS: Final = 4
"""Where ids do not count up there are 65,536 buckets: enough that a few thousand messages in trouble leave
most of them clean; so few that a task has them all in memory."""


def bucket_text(id_prefix: int = 0) -> str:
    """The bucket of a row's message (fingerprint.py), in Spark's SQL and in DuckDB's: the first characters of
    its id, 0 for its hash."""
    return f"substring(msg_id, 1, {id_prefix})" if id_prefix else f"substring(md5(msg_id), 1, {_HASH_DIGITS})"


def in_sample(bucket: str, sample: int) -> str:
    """Whether a bucket, in DuckDB's SQL, is one of those that are read for the distribution of latencies: of
    so many, one; of 0, none."""
    return f"(hash({bucket}) % {sample} = 0)" if sample else "false"


def id_prefix(log: DataFrame) -> int:
    """How many characters of an id tell its bucket: learned from the ids at the log's beginning. Runs a job.

    0 where no beginning of an id is shared by neighbours, and by them alone.
    """
    told = log.where((f.col("kind") == Kind.SEND) & f.col("msg_id").isNotNull()).select("msg_id")
    return shared_prefix([row["msg_id"] for row in told.limit(SAMPLED_IDS).collect()])


def shared_prefix(ids: list[str]) -> int:
    """The longest beginning that BUCKET_MESSAGES of these ids share on average, all near to one another; else
    0."""
    for length in range(max(map(len, ids), default=0) - 1, 0, -1):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, msg_id in enumerate(ids):
            places[msg_id[:length]].append(at)
        if len(ids) < BUCKET_MESSAGES * len(places):
            continue
        span = sum(at[-1] - at[0] + 1 for at in places.values()) / len(places)
        return length if 4 * span <= len(ids) else 0
    return 0
