"""Events of members of DLedger groups, as tables for the RAFT checks.

See docs/reference/protocol/event-log.md, "Events of a DLedger member". Events are ordered by the sequence
numbers of the member that reported them, so clocks do not matter. An entry exists from its raft_append to the
first truncation of that member below it, or to the next entry that the member writes at that index. Entries
from before a member's event log begins are unknown, and nothing is claimed about them.
"""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spec.events import Kind

KINDS: Final = (Kind.VOTE, Kind.BECOME_LEADER, Kind.RAFT_APPEND, Kind.RAFT_COMMIT)
"""The kinds of events that only members of DLedger groups report."""

_TURNS: Final = (Kind.BECOME_LEADER, Kind.STEP_DOWN, Kind.HEARTBEAT, Kind.CRASH, Kind.RECOVER)
"""Events at which a member's role may change."""

_ALL: Final = (*KINDS, *_TURNS, Kind.TRUNCATE)

_BULK: Final = (Kind.RAFT_APPEND, Kind.RAFT_COMMIT)

HEADER_BYTES: Final = 48
"""Size of an entry's header; the message follows it (docs/reference/protocol/dledger.md, "DLedger files")."""

_OPEN: Final = (1 << 63) - 1
"""The end of an interval that has not ended."""


def ledger_events(log: DataFrame) -> DataFrame:
    """Return all events of ledgers.

    The columns are ledger, node, seq, ts, kind, term, status, commit_offset, index, voted_for, magic. A
    ledger is identified by its members and by the common prefix of their nodes' names, up to the last
    separator.
    """
    attrs = f.col("attrs")
    index = attrs["index"].cast("long")
    # Recoveries and truncations of brokers count bytes; heartbeats of name servers have no term.
    of_ledger = f.when(f.col("kind").isin(Kind.TRUNCATE, Kind.RECOVER), index.isNotNull()).otherwise(
        (f.col("kind") != Kind.HEARTBEAT) | f.col("term").isNotNull()
    )
    rows = log.where(f.col("kind").isin(*_ALL) & of_ledger).select(
        "node", "seq", "ts", "kind", "term", "status", "commit_offset",
        index.alias("index"),
        f.when(f.col("status") == "ACCEPT", attrs["candidate"])
        .otherwise(f.nullif(attrs["voted_for"], f.lit("")))
        .alias("voted_for"),
        attrs["magic"].alias("magic"),
        attrs["members"].alias("members"),
    )  # fmt: skip
    prefix = f.regexp_replace("node", "[^-_.:/]*$", "")
    known = rows.where("members IS NOT NULL").groupBy("node").agg(f.max("members").alias("members"))
    named = rows.drop("members").join(f.broadcast(known), "node", "left")
    return named.withColumn("ledger", f.concat_ws(" ", prefix, "members")).drop("members")


def leaderships(rows: DataFrame) -> DataFrame:
    """Return ledger, node, term, from_seq, to_seq (exclusive), ts: the reported leaderships of members."""
    return _turns(rows).where("by_term IS NOT NULL").withColumnRenamed("by_term", "term")


def entries(rows: DataFrame) -> DataFrame:
    """Return the entries of members' logs, and until when they existed.

    The columns are ledger, node, index, term, seq, ts, gone_seq (exclusive).
    """
    below = f.struct("seq", "index")
    cuts = (
        rows.where(f.col("kind").isin(Kind.TRUNCATE, Kind.RECOVER))
        .groupBy(f.col("node").alias("cut_node"))
        .agg(f.collect_list(below).alias("cuts"))
    )
    known = _appends(rows).join(f.broadcast(cuts), f.col("node") == f.col("cut_node"), "left")
    cut = f.array_min(
        f.transform(
            f.filter("cuts", lambda cut: (cut["seq"] > f.col("seq")) & (cut["index"] < f.col("index"))),
            lambda cut: cut["seq"],
        )
    )
    replaced = f.lead("seq").over(Window.partitionBy("node", "index").orderBy("seq"))
    removed_seq = f.least(f.coalesce(cut, f.lit(_OPEN)), f.coalesce(replaced, f.lit(_OPEN)))
    return known.select("ledger", "node", "index", "term", "seq", "ts", removed_seq.alias("gone_seq"))


def committed(rows: DataFrame) -> DataFrame:
    """Return the entries that a member reported as committed while it had them.

    The columns are ledger, node, index, term, by_term, ts. `by_term` is the term of the member's leadership
    at that time, null for a follower.
    """
    turns = _turns(rows).select(f.col("node").alias("turn_node"), "by_term", "from_seq", "to_seq")
    commits = rows.where(f.col("kind") == Kind.RAFT_COMMIT).select("node", "seq", "index")
    inside = (f.col("node") == f.col("turn_node")) & f.col("seq").between(f.col("from_seq"), f.col("to_seq"))
    last = (
        commits.join(f.broadcast(turns), inside)
        .groupBy(f.col("node").alias("commit_node"), "from_seq", "by_term")
        .agg(f.max("index").alias("commit_index"), f.max_by("seq", "index").alias("commit_seq"))
    )
    had = (
        (f.col("node") == f.col("commit_node"))
        & (f.col("index") <= f.col("commit_index"))
        & (f.col("seq") < f.col("commit_seq"))
        & (f.col("gone_seq") > f.col("commit_seq"))
    )
    return (
        entries(rows).join(f.broadcast(last), had).select("ledger", "node", "index", "term", "by_term", "ts")
    )


