"""The hash bucket or key range of a message id: as an SQL expression, and the prefix length for a log."""

from collections import defaultdict
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spec.events import Kind

BUCKET_MESSAGES: Final = 64
"""Minimum average number of messages in a bucket that is a key range (an id prefix)."""
SAMPLED_IDS: Final = 1 << 15
"""Maximum number of ids read from the beginning of a log."""

_HASH_DIGITS: Final = 4
"""Buckets by hash: 65,536 of them, used where ids are not sequential.

With so many, a few thousand faulty messages leave most buckets clean. A task can still hold them all in
memory.
"""


def bucket_text(id_prefix: int = 0) -> str:
    """Return the SQL expression (Spark and DuckDB) for the bucket of a row's message; see fingerprint.py.

    The bucket is the first `id_prefix` characters of the id. With 0 it is the beginning of the id's hash.
    """
    return f"substring(msg_id, 1, {id_prefix})" if id_prefix else f"substring(md5(msg_id), 1, {_HASH_DIGITS})"


def in_sample(bucket: str, sample: int) -> str:
    """Return the DuckDB condition for buckets that are read exactly to sample the distribution of latencies.

    One bucket in `sample` is selected; with 0, none is.
    """
    return f"(hash({bucket}) % {sample} = 0)" if sample else "false"


def id_prefix(log: DataFrame) -> int:
    """Return the number of id characters that identify a bucket, derived from the first ids. Runs a job.

    The result is 0 if no prefix groups neighbouring ids, and only those.
    """
    sent_ids = log.where((f.col("kind") == Kind.SEND) & f.col("msg_id").isNotNull()).select("msg_id")
    return shared_prefix([row["msg_id"] for row in sent_ids.limit(SAMPLED_IDS).collect()])


def shared_prefix(ids: list[str]) -> int:
    """Return the longest prefix length at which prefixes group neighbouring ids, or 0.

    At that length, each prefix is shared by at least BUCKET_MESSAGES of the ids on average, and these are
    close together.
    """
    for length in range(max(map(len, ids), default=0) - 1, 0, -1):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, msg_id in enumerate(ids):
            places[msg_id[:length]].append(at)
        if len(ids) < BUCKET_MESSAGES * len(places):
            continue
        span = sum(at[-1] - at[0] + 1 for at in places.values()) / len(places)
        return length if 4 * span <= len(ids) else 0
    return 0
