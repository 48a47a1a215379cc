"""State and answers of name servers, as a table for the ROUTE checks.

See docs/reference/protocol/event-log.md, "Events of a name server". All rows are in the order and by the
clock of one name server, so that no two clocks are compared. A name server is judged from its start, when its
tables are empty: before that, the log does not show their contents.
"""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window, WindowSpec
from mqproof.spec.events import Kind

_OF_BROKERS: Final = (Kind.REGISTER, Kind.HEARTBEAT, Kind.UNREGISTER, Kind.EXPIRE)


def name_server_events(log: DataFrame) -> DataFrame:
    """Return one row for each event about a broker: registration, heartbeat, removal or route.

    The columns are node, seq, ts, kind, topic, reason, and:

    - `member`: NAME:ID.
    - `address`, `address_now`: the address in the event, and the last registered one.
    - `seen_ts`: when the member last registered or sent a heartbeat.
    - `is_known`, `since_ts`: whether it is registered, and since when this is so.
    - `expiry_min_us`, `expiry_max_us`, `scan_us`: the expiry is the broker's own if it requested one.

    Values that the log does not show are null.
    """
    known = _followed(log)
    so_far = _so_far()
    changed = f.when(f.col("state").isNotNull(), f.struct("state", "ts"))
    last = f.last(changed, ignorenulls=True).over(so_far)
    own = f.last(f.when(f.col("asks"), f.struct("own_us")), ignorenulls=True).over(so_far)["own_us"]
    return known.select(
        "node", "seq", "ts", "kind", "topic", "reason", "member", "address", "address_now", "scan_us",
        last["state"].alias("is_known"),
        f.coalesce(last["ts"], "start_ts").alias("since_ts"),
        f.last(f.when(f.col("is_seen"), f.col("ts")), ignorenulls=True).over(so_far).alias("seen_ts"),
        f.coalesce(own, "expiry_min_us").alias("expiry_min_us"),
        f.coalesce(own, "expiry_max_us").alias("expiry_max_us"),
    )  # fmt: skip


def carried_rows(log: DataFrame) -> DataFrame:
    """Return the rows of a log that are needed to judge later logs.

    For each member, these are its last registration, its removal since then, its last heartbeat, and its
    requested expiry. The starts of name servers are also returned.
    """
    followed = _followed(log).where(f.col("kind").isin(*_OF_BROKERS))

    def last(condition: Column) -> Column:
        return f.max(f.when(condition, f.col("seq")))

    registered = last(f.col("kind") == Kind.REGISTER)
    others = f.array(last(~f.col("state")), last(f.col("is_seen")), last(f.col("asks")))
    newest = followed.groupBy("node", "member").agg(registered.alias("from_seq"), others.alias("others"))
    chosen = newest.select(
        f.col("node").alias("server"),
        "member",
        "from_seq",
        f.explode(f.array_distinct(f.array_append("others", f.col("from_seq")))).alias("of_seq"),
    ).where("of_seq >= coalesce(from_seq, of_seq)")
    rows = log.where(f.col("kind").isin(*_OF_BROKERS)).join(
        f.broadcast(chosen), (f.col("node") == f.col("server")) & (f.col("seq") == f.col("of_seq"))
    )
    # Each row names its member itself. Members that were dropped need no more judgement.
    rest = f.map_filter("attrs", lambda name, _: ~name.isin("broker", "id", "reason"))
    name = f.regexp_extract("member", "^(.*):([^:]*)$", 1)
    number = f.regexp_extract("member", "^(.*):([^:]*)$", 2)
    named = f.map_concat(rest, f.create_map(f.lit("broker"), name, f.lit("id"), number))
    return rows.withColumn("attrs", named).select(*log.columns).unionByName(_starts(log))


def _starts(log: DataFrame) -> DataFrame:
    return log.where((f.col("kind") == Kind.RECOVER) & f.col("attrs")["expiry_ms"].isNotNull())


def _so_far() -> WindowSpec:
    return Window.partitionBy("node", "member").orderBy("seq")


