"""Gathers what the checks judge: a few small sums over the event log, each computed once and used by many.

Nothing here judges. Small jobs, and one for the fingerprints, tell what tasks must know; the rest are plans,
which `audit.py` executes.
Field names are those of docs/protocol.md, "What the audit reads".
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from mqproof.spark_audit.passes import fingerprint, profile, sequences, sums
from mqproof.spark_audit.passes.bucket_plan import BucketPlan, Guess, parts_of, readers_of
from mqproof.spark_audit.passes.extraction import Extraction
from mqproof.spark_audit.passes.fingerprint import Buckets
from mqproof.spark_audit.passes.message_columns import (
    RETRY_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    STORED_STATUSES,
    count,
    is_of_message,
    message_key,
)
from mqproof.spark_audit.passes.over_log import fold
from mqproof.spark_audit.passes.partition import Fold
from mqproof.spark_audit.passes.profile import RARE_KINDS, is_reset, rare_rows
from mqproof.spark_audit.passes.sequences import numbered, odd_steps, stretches
from mqproof.spark_audit.passes.sql import quoted
from mqproof.spark_audit.passes.sums import Known
from mqproof.spark_audit.schema import PASS, require
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.store_tables import Stored
from mqproof.spec.events import COLUMNS, Kind

TRAFFIC: Final = tuple(name for name in COLUMNS if name not in ("term", "keys", "born_ts", "attrs"))


_OF_HALVES: Final = (Kind.HALF, Kind.COMMIT)

_IS_MESSAGE: Final = "part = 'message'"
"""Of a row of sums.JUDGED."""

MEMBER: Final = "@"
"""Between a group that is broadcast to and one of its members."""

SKEW_US: Final = 100_000

LADDER_MS: Final = tuple(
    seconds * 1000 for seconds in (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200)
)
"""RocketMQ's own delay levels."""


@dataclass(frozen=True, slots=True)
class Options:
    skew_us: int = SKEW_US
    """How far the clocks of two nodes may disagree: a cause this much outside an interval still counts."""
    is_skew_given: bool = False
    """Else it is what the log shows (skew_seen), where that is more."""
    flush: str | None = None
    """SYNC_FLUSH | ASYNC_FLUSH: the mode of brokers whose log does not say."""
    exact: bool | None = None
    """Look at every message, also where fingerprints agree. None: of small logs, where that costs less."""
    rebalance_us: int = 20_000_000
    """How long a group may take to agree on owners after a member came or went; RocketMQ's clients look every
    20 s."""
    broadcast: tuple[str, ...] = ()
    """Groups of which every member gets every message; no log says so."""
    orderly: tuple[str, ...] = ()
    """Groups that consume in order, beside those whose log says so."""
    lock_us: int = 60_000_000
    """How long a broker keeps a lock that is not renewed."""
    delays_ms: tuple[int, ...] = LADDER_MS
    """What the levels of delayed messages mean, from level 1 on."""
    id_prefix: int = 0
    """So many characters of an id tell the bucket of its message; 0: its hash does (fingerprint.py)."""
    sample: int = 0
    """Of so many clean buckets look into one, for the distribution of latencies; 0 for none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    events: DataFrame
    """The log's TRAFFIC columns, plus `broker` (whose queue, log or crash the row is about) and `reset`.
    Without the attrs map, whose decoding costs more than that of all other columns together."""
    rare: DataFrame
    """The few rows that are not traffic, with their attrs: crashes, recoveries, rebalances, resets, failed
    consumption."""
    buckets: Buckets | None
    """Which buckets of messages are not clean as a whole (fingerprint.py); None: every message is looked
    at."""
    judged: DataFrame
    """Of the messages of the buckets that are read, numbers only (sums.py): those that somebody may look at,
    a row each, `clean` where no check has anything to find; and how many there are of each kind."""
    doubtful: DataFrame
    """The keys of the messages that are not clean."""
    doubted: DataFrame
    """The events of the messages that are not clean: of sums.KINDS, and what became of half messages."""
    messages: DataFrame
    """One row a msg_id that is not clean: what its producer tried and was told, where it was stored, who was
    handed it."""
    troubled: DataFrame
    """The events of the messages whose consumption failed, or of which a dead letter was made."""
    runs: DataFrame
    """What the tasks told of rows of which each is the next one of its sequence (order.py)."""
    steps: DataFrame
    """The deliveries and commits that do not."""
    spans: DataFrame
    """One row a (kind, node, group, broker, topic, queue_id) of deliver and offset_commit: its extent."""
    causes: DataFrame
    """One row a (scope, key): when something happened that explains what would otherwise be a violation."""
    log: DataFrame
    """The whole log with all its columns, and `broker`. For checks of rare kinds: what is not read of it
    costs nothing only where a file's statistics show that it has none of them."""
    profile: DataFrame
    """What the first pass told (profile.py)."""
    options: Options
    store: Stored | None = None
    """What the brokers' store directories hold, where they were given."""

    @property
    def sums(self) -> DataFrame:
        """The messages of `judged`."""
        return self.judged.where(_IS_MESSAGE)

    @property
    def stored(self) -> Stored:
        assert self.store is not None, "a check of stores is run only where there are any"
        return self.store


