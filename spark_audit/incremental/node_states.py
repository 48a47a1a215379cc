"""The state of routing, replication and ledgers at the end of a run: rows that the next run needs.

With these rows the next run is judged as if all logs were one. They are few: the newest row of each kind that
nodes report repeatedly, and the unsettled rows of ledgers.
"""

from collections.abc import Collection
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window, union_by_name
from mqproof.spark_audit.evidence import ledgers, routes
from mqproof.spec.events import Kind

_OF_REPLICAS: Final = (Kind.HA_ACK, Kind.HA_TRANSFER, Kind.FLUSH, Kind.RECOVER)
_OF_ROUTES: Final = (Kind.REGISTER, Kind.ROUTE, Kind.EXPIRE)


def carried_rows(log: DataFrame, kinds: Collection[str], watermark: int) -> DataFrame:
    """Return the rows of the log that the next run needs.

    `kinds` are the kinds of events in the log. All rows before the watermark have arrived.
    """
    parts = []
    if not set(kinds).isdisjoint(_OF_ROUTES):
        parts.append(routes.carried_rows(log))
    if not set(kinds).isdisjoint(_OF_REPLICAS):
        parts.append(_of_replicas(log))
    if not set(kinds).isdisjoint(ledgers.KINDS):
        parts.append(ledgers.carried_rows(log, watermark))
    return union_by_name([log.limit(0), *parts]).dropDuplicates(["node", "seq"])


def _of_replicas(log: DataFrame) -> DataFrame:
    """Return each broker's last start, the progress of slaves and disk since then, and its reported roles."""
    attrs, kind = f.col("attrs"), f.col("kind")
    is_flush = (kind == Kind.FLUSH) & (attrs["file"] == "log")
    rows = log.where(kind.isin(Kind.HA_ACK, Kind.HA_TRANSFER, Kind.RECOVER) | is_flush)
    rows = rows.where("commit_offset IS NOT NULL").withColumn("role", attrs["role"])
    by_seq = Window.partitionBy("node").orderBy("seq")
    life = f.sum((kind == Kind.RECOVER).cast("int")).over(by_seq)
    rows = rows.select("node", "seq", "kind", "role", "commit_offset", life.alias("life"))
    furthest = f.max_by("seq", f.struct("life", "commit_offset"))
    chosen = rows.groupBy("node", "kind", "role").agg(furthest.alias("seq"))
    return log.join(f.broadcast(chosen.select("node", "seq")), ["node", "seq"], "left_semi")
