"""Compares two logs that should be equal, record by record where fingerprints of 1 MiB of log differ."""

from dataclasses import dataclass
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.sources.store.stored import Stored

_BUCKET_BITS: Final = 20
_COMPARED: Final = ("size", "hashed", "topic", "queue_id", "queue_offset", "msg_id", "term", "entry_index")
_PAIR: Final = ("master", "slave")


@dataclass(frozen=True, slots=True)
class TwoLogs:
    """Differences between the logs of the requested pairs (master, slave)."""

    missing_on_slave: DataFrame
    """Records that the slave lacks; `broker` is the slave, `cause` says why that is legal, or is null."""
    missing_on_master: DataFrame
    """Records that the master lacks; `broker` is the master."""
    differing: DataFrame
    """The slave's records, where the master has different ones at the same places."""
    agreed: DataFrame
    """master, slave, agreed_end: up to this offset both logs are, or should be, equal.

    The last entry that both have, with the same term, lies before it. Only for ledgers.
    """


def compared(store: Stored, pairs: DataFrame) -> TwoLogs:
    """Compare the range that both logs of each pair span."""
    of_master, of_slave = _sides(store, pairs)
    buckets = _buckets(of_master, of_slave)
    ambiguous = buckets.where(~f.col("is_same"))
    masters = of_master.join(ambiguous, [*_PAIR, "bucket"], "left_semi")
    slaves = of_slave.join(ambiguous, [*_PAIR, "bucket"], "left_semi")
    master_rows = masters.select(
        *_PAIR, "commit_offset", *[f.col(name).alias(f"its_{name}") for name in _COMPARED]
    )
    both = master_rows.join(
        slaves.select(*_PAIR, "commit_offset", *_COMPARED), [*_PAIR, "commit_offset"], "full_outer"
    )
    on_slave, on_master = f.col("size").isNotNull(), f.col("its_size").isNotNull()
    missing_on_slave = store.explained(
        both.where(on_master & ~on_slave).withColumn("broker", f.col("slave"))
    ).drop(*_COMPARED)
    missing_on_master = store.explained(
        both.where(on_slave & ~on_master).withColumn("broker", f.col("master"))
    )
    is_other = _is_other("hashed") | _is_other("size") | _is_other("term") | _is_other("entry_index")
    return TwoLogs(
        missing_on_slave.withColumnsRenamed({f"its_{name}": name for name in _COMPARED}),
        missing_on_master,
        both.where(on_slave & on_master & is_other),
        _agreed(buckets, both),
    )


def _is_other(name: str) -> Column:
    return ~f.col(name).eqNullSafe(f.col(f"its_{name}"))


def _sides(store: Stored, pairs: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the records of masters and slaves in the range that both logs span."""
    bounds = store.bounds.select("broker", "log_begin", "whole_end")
    span = (
        pairs.join(
            bounds.withColumnsRenamed({"broker": "master", "log_begin": "b1", "whole_end": "e1"}), "master"
        )
        .join(bounds.withColumnsRenamed({"broker": "slave", "log_begin": "b2", "whole_end": "e2"}), "slave")
        .select(*_PAIR, f.greatest("b1", "b2").alias("begin"), f.least("e1", "e2").alias("end"))
    )
    bucket = f.shiftright("commit_offset", _BUCKET_BITS).alias("bucket")

    def side(which: str) -> DataFrame:
        inside = (f.col("broker") == f.col(which)) & f.col("commit_offset").between(
            f.col("begin"), f.col("end") - 1
        )
        rows = store.records.join(f.broadcast(span), inside)
        return rows.select(*_PAIR, "commit_offset", bucket, *_COMPARED)

    return side("master"), side("slave")


def _buckets(of_master: DataFrame, of_slave: DataFrame) -> DataFrame:
    """Return master, slave, bucket, is_same, and where the last entry of the bucket begins."""

    def fingerprint(rows: DataFrame, name: str) -> DataFrame:
        hashed = f.xxhash64("commit_offset", "hashed", "term", "entry_index")
        last = f.max(f.when(f.col("term").isNotNull(), f.col("commit_offset"))).alias(f"{name}_last")
        sums = f.struct(f.count(f.lit(1)).alias("rows"), f.bit_xor(hashed).alias("xor")).alias(name)
        return rows.groupBy(*_PAIR, "bucket").agg(sums, last)

    both = fingerprint(of_master, "one").join(
        fingerprint(of_slave, "other"), [*_PAIR, "bucket"], "full_outer"
    )
    is_same = f.col("one").eqNullSafe(f.col("other"))
    return both.select(*_PAIR, "bucket", is_same.alias("is_same"), f.col("one_last").alias("last"))


def _agreed(buckets: DataFrame, both: DataFrame) -> DataFrame:
    of_buckets = buckets.where("is_same").select(*_PAIR, "last")
    of_rows = both.where("term = its_term AND entry_index = its_entry_index").select(
        *_PAIR, f.col("commit_offset").alias("last")
    )
    ends = of_buckets.unionByName(of_rows).where("last IS NOT NULL")
    return ends.groupBy(*_PAIR).agg((f.max("last") + 1).alias("agreed_end"))