@dataclass(frozen=True, slots=True)
class Passed:
    """What one pass over the whole log told, partition by partition."""

    rows: DataFrame
    """All of it: schema.PASS."""
    told: DataFrame
    """Its profile and runs; what is of a node together."""
    plan: BucketPlan | None
    """How buckets were summed up; None where they were not."""

    def plus(self, other: "Passed") -> "Passed":
        """What was told of another log, too."""
        return Passed(self.rows.unionByName(other.rows), self.told.unionByName(other.told), self.plan)


Keep = Callable[[DataFrame], DataFrame]


def sum_up(log: EventLog, plan: BucketPlan | None = None, keep: Keep = lambda frame: frame) -> Passed:
    """Pass over the log; a plan."""
    rows = fold(log, folds(plan), PASS)
    if plan:
        rows = keep(rows)
    cores = log.rows.sparkSession.sparkContext.defaultParallelism
    # It is small, and read by several jobs, each of which would have a task a split.
    told = rows.where("part IN ('profile', 'run')").repartition(cores, "node")
    return Passed(rows, keep(told), plan)


def plan_buckets(
    log: EventLog,
    options: Options,
    store: Stored | None = None,
    guess: Guess | None = None,
    folder: Path | None = None,
) -> BucketPlan | None:
    """How the buckets of a log are summed up; not at all where every message is looked at."""
    if reads_all(options, store):
        return None
    return BucketPlan(guess or Guess(), options.id_prefix, options.sample, parts_of(log), folder)


def folds(plan: BucketPlan | None) -> tuple[Fold, ...]:
    """What the pass asks of each partition."""
    return (profile.of_partition, sequences.of_partition, *((fingerprint.fold(plan),) if plan else ()))