def begins(rows: DataFrame) -> DataFrame:
    """Return node and base: the first index for which the log shows whether the member has it."""

    def first(kind: Kind, index: Column) -> Column:
        is_kind = f.col("kind") == kind
        return f.min_by(f.when(is_kind, index), f.when(is_kind, f.col("seq")))

    # A start reports where the log ends, so all entries after that are known to be absent.
    appended, started = first(Kind.RAFT_APPEND, f.col("index")), first(Kind.RECOVER, f.col("index") + 1)
    return rows.groupBy("node").agg(f.least(appended, started).alias("base"))


def carried_rows(log: DataFrame, watermark: int) -> DataFrame:
    """Return the rows that are needed to judge later logs; no row before the watermark is still to come.

    Entries are kept until all members hold them, with one term, and a member has reported them as committed.
    For each period between role changes of a member, the furthest commit is kept. All other rows are rare and
    kept.
    """
    rows = ledger_events(log)
    is_old = f.col("ts") < watermark
    rare = rows.where(~f.col("kind").isin(*_BULK))
    commits = rows.where(f.col("kind").isin(Kind.RAFT_COMMIT, *_TURNS))
    turn = f.sum(f.col("kind").isin(*_TURNS).cast("int")).over(Window.partitionBy("node").orderBy("seq"))
    commits = commits.withColumn("turn", turn).where(f.col("kind") == Kind.RAFT_COMMIT)
    furthest = commits.where(is_old).groupBy("node", "turn").agg(f.max_by("seq", "index").alias("seq"))
    kept = _appends(rows).join(f.broadcast(_open_from(rows, watermark)), "ledger").where("index >= open_from")
    chosen = (
        rare.select("node", "seq")
        .unionByName(furthest.select("node", "seq"))
        .unionByName(commits.where(~is_old).select("node", "seq"))
        .unionByName(kept.select("node", "seq"))
    )
    return log.join(chosen, ["node", "seq"], "left_semi").select(*log.columns)


def _open_from(rows: DataFrame, watermark: int) -> DataFrame:
    """Return ledger and open_from: entries below this index are settled and not compared with others."""
    nodes = rows.select("ledger", "node").distinct().join(begins(rows), "node")
    bases = nodes.groupBy("ledger").agg(f.collect_list("base").alias("bases"))
    reached = (
        rows.where(f.col("kind") == Kind.RAFT_COMMIT).groupBy("ledger").agg(f.max("index").alias("reached"))
    )
    is_present = f.col("gone_seq") == _OPEN
    each = entries(rows).groupBy("ledger", "index").agg(
        f.countDistinct(f.when(is_present, f.col("node"))).alias("holders"),
        f.countDistinct(f.when(is_present, f.col("term"))).alias("versions"),
        f.max("ts").alias("ts"),
    )  # fmt: skip
    judged = each.join(f.broadcast(bases), "ledger").join(f.broadcast(reached), "ledger", "left")
    expected_holders = f.size(f.filter("bases", lambda base: base <= f.col("index")))
    is_settled = (
        (f.col("holders") >= expected_holders)
        & (f.col("versions") == 1)
        & (f.col("index") <= f.coalesce("reached", f.lit(-1)))
        & (f.col("ts") < watermark)
    )
    # The entry before shows the term that an entry follows.
    first_open = f.min(f.when(~is_settled, f.col("index") - 1))
    return judged.groupBy("ledger").agg(f.coalesce(first_open, f.max("index")).alias("open_from"))


def event_reference(node: str = "node", seq: str = "seq") -> Column:
    """Return the row of the log that reports it, as NODE#SEQ."""
    return f.concat_ws("#", node, seq)


def _turns(rows: DataFrame) -> DataFrame:
    """Return ledger, node, from_seq, to_seq (exclusive), ts, and by_term where the member led."""
    ends = f.lead("seq").over(Window.partitionBy("node").orderBy("seq"))
    return rows.where(f.col("kind").isin(*_TURNS)).select(
        "ledger",
        "node",
        f.when(f.col("kind") == Kind.BECOME_LEADER, f.col("term")).alias("by_term"),
        f.col("seq").alias("from_seq"),
        f.coalesce(ends, f.lit(_OPEN)).alias("to_seq"),
        "ts",
    )


def _appends(rows: DataFrame) -> DataFrame:
    return rows.where(f.col("kind") == Kind.RAFT_APPEND)
