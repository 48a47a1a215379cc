"""Times of events that explain what would otherwise be violations."""

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.places import group_name
from mqproof.spark_audit.passes.profile import is_reset
from mqproof.spec.events import Kind


def causes_of(rare: DataFrame) -> DataFrame:
    """Return the times of causes, by cause and scope.

    A scope is a group, a topic, a client node, a broker, a queue of a group, or a message of a group.
    """
    kind, attrs = f.col("kind"), f.col("attrs")
    victim = f.coalesce(attrs["node"], f.col("node"))
    # The registration of a broker or name server is not a restart of a client.
    restarted = kind.isin(Kind.CRASH, Kind.UNREGISTER) | (
        (kind == Kind.REGISTER) & f.col("client").isNotNull()
    )
    is_broker_failure = (
        kind.isin(Kind.CRASH, Kind.RECOVER, Kind.TRUNCATE, Kind.BECOME_LEADER) & f.col("broker").isNotNull()
    )
    redelivered = kind.isin(Kind.CONSUME_FAIL, Kind.RETRY) & f.col("msg_id").isNotNull()
    leads = kind == Kind.BECOME_LEADER
    # Without a group, it is a delayed message.
    put_again = (kind == Kind.RETRY) & f.col("group").isNull()
    is_admin = kind == Kind.ADMIN
    scopes = f.array(
        _scope(is_admin & (attrs["action"] == "delete_topic_in_broker"), "topic_deleted", "topic"),
        _scope(is_admin & (attrs["action"] == "delete_subscriptiongroup"), "group_deleted", "group"),
        _scope(kind == Kind.REBALANCE, "rebalance", "group"),
        _scope(restarted, "consumer_restart", victim),
        _scope(is_broker_failure, "broker_crash", "broker"),
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
    """Return the key under which a cause is looked up; null if any part is null."""
    parts = [f.col(column) if isinstance(column, str) else column for column in columns]
    return f.concat(
        *[part if i == 0 else f.concat(f.lit("\x1f"), part.cast("string")) for i, part in enumerate(parts)]
    )


def _scope(condition: Column, cause: str, *key: Column | str) -> Column:
    """Return the scope as a struct, or null if the row is not this cause."""
    value = cause_key(*key)
    return f.when(condition & value.isNotNull(), f.struct(f.lit(cause).alias("cause"), value.alias("key")))