def gather(
    log: EventLog,
    brokers: tuple[str, ...],
    options: Options | None = None,
    store: Stored | None = None,
    passed: Passed | None = None,
    profiled: DataFrame | None = None,
    folder: Path | None = None,
    keep: Keep = lambda frame: frame,
) -> Evidence:
    """The evidence in an event log and in stores; `brokers` are the nodes that reported a BROKER_KINDS event,
    `passed` and `profiled` what is there already of the pass over the log, and of its profile.

    The rows that are looked at one by one are put into the `folder`; without one they are those of the log.
    `keep` is called with what is read more than once.

    Raises:
        SchemaError: the table is not an event log.
    """
    require(log.rows, COLUMNS, "the audit")
    options = options or Options()
    passed = passed or sum_up(log, plan_buckets(log, options, store), keep)
    profiled = profile.summed_up(passed.told) if profiled is None else profiled
    rare = keep(name_broker(rare_rows(profiled), brokers))
    spans = keep(spans_of(profiled, brokers))
    runs = passed.told.where("part = 'run'").withColumn("broker", _broker(f.col("stated"), brokers))
    with ThreadPoolExecutor(1) as beside:
        sorts = beside.submit(_traffic, profiled, brokers)
        cut = append_outcomes(rare, options).toArrow()
        traffic = sorts.result()
        known = Known(traffic.owing, cut, traffic.roles)
        # Tasks judge buckets, while what does not depend on that is planned.
        told = beside.submit(_fingerprints, log, passed, known, traffic, brokers, keep)
        causes = keep(_causes(rare))
        stretched = keep(stretches(runs))
        extraction = Extraction(folder, numbered(stretched), options.id_prefix) if folder else None
        buckets, passed = told.result()
    among = log
    if buckets and extraction:
        among = extraction.of_buckets(log, passed.rows, buckets.read)
    summed = sums.ask(among, known, options.id_prefix, buckets.read if buckets else None)
    # What was acknowledged is looked up in the store.
    judged = sums.judge(summed, known, options.id_prefix, options.sample, all_told=store is not None)
    judged = keep(judged.withColumn("key", message_key()))
    doubtful = keep(_doubtful(judged, store))
    if extraction:
        ids = _ids(judged, doubtful, rare)
        among = extraction.of_messages(log, among if buckets else None, ids)
    events = _events(name_broker(among.rows, brokers))
    of_messages = f"{is_of_message()} OR (msg_id IS NOT NULL AND kind IN ({quoted(*_OF_HALVES)}))"
    doubted = events.where(of_messages).join(doubtful, message_key() == f.col("key"), "left_semi")
    named = name_broker(log.rows, brokers)
    return Evidence(
        events=_events(named),
        rare=rare,
        buckets=buckets,
        judged=judged,
        doubtful=doubtful,
        doubted=doubted,
        messages=_messages(on_broker(doubted, rare, options)),
        troubled=events.join(f.broadcast(_in_trouble(rare).distinct()), "msg_id", "left_semi"),
        runs=runs,
        steps=odd_steps(events, stretched),
        spans=spans,
        causes=causes,
        log=named,
        profile=profiled,
        options=options,
        store=store,
    )


def _fingerprints(
    log: EventLog,
    passed: Passed,
    known: Known,
    traffic: "_Traffic",
    brokers: tuple[str, ...],
    keep: Keep,
) -> tuple[Buckets | None, Passed]:
    """The buckets; and the pass over the log that summed them up, a second one where the first was misled."""
    if not passed.plan:
        return None, passed
    plan, rows = passed.plan, passed.rows
    owed = fingerprint.owed(plan.guess, traffic.readers, traffic.topics)
    if owed is None:
        plan = replace(plan, guess=replace(plan.guess, readers=traffic.readers))
        rows = keep(fold(log, folds(plan), PASS))
        owed = fingerprint.owed(plan.guess, traffic.readers, traffic.topics)
    assert owed is not None, "classes were made of who reads their topics"
    return fingerprint.buckets(rows, plan, known, owed, brokers), replace(passed, rows=rows)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """What sort of rows a log has."""

    readers: dict[str, tuple[str, ...]]
    """A topic to the groups that read it."""
    topics: frozenset[str | None]
    roles: int
    """As sums.Known has them."""

    @property
    def owing(self) -> pa.Table:
        """The readers, as sums.Known has them."""
        pairs = [(topic, group) for topic, groups in self.readers.items() for group in groups]
        topics, groups = (pa.array([pair[at] for pair in pairs], pa.string()) for at in range(2))
        return pa.table({"subscribed_topic": topics, "group": groups})


def _traffic(profiled: DataFrame, brokers: tuple[str, ...]) -> _Traffic:
    of_broker = f.coalesce(f.col("node").isin(*brokers), f.lit(False)).alias("of_broker")
    sorts = profiled.select("kind", of_broker, "topic", "group", "placed").distinct().collect()
    handed = [row.asDict() for row in sorts if row["kind"] == Kind.DELIVER and row["placed"]]
    # A broker that reports its acknowledgements does so beside the producers.
    told = {
        (row["kind"], row["of_broker"] and row["kind"] == Kind.SEND_ACK)
        for row in sorts
        if row["kind"] in (Kind.SEND, Kind.SEND_ACK, Kind.APPEND)
    }
    topics = frozenset(row["topic"] for row in sorts)
    return _Traffic(readers_of(handed), topics, len(told))


