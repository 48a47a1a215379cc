"""Nightly runs: what one night hands on to the next, so that the sum of nights is one run over all.

A night's log is judged together with the rows that are carried: those of messages that are still open
(stored, and not yet handed to every group that reads their topic; unanswered), everything of the last `late`
before the end of what was seen, and the last row of each consumer and committed offset. A message that is not
open and has been quiet for `late` is settled: its rows are left behind, and what was found about it is final.

The state is a folder of Parquet files, replaced as a whole when the night's report is written; an interrupted
night leaves the old one.

Exact where what belongs together (a message's copies, a step and its cause) is no further apart than `late`;
the wait for a delivery may take any number of nights. Of what comes later still, repeated deliveries are
known by their offset, and a cause counts since the night that may have had the first. A record cut off, or
stored again, later than that is not seen to have been another. Of routes, replication and elections is handed
on what they stand at (standing.py).
"""

import errno
import os
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.compute as pc
import pyarrow.dataset as ds
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from mqproof.report.beside import folder_beside
from mqproof.report.write import write_bytes
from mqproof.spark_audit.checks import (
    acked_in_store,
    never_overlaps,
    offset_monotone,
    offsets_ahead,
    queue_order,
    retry_then_dead_letter,
    topics_known,
)
from mqproof.spark_audit.checks.one_owner import shared_queues, turns
from mqproof.spark_audit.evidence.gather import Evidence, name_broker, placed_rows, spans_of, subscribed
from mqproof.spark_audit.incremental.carried_state import standing
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC, message_key
from mqproof.spark_audit.passes.profile import Overview, merged, overview
from mqproof.spark_audit.passes.sequences import SEQUENCE
from mqproof.spark_audit.schema import EVENTS, FINDINGS, KEY
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import InputError, literal
from mqproof.spec.events import Kind

SCHEMA_VERSION: Final = 2
LATE_US: Final = 3_600_000_000
FORGET_US: Final = 30 * 86_400_000_000

_MANIFEST: Final = "manifest.json"
UNREADABLE: Final = "unreadable"
"""What was no event (watch.py) stands beside the states."""
_NIGHTS_KEPT: Final = 2
"""The newest, and the one from which its findings can be replayed."""

_EARLIER: Final = "(an earlier night)"
"""The node of rows that stand for what was left behind."""
_ORIGIN: Final = (Kind.SEND, Kind.SEND_ACK)
_STORED: Final = (Kind.SEND_ACK, Kind.APPEND)
_OF_CLIENTS: Final = (Kind.SEND, Kind.DELIVER)
"""What only a client tells."""
_OF_MESSAGE: Final = (Kind.CONSUME_FAIL, Kind.RETRY, Kind.DEAD_LETTER)
_OF_STEPS: Final = (queue_order.INVARIANT, offset_monotone.INVARIANT, never_overlaps.INVARIANT)
"""Checks of what follows what: time alone settles their findings."""
OF_ONE_NODE: Final = ("ROUTE-1", "ROUTE-2", "ROUTE-3", "REPL-1", "REPL-2", "REPL-3", "RAFT-2", "RAFT-6")
"""Checks of what one node tells in its own order: nothing that comes later changes their findings."""
_OF_STORES: Final = (acked_in_store.ABSENT, offsets_ahead.AHEAD, topics_known.METADATA)
_QUEUE: Final = ("broker", "topic", "queue_id")
IDENTITY: Final = (*KEY, "cause", "first_ts")
"""What tells findings of two nights apart; the rest of a finding may grow."""


