"""Losses of brokers' logs in recoveries and truncations, and the outcome of each append."""

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.evidence.options import Options
from mqproof.spec.events import Kind


def cuts(rare: DataFrame) -> DataFrame:
    """Return the losses of each broker's log, as intervals of sequence numbers.

    Of the appends with after_seq < seq < until_seq, the bytes below kept_end remain. A recovery or truncation
    that ends at or above an append keeps it. A later one may still remove it, so kept_end is the minimum over
    all that follow. The intervals of a broker do not overlap: an append is in at most one.
    """
    ends = rare.where(f.col("kind").isin(Kind.RECOVER, Kind.TRUNCATE) & f.col("commit_offset").isNotNull())
    in_order = Window.partitionBy("node").orderBy("seq")
    later = in_order.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    lost = ends.select(
        f.col("node").alias("cut_node"),
        f.lag("seq", 1, -1).over(in_order).alias("after_seq"),
        f.col("seq").alias("until_seq"),
        f.lag("ts").over(in_order).alias("after_ts"),
        f.min("commit_offset").over(later).alias("kept_end"),
    )
    # Between a truncation and the recovery that reports it there are no events.
    return lost.where("until_seq > after_seq + 1")


def flush_modes(rare: DataFrame, default: str | None) -> DataFrame:
    """Return mode_node and flush_mode, from recover events.

    flush_mode is SYNC_FLUSH or ASYNC_FLUSH. It is `default` if the events of a node do not state it, and null
    if they disagree.
    """
    stated = f.col("attrs")["flush_disk_type"]
    modes = (
        rare.where(f.col("kind") == Kind.RECOVER)
        .groupBy(f.col("node").alias("mode_node"))
        .agg(f.min(stated).alias("low"), f.max(stated).alias("high"))
    )
    same = f.when(f.col("low") == f.col("high"), f.col("low"))
    silent = f.when(f.col("low").isNull(), f.lit(default))
    return modes.select("mode_node", f.coalesce(same, silent.cast("string")).alias("flush_mode"))


def append_outcomes(rare: DataFrame, options: Options) -> DataFrame:
    """Return the cuts, and is_at_risk: the node flushes synchronously and crashed after these appends."""
    modes = flush_modes(rare, options.flush).where("flush_mode = 'SYNC_FLUSH'").select("mode_node")
    crashed = rare.where(_is_crash()).groupBy(f.col("broker").alias("mode_node")).agg(
        f.max("ts").alias("crashed_ts")
    )  # fmt: skip
    with_crash = cuts(rare).join(
        f.broadcast(modes.join(crashed, "mode_node")), f.col("cut_node") == f.col("mode_node"), "left"
    )
    is_after = f.coalesce(f.col("crashed_ts") > f.col("after_ts"), f.col("crashed_ts").isNotNull())
    return with_crash.select("cut_node", "after_seq", "until_seq", "kept_end", is_after.alias("is_at_risk"))


def _is_crash() -> Column:
    """Return the condition for a crash: reported by the broker at its next start, or by another node."""
    kind = f.col("kind")
    is_abnormal = (kind == Kind.RECOVER) & (f.col("attrs")["abnormal"] == "true")
    return (kind == Kind.CRASH) | f.coalesce(is_abnormal, f.lit(False))


def on_broker(rows: DataFrame, rare: DataFrame, options: Options) -> DataFrame:
    """Add the outcome of appends at their broker.

    The columns are until_seq and kept_end of the first cut that affects them, and flush_mode.
    """
    is_append = f.col("kind") == Kind.APPEND
    is_within = (
        (f.col("node") == f.col("cut_node"))
        & is_append
        & (f.col("seq") > f.col("after_seq"))
        & (f.col("seq") < f.col("until_seq"))
    )
    return rows.join(f.broadcast(cuts(rare)), is_within, "left").join(
        f.broadcast(flush_modes(rare, options.flush)),
        is_append & (f.col("node") == f.col("mode_node")),
        "left",
    )
