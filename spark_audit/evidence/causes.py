"""When something happened that explains what would otherwise be a violation."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.places import group_name
from mqproof.spark_audit.passes.profile import is_reset
from mqproof.spec.events import Kind


def causes_of(rare: DataFrame) -> DataFrame:
    """Scopes: a group, a client node, a broker, a group's queue, a message in a group."""
    kind, attrs = f.col("kind"), f.col("attrs")
    victim = f.coalesce(attrs["node"], f.col("node"))
    # A broker's or name server's register is no restart of a client.
    restarted = kind.isin(Kind.CRASH, Kind.UNREGISTER) | (
        (kind == Kind.REGISTER) & f.col("client").isNotNull()
    )
    broke = (
        kind.isin(Kind.CRASH, Kind.RECOVER, Kind.TRUNCATE, Kind.BECOME_LEADER) & f.col("broker").isNotNull()
    )
    redelivered = kind.isin(Kind.CONSUME_FAIL, Kind.RETRY) & f.col("msg_id").isNotNull()
    leads = kind == Kind.BECOME_LEADER
    # Of what is delayed, for no group.
    put_again = (kind == Kind.RETRY) & f.col("group").isNull()
    scopes = f.array(
        _scope(kind == Kind.REBALANCE, "rebalance", "group"),
        _scope(restarted, "consumer_restart", victim),
        _scope(broke, "broker_crash", "broker"),
        _scope(leads, "broker_crash", group_name(f.col("node"))),
        _scope(leads, "leader_change", "broker"),
        _scope(put_again, "broker_retry", "msg_id"),
        _scope(is_reset(), "offset_reset", "group", "broker", "topic", "queue_id"),
        _scope(redelivered, "redelivery", "group", "msg_id"),
    )
    return (
        rare.select("ts", f.explode(f.array_compact(scopes)).alias("scope"))
        .groupBy("scope.cause", "scope.key")
        .agg(f.collect_list("ts").alias("at"))
    )


def cause_key(*columns: Column | str) -> Column:
    """The key under which a cause is looked up; null when any part is."""
    parts = [column if isinstance(column, Column) else f.col(column) for column in columns]
    return f.concat(
        *[part if i == 0 else f.concat(f.lit("\x1f"), part.cast("string")) for i, part in enumerate(parts)]
    )


def _scope(condition: Column, cause: str, *key: Column | str) -> Column:
    """The scope as a struct, or null where the row is no such cause."""
    value = cause_key(*key)
    return f.when(condition & value.isNotNull(), f.struct(f.lit(cause).alias("cause"), value.alias("key")))