class Manifest(msgspec.Struct, frozen=True):
    schema: int
    night: int
    """How many there were."""
    watermark: int
    """Microseconds: rows before it were left behind, but for those that are carried."""
    missing_rows: int
    """Holes in the sequence numbers that no night has filled."""
    batch: int = -1
    """Of a stream: the number of its newest batch (watch.py)."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The state that a night begins with."""

    manifest: Manifest
    rows: DataFrame
    """Events that are looked at again: schema.EVENTS."""
    profile: DataFrame
    """Of all rows of all nights, as profile.py makes it; it has the rare rows in it."""
    steps: DataFrame
    """Odd steps (order.py) whose cause may still turn up."""
    reach: DataFrame
    """One row a night and (group, broker, topic, queue_id): offset_min, offset_max, first_ts of what the
    group was handed; without a group, of what was stored."""
    standing: DataFrame
    """Events by which routes, replication and ledgers are judged: schema.EVENTS."""
    findings: DataFrame
    """schema.FINDINGS with `night`, which found it first, and `final`: all violations, and what else was
    found and is not final."""

    def count(self, tonight: DataFrame, seen: Overview) -> tuple[DataFrame, Overview]:
        """The profile of all nights; and `seen`, tonight's overview, with the brokers of all and what holes
        are new.

        Raises:
            InputError: rows of an earlier night are given again.
        """
        profiled = tonight.unionByName(self.profile)
        whole = overview(profiled)
        if whole.repeated_rows:
            raise InputError(
                f"{whole.repeated_rows} rows, some of node {whole.repeating_nodes[0]!r}, have the numbers of "
                "rows that an earlier night had, expected only what was logged since"
            )
        new_holes = max(0, whole.missing_rows - self.manifest.missing_rows)
        holed = tuple(node for node in whole.holed_nodes if new_holes and node in seen.nodes)
        return profiled, replace(seen, brokers=whole.brokers, missing_rows=new_holes, holed_nodes=holed)

    def beside(self, tonight: DataFrame, profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
        """What is needed of earlier nights to judge tonight's rows, `profiled`."""
        old = self._old(name_broker(tonight, brokers)) if self._goes_back(profiled, brokers) else None
        if old is None:
            return self.rows
        return self.rows.unionByName(self._stand_ins(old, tonight.unionByName(self.rows)))

    def told(self, tonight: DataFrame) -> DataFrame:
        """Tonight's rows, for checks of what nodes tell in their own order, with where they stood before and
        what was delayed before."""
        delayed = self.rows.where((f.col("kind") == Kind.APPEND) & (f.col("topic") == SCHEDULE_TOPIC))
        return tonight.unionByName(self.standing).unionByName(delayed)

    def amend(self, evidence: Evidence, brokers: tuple[str, ...]) -> Evidence:
        """Steps between rows that were no neighbours, because those between were left behind, are none."""
        before = _renamed(_last_rows(self.profile, brokers), (*SEQUENCE, "seq"))
        met = evidence.steps.where(f.col("node") != _EARLIER).join(
            f.broadcast(before), _same(SEQUENCE), "left"
        )
        real = met.where(f.col("seq_of").isNull() | (f.col("seq") > f.col("seq_of")))
        steps = real.select(*evidence.steps.columns).unionByName(self.steps)
        return replace(evidence, steps=steps)

    # What was left behind, and is spoken of again

    def _goes_back(self, profiled: DataFrame, brokers: tuple[str, ...]) -> bool:
        """Some group is handed what lies before its end, or begins with what lies before others' end."""
        begun = spans_of(profiled, brokers).withColumn("queue_offset", f.col("offset_min"))
        return bool(self._old(begun).head(1))

    def _old(self, rows: DataFrame) -> DataFrame:
        """Those deliveries that lie before the end of what was delivered in earlier nights."""
        of_group = self.reach.groupBy("group", *_QUEUE).agg(f.max("offset_max").alias("own_end"))
        of_queue = self.reach.groupBy(*_QUEUE).agg(f.max("offset_max").alias("any_end"))
        known = rows.where(f.col("kind") == Kind.DELIVER)
        known = known.join(
            f.broadcast(_renamed(of_group, ("group", *_QUEUE))), _same(("group", *_QUEUE)), "left"
        )
        known = known.drop(*[f"{name}_of" for name in ("group", *_QUEUE)])
        known = known.join(f.broadcast(_renamed(of_queue, _QUEUE)), _same(_QUEUE), "left")
        return known.where(f.col("queue_offset") <= f.coalesce("own_end", "any_end")).select(*rows.columns)

    def _stand_ins(self, old: DataFrame, log: DataFrame) -> DataFrame:
        """Rows for messages that were settled: sent, acknowledged, handed to the groups that passed there.

        When each was delivered is not known any more: no earlier than what its group was handed that night.
        """
        sent = log.where(f.col("kind") == Kind.SEND).select("msg_id")
        # What is carried is all there is of a message: nobody sent it.
        stored_only = self.rows.where(f.col("kind") == Kind.APPEND).select("msg_id")
        sent = sent.unionByName(stored_only).distinct()
        places = old.select("msg_id", *_QUEUE, "queue_offset").distinct().join(sent, "msg_id", "left_anti")
        covering = (
            _same(_QUEUE)
            & (f.col("queue_offset") >= f.col("offset_min"))
            & (f.col("queue_offset") <= f.col("offset_max"))
        )
        handed = places.join(f.broadcast(_renamed(self.reach, _QUEUE)), covering)
        handed = handed.groupBy("msg_id", *_QUEUE, "queue_offset", "group").agg(f.min("first_ts").alias("ts"))
        stored = handed.groupBy("msg_id", *_QUEUE, "queue_offset").agg(f.min("ts").alias("ts"))
        stored = stored.withColumn("group", f.lit(None).cast("string"))
        # Where producers' logs were never given, their silence tells nothing.
        told = [row["kind"] for row in self.profile.select("kind").distinct().collect()]
        sends = [stored.withColumn("kind", f.lit(str(kind))) for kind in _ORIGIN if kind in told]
        rows = handed.where("group IS NOT NULL").withColumn("kind", f.lit(str(Kind.DELIVER)))
        for part in sends:
            rows = rows.unionByName(part)
        given = {
            "seq": f.lit(0),
            "node": f.lit(_EARLIER),
            "status": f.when(f.col("kind") == Kind.SEND_ACK, f.lit("SEND_OK")),
            "attempt": f.when(f.col("kind") == Kind.SEND, f.lit(1)),
            "attrs": f.when(f.col("broker").isNotNull(), f.create_map(f.lit("broker"), f.col("broker"))),
        }
        return rows.select(
            *[
                given.get(field.name, f.col(field.name) if field.name in rows.columns else f.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in EVENTS.fields
            ]
        )


@dataclass(frozen=True, slots=True)
class Night:
    """A run that begins with a state and leaves the next."""

    folder: Path
    late_us: int = LATE_US
    carried: Carried | None = None
    """None in the first night."""
    forget_us: int = FORGET_US
    """A client that told nothing for so long is left behind, and so is a group that has no other."""
    is_replay: bool = False
    """A state was named itself: it is used, and nothing follows it."""

    @property
    def number(self) -> int:
        return self.carried.manifest.night + 1 if self.carried else 1

    @property
    def before(self) -> Path | None:
        """The state that it begins with, by which its findings are found again."""
        if self.is_replay:
            return self.folder
        return state_path(self.folder, self.number - 1) if self.carried else None


def open_night(
    spark: SparkSession, folder: Path, late_us: int = LATE_US, forget_us: int = FORGET_US
) -> Night:
    """The night that follows the newest state in the folder; or, of one that is a state, the night after it.

    Raises:
        InputError: the folder holds something else, or what another version wrote.
    """
    if (folder / _MANIFEST).is_file():
        return Night(folder, late_us, _read(spark, folder), forget_us, is_replay=True)
    states = _states(folder)
    strange = folder.exists() and any(
        not p.name.startswith(".") and p.name != UNREADABLE for p in folder.iterdir()
    )
    if not states and strange:
        raise InputError(f"{folder}: no state of an audit, and not empty")
    return Night(folder, late_us, _read(spark, states[-1]) if states else None, forget_us)


def state_path(folder: Path, number: int) -> Path:
    return folder / f"night-{number:06}"


def newest(folder: Path) -> Path | None:
    """The newest state in the folder."""
    states = _states(folder)
    return states[-1] if states else None


def _states(folder: Path) -> list[Path]:
    """Those that are whole, in order."""
    return sorted(path for path in folder.glob("night-*") if (path / _MANIFEST).is_file())


def _read(spark: SparkSession, state: Path) -> Carried:
    manifest = _manifest(state)
    if manifest.schema != SCHEMA_VERSION:
        raise InputError(
            f"{state}: its schema is {manifest.schema}, expected {SCHEMA_VERSION}: begin a new folder"
        )

    def table(name: str) -> DataFrame:
        return spark.read.parquet(literal(state / name))

    return Carried(manifest, *[table(name) for name in _TABLES])


def _manifest(state: Path) -> Manifest:
    try:
        return msgspec.json.decode((state / _MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{state / _MANIFEST}: no state of an audit: {error}") from None


_TABLES: Final = ("rows", "profile", "steps", "reach", "standing", "findings")


@contextmanager
def next_state(night: Night) -> Iterator[Path | None]:
    """A folder for the next state, which becomes the newest at the end; None where nothing is to follow.

    After an exception the old state is the newest, as it was.

    Raises:
        InputError: another run has finished this night meanwhile. OSError: it cannot be written.
    """
    if night.is_replay:
        yield None
        return
    is_new = not night.folder.exists()
    place = state_path(night.folder, night.number)
    try:
        with folder_beside(place) as beside:
            yield beside
            if place.exists():
                raise InputError(f"{place}: another run has finished this night meanwhile")
            beside.rename(place)
            for old in _states(night.folder)[:-_NIGHTS_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
    finally:
        if is_new:
            with suppress(OSError):
                night.folder.rmdir()  # where nothing came into it


@dataclass(frozen=True, slots=True)
class Looked:
    """The rows that a night looked at."""

    own: EventLog
    """Tonight's."""
    profile: DataFrame
    """Of these."""
    log: DataFrame
    """They, and those that were carried, with `broker`."""


def settle(
    night: Night,
    evidence: Evidence,
    looked: Looked,
    brokers: tuple[str, ...],
    found: DataFrame,
    ran: Collection[str],
    into: Path,
    batch: int = -1,
) -> None:
    """Write the state that this night leaves.

    `found` are all findings of its evidence, by the checks that `ran`.
    """
    before = night.carried.manifest.watermark if night.carried else 0
    if night.carried and batch < 0:
        # A night between the batches of a stream, which goes on behind its newest one.
        batch = night.carried.manifest.batch
    # A clock that is ahead of ours does not say what is over.
    newest = min(overview(evidence.profile).last_ts, time.time_ns() // 1_000)
    watermark = max(before, newest - night.late_us)
    profiled = remembered(evidence.profile, watermark - night.forget_us)
    evidence = replace(evidence, profile=profiled, spans=spans_of(profiled, brokers))
    whole = overview(profiled)
    log = looked.log.where(f.col("node") != _EARLIER)
    # A row is told by its node and number.
    ends = _last_rows(evidence.profile, brokers).select("node", "seq").distinct()
    if shared_queues(evidence).head(1):
        ends = ends.unionByName(turns(evidence, watermark)).distinct()
    marked = log.join(f.broadcast(ends.withColumn("is_end", f.lit(True))), ["node", "seq"], "left")
    is_near = f.col("is_end").isNotNull() | (f.col("ts") >= watermark)
    near = marked.where(is_near & f.col("msg_id").isNotNull()).select(message_key().alias("key"))
    kept = near.unionByName(_open(evidence)).distinct().withColumn("is_kept", f.lit(True))
    kept = kept.persist()
    try:
        rows = marked.join(kept, message_key() == f.col("key"), "left").where(
            is_near | f.col("is_kept").isNotNull()
        )
        _write(rows.select(*EVENTS.fieldNames()), into / "rows")
        _write(_pruned(evidence.profile, kept).coalesce(1), into / "profile")
        _write(evidence.steps.where(f.col("ts") >= watermark).coalesce(1), into / "steps")
        reach = _reach(looked.profile, brokers)
        if night.carried:
            reach = reach.unionByName(night.carried.reach)
        _write(_still_read(reach, evidence.spans).coalesce(1), into / "reach")
        stands = standing(evidence.log, whole.by_kind, watermark)
        _write(stands.select(*EVENTS.fieldNames()).coalesce(1), into / "standing")
        _write(_known(night, found, ran, kept, watermark), into / "findings")
    finally:
        kept.unpersist()
    manifest = Manifest(SCHEMA_VERSION, night.number, watermark, whole.missing_rows, batch)
    write_bytes(into / _MANIFEST, msgspec.json.encode(manifest))


def remembered(profiled: DataFrame, since: int) -> DataFrame:
    """Without the clients that have told nothing since then: more come with every restart, and stay away."""
    last = profiled.groupBy("node").agg(
        f.max("last_ts").alias("last_ts"), f.bool_or(f.col("kind").isin(*_OF_CLIENTS)).alias("is_client")
    )
    gone = [row["node"] for row in last.where(f.col("is_client") & (f.col("last_ts") < since)).collect()]
    return profiled.where(~f.col("node").isin(gone)) if gone else profiled


def only_new(found: DataFrame, carried: Carried) -> DataFrame:
    """The findings that no earlier night had."""
    known = _renamed(carried.findings.select(*IDENTITY), IDENTITY)
    return found.join(known, _same(IDENTITY), "left_anti")


def withdrawn(carried: Carried, found: DataFrame, invariants: Collection[str]) -> int:
    """How many violations of earlier nights are none, in the light of this one."""
    doubtful = carried.findings.where("cause IS NULL AND NOT final").where(
        f.col("invariant").isin(*invariants)
    )
    again = _renamed(found.select(*IDENTITY), IDENTITY)
    return doubtful.join(again, _same(IDENTITY), "left_anti").count()


def violations_so_far(state: Path) -> list[tuple[str, str, int, int, int]]:
    """(invariant, rule, count, of the newest night, not certain) of the violations that a state knows of."""
    manifest = _manifest(state)
    known = ds.dataset(str(state / "findings"), format="parquet").scanner(
        {
            "invariant": pc.field("invariant"),
            "rule": pc.field("rule"),
            "is_new": pc.field("night") == manifest.night,
            "is_certain": pc.coalesce(_is_certain(manifest.watermark), pc.scalar(False)),
        },
        filter=pc.field("cause").is_null(),
    )
    counts: Counter[tuple[str, str]] = Counter()
    new: Counter[tuple[str, str]] = Counter()
    open_: Counter[tuple[str, str]] = Counter()
    sorts = (
        known.to_table()
        .group_by(["invariant", "rule", "is_new", "is_certain"])
        .aggregate([([], "count_all")])
    )
    for row in sorts.to_pylist():
        key = (row["invariant"], row["rule"])
        counts[key] += row["count_all"]
        new[key] += row["count_all"] * row["is_new"]
        open_[key] += row["count_all"] * (not row["is_certain"])
    return [(*key, counts[key], new[key], open_[key]) for key in sorted(counts)]


def events_so_far(state: Path) -> int:
    """How many events of all nights a state remembers."""
    return sum(ds.dataset(str(state / "profile"), format="parquet").to_table(["rows"])["rows"].to_pylist())


def rows_missing(state: Path) -> int:
    """Holes in the numbers of nodes, or rows that were no events, whichever is more: so many violations at
    most may have an explanation that nobody can read."""
    kept = sorted((state.parent / UNREADABLE).rglob("*.json"))
    unreadable = sum(bool(line.strip()) for file in kept for line in file.read_bytes().splitlines())
    return max(_manifest(state).missing_rows, unreadable)


def _is_certain(watermark: int) -> pc.Expression:
    """Nothing of what `late` lets come can change it; what was lost may be delivered yet later."""
    return pc.field("final") | (pc.field("last_ts") < watermark)


def certain_now(state: Path) -> list[dict[str, Any]]:
    """Violations whose evidence is older than what `late` lets come, and was not at the state before."""
    manifest = _manifest(state)
    earlier = state_path(state.parent, manifest.night - 1)
    before = _manifest(earlier).watermark if earlier.exists() else 0
    known = ds.dataset(str(state / "findings"), format="parquet")
    certain = known.to_table(filter=pc.field("cause").is_null() & _is_certain(manifest.watermark)).to_pylist()
    return [row for row in certain if row["night"] == manifest.night or not _was_certain(row, before)]


def _was_certain(row: Mapping[str, Any], watermark: int) -> bool:
    return row["last_ts"] is not None and row["last_ts"] < watermark


def all_found(evidence: Evidence, folder: Path, invariants: Collection[str]) -> DataFrame:
    """What the checks of these invariants wrote, each into a folder of its own."""
    spark = evidence.log.sparkSession
    if not invariants:
        return spark.createDataFrame([], FINDINGS)
    return spark.read.schema(FINDINGS).parquet(*[literal(folder / invariant) for invariant in invariants])


def _open(evidence: Evidence) -> DataFrame:
    """Keys of the messages of which more is to come: not handed to every group yet, never answered, or failed
    and left at that."""
    known = evidence.messages.join(
        f.broadcast(subscribed(evidence.spans)), f.col("topic") == f.col("subscribed_topic"), "left"
    )
    owed = known.where(f.size(f.array_except("subscribed", "groups")) > 0).select(message_key().alias("key"))
    unanswered = evidence.sums.where(
        "clean AND acked = 0 AND deliveries = 0 AND (appends + soft_acked + unknown > 0 OR sends > refused)"
    )
    is_open = owed.unionByName(unanswered.select("key"))
    if not evidence.rare.where(f.col("kind") == Kind.CONSUME_FAIL).head(1):
        return is_open
    failed = retry_then_dead_letter.pending(evidence)
    return is_open.unionByName(failed.select(message_key().alias("key")))


def _known(
    night: Night, found: DataFrame, ran: Collection[str], kept: DataFrame, watermark: int
) -> DataFrame:
    """All findings that the next night has to know of."""
    by_time = f.col("invariant").isin(*_OF_STEPS) | f.col("msg_id").isNull()
    final = f.when(by_time, f.col("last_ts") < watermark).otherwise(f.col("is_kept").isNull())
    final = final | f.col("invariant").isin(*OF_ONE_NODE)
    # What a store shows is looked up in it anew each night.
    final = f.coalesce(final & ~f.col("rule").isin(*_OF_STORES), f.lit(False))
    judged = found.join(kept, message_key() == f.col("key"), "left").withColumn("final", final)
    if night.carried is None:
        first_night, over = judged.withColumn("night", f.lit(night.number)), None
    else:
        before = night.carried.findings
        first = _renamed(before.select(*IDENTITY, f.col("night").alias("first_night")), IDENTITY)
        first_night = judged.join(first, _same(IDENTITY), "left").withColumn(
            "night", f.coalesce("first_night", f.lit(night.number))
        )
        over = before.where(f.col("final") | ~f.col("invariant").isin(*ran))
    judged = first_night.select(*FINDINGS.fieldNames(), "night", "final")
    if over is not None:
        again = _renamed(over.select(*IDENTITY), IDENTITY)
        judged = judged.join(again, _same(IDENTITY), "left_anti").unionByName(over)
    return judged.where("cause IS NULL OR NOT final")


def _pruned(profiled: DataFrame, kept: DataFrame) -> DataFrame:
    """The profile in one row a key, without the failures of messages that are left behind, and without
    what brokers tell name servers all day: only clients' registers explain anything."""
    of_message = f.when(f.col("kind").isin(*_OF_MESSAGE), f.get_json_object("rare", "$.msg_id"))
    of_broker = (f.col("kind") == Kind.REGISTER) & f.get_json_object("rare", "$.client").isNull()
    known = profiled.withColumn("of_message", of_message).join(
        kept, f.xxhash64("of_message") == f.col("key"), "left"
    )
    gone = f.col("of_message").isNotNull() & f.col("is_kept").isNull()
    known = known.withColumn("rare", f.when(~(gone | of_broker), f.col("rare"))).select(*profiled.columns)
    return merged(known)


def _last_rows(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """One row a sequence of order.py: the number of its newest row."""
    return spans_of(profiled, brokers).select(*SEQUENCE, f.col("seq_max").alias("seq"))


def _reach(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    placed = placed_rows(profiled, brokers).where(f.col("kind").isin(Kind.DELIVER, *_STORED))
    handed = placed.withColumn("group", f.when(f.col("kind") == Kind.DELIVER, f.col("group")))
    return handed.groupBy("group", *_QUEUE).agg(
        f.min("offset_min").alias("offset_min"),
        f.max("offset_max").alias("offset_max"),
        f.min("first_ts").alias("first_ts"),
    )


def _still_read(reach: DataFrame, spans: DataFrame) -> DataFrame:
    """Without what groups were handed that are left behind: should one come back, it begins anew."""
    readers = spans.where(f.col("kind") == Kind.DELIVER).select("group", "topic").distinct()
    of_groups = reach.join(f.broadcast(readers), ["group", "topic"], "left_semi")
    return reach.where("group IS NULL").unionByName(of_groups)


def _write(rows: DataFrame, path: Path) -> None:
    """Raises: OSError: the disk of the states is full."""
    try:
        rows.write.parquet(str(path))
    except Py4JError as error:
        # What is spilled meanwhile, perhaps on another disk, does not go through Hadoop's file system.
        full = os.strerror(errno.ENOSPC)
        if full in str(error) and "RawLocalFileSystem" in str(error):
            raise OSError(errno.ENOSPC, full, str(path.parents[1])) from None
        raise


def _renamed(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """For the other side of `_same`."""
    return rows.withColumnsRenamed({name: f"{name}_of" for name in names})


def _same(names: Iterable[str]) -> Column:
    equal = [f.col(name).eqNullSafe(f.col(f"{name}_of")) for name in names]
    return reduce(Column.__and__, equal)
