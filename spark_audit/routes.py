"""What name servers knew and answered, as the table that the ROUTE checks share (docs/protocol.md, "Event
log").

All in the order and by the clock of one name server, so that no two clocks are compared. A name server is
judged from its start on, when its tables are empty: before that, the log does not tell what they hold.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spec.events import Kind

_OF_BROKERS: Final = (Kind.REGISTER, Kind.HEARTBEAT, Kind.UNREGISTER, Kind.EXPIRE)


def asked_and_told(log: DataFrame) -> DataFrame:
    """One row for each that a name server heard of a broker, dropped it, or named it in a route.

    node, seq, ts, kind, topic, reason; `member` is NAME:ID; address and address_now, where it was said to be
    and where it last registered; seen_ts, when it was last heard of; is_known, whether it is registered now;
    expiry_min_us, expiry_max_us and scan_us, which are the broker's own where it asked for one. Nulls where
    the log does not tell.
    """
    attrs = f.col("attrs")
    starts = log.where((f.col("kind") == Kind.RECOVER) & attrs["expiry_ms"].isNotNull())
    started = starts.groupBy(f.col("node").alias("server")).agg(
        f.min("seq").alias("start_seq"),
        f.min(attrs["expiry_ms"].cast("long") * 1000).alias("expiry_min_us"),
        f.max(attrs["expiry_ms"].cast("long") * 1000).alias("expiry_max_us"),
        f.max(attrs["scan_interval_ms"].cast("long") * 1000).alias("scan_us"),
    )
    rows = _of_brokers(log).unionByName(_of_routes(log)).unionByName(_restarts(log))
    known = rows.join(
        f.broadcast(started), (f.col("node") == f.col("server")) & (f.col("seq") >= f.col("start_seq"))
    )
    so_far = Window.partitionBy("node", "member").orderBy("seq")
    kind = f.col("kind")
    is_seen = kind.isin(Kind.REGISTER, Kind.HEARTBEAT)
    address = f.last(f.when(kind == Kind.REGISTER, f.col("address")), ignorenulls=True).over(so_far)
    known = known.withColumn("address_now", address)
    # One that came back at another address is not gone when the old one is dropped.
    is_gone = kind.isin(Kind.UNREGISTER, Kind.EXPIRE) & (f.col("address") == f.col("address_now"))
    state = f.when(kind == Kind.REGISTER, f.lit(True)).when(is_gone | (kind == Kind.RECOVER), f.lit(False))
    seen = f.last(f.when(is_seen, f.col("ts")), ignorenulls=True).over(so_far)
    # A heartbeat that asks for nothing leaves it as it was.
    asks = (kind == Kind.REGISTER) | f.col("own_us").isNotNull()
    own = f.last(f.when(is_seen & asks, f.struct("own_us")), ignorenulls=True).over(so_far)["own_us"]
    return known.select(
        "node", "seq", "ts", "kind", "topic", "reason", "member", "address", "address_now", "scan_us",
        f.last(state, ignorenulls=True).over(so_far).alias("is_known"),
        seen.alias("seen_ts"),
        f.coalesce(own, "expiry_min_us").alias("expiry_min_us"),
        f.coalesce(own, "expiry_max_us").alias("expiry_max_us"),
    )  # fmt: skip


def _of_brokers(log: DataFrame) -> DataFrame:
    """By member: only a register says which member an address is."""
    attrs = f.col("attrs")
    rows = log.where(f.col("kind").isin(*_OF_BROKERS) & attrs["address"].isNotNull())
    so_far = Window.partitionBy("node", "address").orderBy("seq")
    named = f.when(attrs["id"].isNotNull(), f.concat_ws(":", attrs["broker"], attrs["id"]))
    told = rows.withColumn("address", attrs["address"]).withColumn(
        "member", f.last(named, ignorenulls=True).over(so_far)
    )
    return _columns(told.where("member IS NOT NULL"), f.col("address"), attrs["reason"])


def _of_routes(log: DataFrame) -> DataFrame:
    attrs = f.col("attrs")
    rows = log.where((f.col("kind") == Kind.ROUTE) & (attrs["brokers"] != ""))
    each = rows.withColumn("member", f.explode(f.split(attrs["brokers"], ",")))
    return _columns(each, f.lit(None).cast("string"), f.lit(None).cast("string"))


def _restarts(log: DataFrame) -> DataFrame:
    """A name server that starts forgets: a row for each member that it ever heard of."""
    attrs = f.col("attrs")
    starts = log.where((f.col("kind") == Kind.RECOVER) & attrs["expiry_ms"].isNotNull())
    named = f.concat_ws(":", attrs["broker"], attrs["id"])
    members = (
        log.where((f.col("kind") == Kind.REGISTER) & attrs["id"].isNotNull())
        .select(f.col("node").alias("server"), named.alias("member"))
        .distinct()
    )
    each = starts.join(f.broadcast(members), f.col("node") == f.col("server"))
    return _columns(each, f.lit(None).cast("string"), f.lit(None).cast("string"))


def _columns(rows: DataFrame, address: Column, reason: Column) -> DataFrame:
    own_us = f.col("attrs")["expiry_ms"].cast("long") * 1000
    return rows.select(
        "node", "seq", "ts", "kind", "topic", "member", address.alias("address"), reason.alias("reason"),
        own_us.alias("own_us"),
    )  # fmt: skip