def _in_trouble(rare: DataFrame) -> DataFrame:
    """msg_id of Evidence.troubled."""
    return rare.where(
        f.col("kind").isin(Kind.CONSUME_FAIL, Kind.DEAD_LETTER) & f.col("msg_id").isNotNull()
    ).select("msg_id")


def _events(named: DataFrame) -> DataFrame:
    """Evidence.events, of rows with their broker."""
    return named.select(*TRAFFIC, "broker", is_reset().alias("reset"))


def _ids(judged: DataFrame, doubtful: DataFrame, rare: DataFrame) -> DataFrame:
    """msg_id of the messages that are looked at one by one."""
    told = judged.where(_IS_MESSAGE).join(f.broadcast(doubtful), "key", "left_semi").select("msg_id")
    return told.unionByName(_in_trouble(rare))


def reads_all(options: Options, store: Stored | None) -> bool:
    """Whether every message is looked at, clean or not."""
    # What was acknowledged is looked up in the store, clean or not.
    return bool(options.exact) or store is not None


def subscribed(spans: DataFrame) -> DataFrame:
    """subscribed_topic and the array `subscribed`: the groups that were handed anything of it."""
    return _readers(spans).groupBy("subscribed_topic").agg(f.collect_set("group").alias("subscribed"))


def _readers(spans: DataFrame) -> DataFrame:
    """subscribed_topic and group: who was handed anything of it."""
    delivered = spans.where((f.col("kind") == Kind.DELIVER) & ~f.col("topic").startswith(RETRY_TOPIC_PREFIX))
    told = delivered.where(f.col("group").isNotNull())
    return told.select(f.col("topic").alias("subscribed_topic"), "group").distinct()


def by_member(log: DataFrame, broadcast: tuple[str, ...]) -> DataFrame:
    """Each member of a group that is broadcast to is a group of its own, GROUP@CLIENT: all that is promised
    to a group is promised to it."""
    if not broadcast:
        return log
    member = f.concat_ws(MEMBER, "group", f.coalesce("client", "node"))
    return log.withColumn("group", f.when(f.col("group").isin(*broadcast), member).otherwise(f.col("group")))


def is_member(options: Options) -> Column:
    """Whether `group` is one that by_member made."""
    group = f.col("group")
    ours = [group.startswith(name + MEMBER) for name in options.broadcast]
    return f.coalesce(reduce(Column.__or__, ours, f.lit(False)), f.lit(False))


def orderly_groups(rare: DataFrame, options: Options) -> DataFrame:
    """group: those that consume in order, as the user or a member's `rebalance` says."""
    said = rare.where((f.col("kind") == Kind.REBALANCE) & (f.col("attrs")["orderly"] == "true"))
    given = f.array(*map(f.lit, options.orderly)).cast("array<string>")
    named = rare.sparkSession.range(1).select(f.explode(given).alias("group"))
    return said.select("group").unionByName(named).where("group IS NOT NULL").distinct()


def skew_seen() -> Column:
    """Of Evidence.messages: by how much, in microseconds, effects stand before their causes. Clocks disagree
    by that at least."""
    steps = (
        ("send_ts", "appended_ts"), ("appended_ts", "acked_ts"), ("send_ts", "acked_ts"),
        ("send_ts", "delivered_ts"), ("appended_ts", "delivered_ts"),
    )  # fmt: skip
    backwards = f.greatest(*[f.col(cause) - f.col(effect) for cause, effect in steps])
    return f.greatest(f.coalesce(f.max(backwards), f.lit(0)), f.lit(0))