def _followed(log: DataFrame) -> DataFrame:
    """Return the rows by member, with `state`, is_seen, asks and address_now.

    `state` is true if the member registered, false if it was dropped, otherwise null.
    """
    attrs = f.col("attrs")
    started = (
        _starts(log)
        .groupBy(f.col("node").alias("server"))
        .agg(
            f.min("seq").alias("start_seq"),
            f.min("ts").alias("start_ts"),
            f.min(attrs["expiry_ms"].cast("long") * 1000).alias("expiry_min_us"),
            f.max(attrs["expiry_ms"].cast("long") * 1000).alias("expiry_max_us"),
            f.max(attrs["scan_interval_ms"].cast("long") * 1000).alias("scan_us"),
        )
    )
    rows = _of_brokers(log).unionByName(_of_routes(log)).unionByName(_restarts(log))
    known = rows.join(
        f.broadcast(started), (f.col("node") == f.col("server")) & (f.col("seq") >= f.col("start_seq"))
    )
    kind = f.col("kind")
    is_seen = kind.isin(Kind.REGISTER, Kind.HEARTBEAT)
    address = f.last(f.when(kind == Kind.REGISTER, f.col("address")), ignorenulls=True).over(_so_far())
    known = known.withColumn("address_now", address)
    # A member that returned at another address is still present when the old address is dropped.
    is_dropped = kind.isin(Kind.UNREGISTER, Kind.EXPIRE) & (f.col("address") == f.col("address_now"))
    state = f.when(kind == Kind.REGISTER, f.lit(True)).when(is_dropped | (kind == Kind.RECOVER), f.lit(False))
    # A heartbeat without an expiry leaves the requested one unchanged.
    asks = is_seen & ((kind == Kind.REGISTER) | f.col("own_us").isNotNull())
    return known.withColumns({"state": state, "is_seen": is_seen, "asks": asks})


def _of_brokers(log: DataFrame) -> DataFrame:
    """Return the rows by member: only a registration shows which member an address belongs to."""
    attrs = f.col("attrs")
    rows = log.where(f.col("kind").isin(*_OF_BROKERS) & attrs["address"].isNotNull())
    so_far = Window.partitionBy("node", "address").orderBy("seq")
    named = f.when(attrs["id"].isNotNull(), f.concat_ws(":", attrs["broker"], attrs["id"]))
    named_rows = rows.withColumn("address", attrs["address"]).withColumn(
        "member", f.last(named, ignorenulls=True).over(so_far)
    )
    return _columns(named_rows.where("member IS NOT NULL"), f.col("address"), attrs["reason"])


def _of_routes(log: DataFrame) -> DataFrame:
    attrs = f.col("attrs")
    rows = log.where((f.col("kind") == Kind.ROUTE) & (attrs["brokers"] != ""))
    each = rows.withColumn("member", f.explode(f.split(attrs["brokers"], ",")))
    return _columns(each, f.lit(None).cast("string"), f.lit(None).cast("string"))


def _restarts(log: DataFrame) -> DataFrame:
    """Return a row for each member ever registered and each start of its name server.

    A start empties the tables.
    """
    attrs = f.col("attrs")
    named = f.concat_ws(":", attrs["broker"], attrs["id"])
    members = (
        log.where((f.col("kind") == Kind.REGISTER) & attrs["id"].isNotNull())
        .select(f.col("node").alias("server"), named.alias("member"))
        .distinct()
    )
    each = _starts(log).join(f.broadcast(members), f.col("node") == f.col("server"))
    return _columns(each, f.lit(None).cast("string"), f.lit(None).cast("string"))


def _columns(rows: DataFrame, address: Column, reason: Column) -> DataFrame:
    own_us = f.col("attrs")["expiry_ms"].cast("long") * 1000
    return rows.select(
        "node", "seq", "ts", "kind", "topic", "member", address.alias("address"), reason.alias("reason"),
        own_us.alias("own_us"),
    )  # fmt: skip