def name_broker(log: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Add `broker`: queue 3 of one broker is not queue 3 of another.

    A client's event names it in attrs.broker; a broker's own event is its own. With one broker in the whole
    log there is nothing to tell apart.
    """
    is_victim = f.col("kind").isin(*RARE_KINDS) & f.col("attrs")["node"].isin(*brokers)
    victim = f.when(is_victim, f.col("attrs")["node"])
    stated = f.coalesce(f.col("attrs")["broker"], victim)
    return log.withColumn("broker", _broker(stated, brokers))


def _broker(stated: Column, brokers: tuple[str, ...]) -> Column:
    own = f.when(f.col("node").isin(*brokers), f.col("node"))
    # A crash in a log of one broker may well be a client's: it must say whose.
    sole = f.when(f.col("kind") != Kind.CRASH, f.lit(brokers[0])) if len(brokers) == 1 else f.lit(None)
    return f.coalesce(stated, own, sole.cast("string"))


def group_name(node: Column) -> Column:
    """What clients call the broker of a slave or of a member of a group: its node's name but for the end."""
    return f.regexp_replace(node, "[-_.:/][^-_.:/]*$", "")


def place() -> Column:
    """Where a message is: one position of one queue of one broker."""
    return f.struct("broker", "topic", "queue_id", "queue_offset")


def _record() -> Column:
    """Of an append: where it is, and what became of it."""
    is_cut = f.coalesce(f.col("commit_offset") >= f.col("kept_end"), f.lit(False))
    return f.struct("broker", "topic", "queue_id", "queue_offset", "flush_mode", is_cut.alias("is_cut"))


def cuts(rare: DataFrame) -> DataFrame:
    """What each broker's log lost: the appends with after_seq < seq < until_seq keep bytes below kept_end.

    A recovery or truncation that ends at or above an append keeps it; a later one may still cut it, hence the
    minimum over all that follow. The intervals of a broker do not overlap: an append meets one at most.
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
    # A truncation and the recovery that tells of it have nothing between them.
    return lost.where("until_seq > after_seq + 1")


def flush_modes(rare: DataFrame, default: str | None) -> DataFrame:
    """node and flush_mode: SYNC_FLUSH, ASYNC_FLUSH, or null when its recover events say nothing or not all
    the same."""
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
    """The cuts, and is_at_risk: its node flushes synchronously, and crashed after these appends."""
    modes = flush_modes(rare, options.flush).where("flush_mode = 'SYNC_FLUSH'").select("mode_node")
    crashed = rare.where(_is_crash()).groupBy(f.col("broker").alias("mode_node")).agg(
        f.max("ts").alias("crashed_ts")
    )  # fmt: skip
    met = cuts(rare).join(
        f.broadcast(modes.join(crashed, "mode_node")), f.col("cut_node") == f.col("mode_node"), "left"
    )
    is_after = f.coalesce(f.col("crashed_ts") > f.col("after_ts"), f.col("crashed_ts").isNotNull())
    return met.select("cut_node", "after_seq", "until_seq", "kept_end", is_after.alias("is_at_risk"))


def _is_crash() -> Column:
    """A broker's own word at its next start, or another's."""
    kind = f.col("kind")
    is_abnormal = (kind == Kind.RECOVER) & (f.col("attrs")["abnormal"] == "true")
    return (kind == Kind.CRASH) | f.coalesce(is_abnormal, f.lit(False))


def on_broker(rows: DataFrame, rare: DataFrame, options: Options) -> DataFrame:
    """Add to appends what became of them at their broker: until_seq and kept_end of the cut that they met
    first, and flush_mode."""
    is_append = f.col("kind") == Kind.APPEND
    met = (
        (f.col("node") == f.col("cut_node"))
        & is_append
        & (f.col("seq") > f.col("after_seq"))
        & (f.col("seq") < f.col("until_seq"))
    )
    return rows.join(f.broadcast(cuts(rare)), met, "left").join(
        f.broadcast(flush_modes(rare, options.flush)),
        is_append & (f.col("node") == f.col("mode_node")),
        "left",
    )


def _doubtful(judged: DataFrame, store: Stored | None) -> DataFrame:
    """The keys of the messages that the checks look at."""
    of_messages = judged.where(_IS_MESSAGE)
    doubtful = of_messages.where("NOT clean").select("key")
    if store is None:
        return doubtful
    absent = of_messages.where("acked > 0").join(
        store.records.select(message_key().alias("key")), "key", "left_anti"
    )
    return doubtful.unionByName(absent.select("key"))


def _messages(rows: DataFrame) -> DataFrame:
    """The exact sums of some messages; the checks drill down only where these show a doubt."""
    kind, status = f.col("kind"), f.col("status")
    is_append = kind == Kind.APPEND
    acked = (kind == Kind.SEND_ACK) & (status == "SEND_OK")
    stored = kind.isin(Kind.SEND_ACK, Kind.APPEND) & f.col("queue_offset").isNotNull()
    producer_side = ~kind.isin(Kind.DELIVER, *_OF_HALVES)
    waits = f.col("topic") == SCHEDULE_TOPIC
    told = rows.groupBy("msg_id").agg(
        f.max(f.when(producer_side & ~waits, f.col("topic"))).alias("topic"),
        count(kind == Kind.SEND, "sends"),
        f.max(f.when(kind == Kind.SEND, f.coalesce("attempt", f.lit(1)))).alias("attempt_max"),
        f.min(f.when(kind == Kind.SEND, f.col("ts"))).alias("send_ts"),
        count(acked, "acked"),
        f.min(f.when(acked, f.col("ts"))).alias("acked_ts"),
        count((kind == Kind.SEND_ACK) & status.isin(*STORED_STATUSES[1:]), "soft_acked"),
        f.max(f.when((kind == Kind.SEND_ACK) & (status != "SEND_OK"), status)).alias("soft_status"),
        count((kind == Kind.SEND_FAIL) & (status == "unknown"), "unknown"),
        f.size(f.collect_set(f.when(kind == Kind.SEND, f.col("node")))).alias("producers"),
        f.min(f.when(is_append, f.col("ts"))).alias("appended_ts"),
        count(is_append, "appends"),
        count(is_append & (f.col("commit_offset") >= f.col("kept_end")), "cut"),
        f.collect_set(f.when(is_append, _record())).alias("records"),
        f.collect_set(f.when(acked, f.col("broker"))).alias("acked_by"),
        count(kind == Kind.DELIVER, "deliveries"),
        count(kind == Kind.HALF, "halves"),
        count(kind == Kind.COMMIT, "commits"),
        f.min(f.when(kind == Kind.DELIVER, f.col("ts"))).alias("delivered_ts"),
        f.collect_set(f.when(stored, place())).alias("places"),
        f.collect_set(f.when(kind == Kind.DELIVER, f.col("group"))).alias("groups"),
        f.coalesce(f.bool_or(is_append & waits), f.lit(False)).alias("is_delayed"),
        f.collect_set(f.when(is_append & ~waits, place())).alias("put_at"),
    )
    # Of what is delayed the producer is told where it waits, in a queue of no consumer.
    places = f.when(f.col("is_delayed"), f.col("put_at")).otherwise(f.col("places"))
    return told.withColumn("places", places).drop("is_delayed", "put_at")


def spans_of(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Evidence.spans."""
    return (
        placed_rows(profiled, brokers)
        .where(f.col("kind").isin(Kind.DELIVER, Kind.OFFSET_COMMIT))
        .groupBy("kind", "node", "group", "broker", "topic", "queue_id")
        .agg(
            f.sum("rows").alias("rows"),
            f.max("seq_max").alias("seq_max"),
            f.min("offset_min").alias("offset_min"),
            f.max("offset_max").alias("offset_max"),
            f.min("first_ts").alias("first_ts"),
            f.max("last_ts").alias("last_ts"),
        )
    )


def placed_rows(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Of a profile what lies at offsets of queues, with `broker`."""
    return profiled.where("placed").withColumn("broker", _broker(f.col("stated"), brokers))


def _causes(rare: DataFrame) -> DataFrame:
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
